#!/usr/bin/env python3
"""auto beside every other strategy on the examples' clusters and on drawn ones: real processes, measured in turns.

usage: auto_bench.py --bin FOLDER --cache FOLDER --work FOLDER [--examples NAMES] [--drawn N --seed S] [--rounds N] [--steps N]
                     [--json FILE]

Each strategy's plan is made of what auto's job has measured. A plan that is auto's own, or that is predicted to take a tenth longer
than auto's, is listed and not run. Run it on a quiet machine.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "deploy", "demo"))
from cluster import Cluster, ClusterError  # noqa: E402
from demo import ENDED, state_of  # noqa: E402
from example_cluster import read_example, start_cluster  # noqa: E402
from text import extract_text  # noqa: E402

EXAMPLES = os.path.join(ROOT, "deploy", "examples")
OTHERS = ["even", "fsdp", "megatron", "cephalo", "zorse", "poplar", "hexiscale", "baton"]
WARM_UP_STEPS = 2
NEAR = 1.1    # a prediction is no further off than that
TIE = 1.02
CARDS = ["A100-40GB", "A6000", "A5000", "A4000", "L4", "T4", "V100-16GB", "P40", "P100"]


def draw(rng):
    """A cluster of two or three nodes of unlike cards, with memory for some of its plans and not for others."""
    nodes = [{"name": name, "cards": [rng.choice(CARDS)] * rng.randint(1, 3), "nic_bytes_per_second": rng.choice([3e9, 10e9, 25e9])}
             for name in "abc"[:rng.randint(2, 3)]]
    return {"node": nodes, "link_bytes_per_second": rng.choice([16e9, 60e9, 150e9]),
            "emulation": {"time_dilation": 8000, "memory_scale": rng.choice([0.0016, 0.0026, 0.005])}}


def clusters(arguments):
    """Name, cluster and job file of each."""
    names = arguments.examples.split(",") if arguments.examples else sorted(os.listdir(EXAMPLES))
    for name in names if arguments.examples != "none" else []:
        folder = os.path.join(EXAMPLES, name)
        if os.path.isdir(folder):
            yield name, read_example(folder), os.path.join(folder, "job.toml")
    rng = random.Random(arguments.seed)
    for number in range(arguments.drawn):
        yield f"drawn {number} of seed {arguments.seed}", draw(rng), os.path.join(EXAMPLES, "zorse", "job.toml")


class Runs:
    """Jobs on one cluster, one after the other."""

    def __init__(self, cluster, job_path, arguments):
        self.cluster, self.job_path, self.steps = cluster, job_path, arguments.steps
        self.text, self.count = extract_text(arguments.cache), 0

    def run(self, **settings):
        """The job's id and its median step in seconds."""
        job_id = f"job-{self.count}"
        self.count += 1
        self.cluster.submit(self.job_path, job_id, training__steps=self.steps, data__path=self.text,
                            checkpoint__folder=self.cluster.path("checkpoints", job_id), **settings)
        job = self.cluster.wait_for(lambda: (lambda j: j if state_of(j) in ENDED else None)(self.cluster.job(job_id)), 600,
                                    f"the end of {job_id}", poll_seconds=0.5)
        if state_of(job) != "SUCCEEDED":
            raise ClusterError(f"{settings.get('planner__strategy', 'a plan')}: {job.get('reason', '')}")
        return job_id, statistics.median(r["step_seconds"] for r in self.cluster.steps(job_id)[WARM_UP_STEPS:])

    def plan(self, job_id, strategy):
        """None: none fits."""
        plan = self.cluster.try_motley("plan", job_id, "--strategy", strategy)
        return plan and plan.get("plan", plan)


def shape(plan):
    """What a plan runs, without names and predictions."""
    stages = [(stage["ministages"], stage["zero_stage"],
               [(unit["microbatches"], [(rank["device"], rank["recompute"], round(rank["tp_share"], 6)) for rank in unit["ranks"]])
                for unit in stage["units"]]) for pipeline in plan["pipelines"] for stage in pipeline["stages"]]
    return json.dumps([plan["schedule"], stages])


def compare(runs, name, arguments):
    job_id, first = runs.run(planner__strategy="auto")
    auto = runs.cluster.motley("plan", job_id)["plan"]
    predicted = auto["predicted"]["step_seconds"]
    print(f"{name}: auto {first:.3f} s, predicted {predicted:.3f} s", flush=True)
    rivals = {}
    for strategy in OTHERS:
        plan = runs.plan(job_id, strategy)
        if plan is None:
            print(f"    {strategy:<10} no plan fits", flush=True)
        elif shape(plan) == shape(auto):
            print(f"    {strategy:<10} auto's plan", flush=True)
        elif plan["predicted"]["step_seconds"] > NEAR * predicted:
            print(f"    {strategy:<10} predicted {plan['predicted']['step_seconds'] / predicted:.3f} of auto's, not run", flush=True)
        else:
            rivals[strategy] = plan
    seconds = {strategy: [] for strategy in rivals} | {"auto": [first]}
    for number in range(arguments.rounds if rivals else 0):
        for strategy, plan in rivals.items():
            plan.pop("report", None)
            seconds[strategy].append(runs.run(planner__plan_json=json.dumps(plan))[1])
        if number + 1 < arguments.rounds:
            auto.pop("report", None)
            seconds["auto"].append(runs.run(planner__plan_json=json.dumps(auto))[1])
    rows = []
    for strategy, plan in rivals.items():
        ratio = statistics.median(seconds["auto"]) / statistics.median(seconds[strategy])
        print(f"    {strategy:<10} {statistics.median(seconds[strategy]):.3f} s, predicted {plan['predicted']['step_seconds']:.3f} s: "
              f"auto takes {ratio:.3f} of it", flush=True)
        rows.append({"name": f"{name}: auto / {strategy}", "value": ratio, "unit": "1", "goal": TIE, "met": ratio <= TIE})
    return rows


def main():
    parser = argparse.ArgumentParser(description="auto beside every other strategy, measured")
    for name in ("bin", "cache", "work"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--examples", default="", help="these, separated by commas; none: no example [all]")
    parser.add_argument("--drawn", type=int, default=0, help="clusters drawn by a seed [0]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3, help="of each plan that may be as fast as auto's [3]")
    parser.add_argument("--steps", type=int, default=5, help="of each run; the first two do not count [5]")
    parser.add_argument("--json", help="file for the rows")
    arguments = parser.parse_args()
    rows = []
    for number, (name, example, job_path) in enumerate(clusters(arguments)):
        work = os.path.join(arguments.work, str(number))
        with Cluster(arguments.bin, work, file_roots=[arguments.cache]) as cluster:
            try:
                start_cluster(cluster, example)
                rows += compare(Runs(cluster, job_path, arguments), name, arguments)
            except ClusterError as error:
                print(f"auto: {name}: {error}\nauto: logs are in {work}", file=sys.stderr)
                return 70
        shutil.rmtree(work, ignore_errors=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"rows": rows}, file, indent=2)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
