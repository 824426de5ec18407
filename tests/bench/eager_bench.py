#!/usr/bin/env python3
"""A step on CPU devices beside eager PyTorch's, on one core and on all of them. docs/use/worker.md

usage: eager_bench.py --bin FOLDER --cache FOLDER [--json FILE] [--rounds N]
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

MODEL = {"model_type": "gpt2", "vocab_size": 256, "n_embd": 256, "n_layer": 4, "n_head": 4, "n_positions": 256,
         "activation_function": "gelu_new", "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
STEPS = 10
MOST_SLOWER = 1.1


def sections(cluster):
    from harness import job_sections
    config = os.path.join(cluster.top, "model.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump(MODEL, file)
    job = job_sections(cluster, training__steps=STEPS, training__seq_len=256, training__global_batch_size=8,
                       data__validation_fraction=0.0, data__validation_samples=0)
    job["model"] = {"config": config}
    job["checkpoint"].update(interval=0, interval_minutes=0)
    return job


class Eager:
    """PyTorch in a process of its own, on these cores."""

    def __init__(self, python, cluster, cores):
        path = os.path.join(cluster.top, "job.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**sections(cluster), "model": MODEL}, file)
        self.process = subprocess.Popen(
            ["taskset", "-c", ",".join(map(str, cores)), python, os.path.join(ROOT, "tests", "oracle", "eager.py"), path,
             str(len(cores)), str(STEPS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def steps(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["seconds"]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def compare(python, cores, devices, rounds):
    """Median steps of Motley and of eager PyTorch, in turns."""
    from harness import TestCluster

    class PinnedCluster(TestCluster):
        def placed(self, name, command):
            return ["taskset", "-c", ",".join(map(str, cores)), *command] if name.startswith("worker") else command

    ours, theirs = [], []
    with PinnedCluster() as cluster:
        cluster.worker_cores = 0
        cluster.start({"n1": [{"kind": "cpu"} for _ in range(devices)]})
        eager = Eager(python, cluster, cores)
        for number in range(rounds):
            cluster.submit_job(f"round-{number}", sections(cluster))
            cluster.wait_for_state(f"round-{number}", "SUCCEEDED", 300)
            # The first steps of either touch their memory for the first time.
            ours += [r["step_seconds"] for r in cluster.motley("metrics", f"round-{number}")["steps"]][2:]
            theirs += eager.steps()[2:]
            print(f"    {len(cores)} cores, {devices} devices: round {number + 1} of {rounds}", flush=True)
        eager.end()
    return statistics.median(ours), statistics.median(theirs)


def main():
    parser = argparse.ArgumentParser(description="CPU devices beside eager PyTorch")
    for name in ("bin", "cache", "work"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--json", help="file for the rows")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.bin:
        os.environ["MOTLEY_BIN"] = arguments.bin   # read by the harness, imported below
    from faults_common import row
    pythons = glob.glob(os.path.join(arguments.cache or "", "oracle-*", "bin", "python"))
    if not pythons:
        sys.exit("no PyTorch to compare with: `./run test` installs it")
    cores = sorted(os.sched_getaffinity(0))
    rows = []
    for used, devices in (([cores[0]], 1), (cores, 1), (cores, 2)):
        ours, theirs = compare(pythons[0], used, devices, arguments.rounds)
        what = f"{len(used)} cores, {devices} CPU device{'s' if devices > 1 else ''}"
        rows += [row(f"{what}: step", ours, "s", None, met=True), row(f"{what}: eager PyTorch's step", theirs, "s", None, met=True),
                 row(f"{what}: step / eager PyTorch's", ours / theirs, "1", MOST_SLOWER if devices == 1 else None,
                     met=devices > 1 or ours / theirs <= MOST_SLOWER)]
    for one in rows:
        goal = "" if one["goal"] is None else f" goal {one['goal']:g} {'met' if one['met'] else 'NOT MET'}"
        print(f"{one['name']:<60} {one['value']:>8.3f} {one['unit']:<4}{goal}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"rows": rows}, file, indent=2)
            file.write("\n")
    return 0 if all(one["met"] for one in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
