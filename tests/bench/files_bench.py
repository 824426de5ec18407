#!/usr/bin/env python3
"""Nodes that are lost with their disks, of jobs whose checkpoints lie there: what was lost. docs/inside/local-storage.md

usage: files_bench.py --bin FOLDER [--losses N] [--seed S] [--json FILE]

A job of float64 trains on three emulated nodes without a common folder. At a random moment one of them is killed and its disk is
emptied; another machine, of another name, takes its place. That is done --losses (20) times, in jobs of a few losses each, one
behind the other. Each job's losses are compared with those of the same job undisturbed.
"""
import argparse
import json
import os
import random
import re
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

LOSSES_OF_A_JOB = 4
STEPS, INTERVAL = 150, 4
SAME = 1e-12   # of losses in float64


def sections(cluster, seed):
    return cluster.sections(training__steps=STEPS, training__seed=seed, checkpoint__interval=INTERVAL)


def step_of(checkpoint):
    return int(checkpoint.split("-")[1]) if checkpoint else 0


def resumed_steps(cluster, job_id):
    """Where each generation went on, the first one's begin left out."""
    steps = []
    for message in cluster.event_messages("plan", job_id)[1:]:
        found = re.search(r"from step (\d+)", message)
        steps.append(int(found.group(1)) if found else 0)
    return steps


def lose_one(cluster, job_id, nodes, spare, draw):
    """Returns a row, and the names of the nodes that are left."""
    from check_local_storage import DEVICE, lose_disk
    at = int(cluster.job(job_id)["step"]) + draw.randint(5, 20)
    cluster.wait_for_step(job_id, min(at, STEPS - 20))
    time.sleep(draw.random() * 0.5)   # somewhere in a step, a save or a copy
    plans = len(cluster.event_messages("plan", job_id))
    before = cluster.job(job_id)
    lost = draw.choice(nodes)
    begin = time.monotonic()
    lose_disk(cluster, lost)
    cluster.workers.pop(lost)
    cluster.start_worker(spare, [DEVICE])
    cluster.wait_for(lambda: len(cluster.event_messages("plan", job_id)) > plans, 120, "another plan")
    seconds = time.monotonic() - begin
    went_on = resumed_steps(cluster, job_id)[plans - 1]
    row = {"job": job_id, "lost": lost, "step": int(before["step"]), "newest": step_of(before["newest_checkpoint"]),
           "safe": step_of(before["safe_checkpoint"]), "went_on_from": went_on, "seconds": round(seconds, 1)}
    print("  " + "  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    return row, [node for node in nodes if node != lost] + [spare]


def losses_part(count, seed):
    from check_local_storage import DEVICE, LocalCluster
    draw = random.Random(seed)
    rows, worst, jobs, finished = [], 0.0, 0, 0
    while len(rows) < count:
        jobs += 1
        with LocalCluster() as cluster:
            nodes = ["n1", "n2", "n3"]
            cluster.start({node: [DEVICE] for node in nodes})
            cluster.submit_job("undisturbed", sections(cluster, seed + jobs))
            cluster.wait_for_state("undisturbed", "SUCCEEDED", 300)
            cluster.submit_job("disturbed", sections(cluster, seed + jobs))
            for number in range(min(LOSSES_OF_A_JOB, count - len(rows))):
                row, nodes = lose_one(cluster, "disturbed", nodes, f"n{number + 4}", draw)
                rows.append(row)
            cluster.wait_for_state("disturbed", "SUCCEEDED", 300)
            finished += 1
            alone, curve = cluster.losses("undisturbed"), cluster.losses("disturbed")
            if len(alone) != len(curve):
                raise SystemExit(f"{len(curve)} of {len(alone)} steps are known")
            worst = max([worst] + [abs(a - b) / b for a, b in zip(curve, alone)])
    behind = sum(row["went_on_from"] < row["safe"] for row in rows)
    repeated = sorted(row["newest"] - row["went_on_from"] for row in rows)
    return {"losses": len(rows), "jobs": jobs, "finished": finished, "behind_safe": behind, "worst_loss_difference": worst,
            "steps_behind_newest_median": repeated[len(repeated) // 2], "steps_behind_newest_most": repeated[-1], "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cache", help="not needed here")
    parser.add_argument("--work", default=tempfile.gettempdir(), help="not needed here")
    parser.add_argument("--losses", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    os.environ["MOTLEY_BIN"] = arguments.bin
    result = losses_part(arguments.losses, arguments.seed)
    print(f"{result['losses']} disks lost in {result['jobs']} jobs, {result['finished']} finished; {result['behind_safe']} times behind the "
          f"newest safe checkpoint; losses differ by {result['worst_loss_difference']:.1e} at most (float64); behind the newest published: "
          f"{result['steps_behind_newest_median']} steps in the median, {result['steps_behind_newest_most']} at most")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    sys.exit(0 if result["behind_safe"] == 0 and result["worst_loss_difference"] <= SAME else 1)


if __name__ == "__main__":
    main()
