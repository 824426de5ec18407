#!/usr/bin/env python3
"""Predicted against measured step time on emulated clusters, for plans of different kinds: real processes, tensors and collectives.

usage: predictions_bench.py --bin FOLDER --cache FOLDER --work FOLDER [--json FILE]

Run it on a quiet machine: whatever else computes here is measured too.
"""
import argparse
import json
import os
import shutil
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "deploy", "demo"))
import setting  # noqa: E402
from cluster import Cluster, ClusterError  # noqa: E402
from text import extract_text  # noqa: E402

STEPS, WARM_UP_STEPS = 9, 2
MEAN_GOAL, WORST_GOAL = 0.02, 0.05
ENDED = {"SUCCEEDED", "FAILED", "STOPPED"}
CARDS = [card for cards in setting.CARDS.values() for card in cards]


def by_hand(template, batches, sizes, shares, recompute):
    """A plan of one stage over the template's devices; predictions and placement are the coordinator's business."""
    units = template["pipelines"][0]["stages"][0]["units"]
    assert len(units) == len(batches), f"{len(units)} devices in the template"
    for unit, batch, size, share, policy in zip(units, batches, sizes, shares, recompute):
        unit["microbatches"] = [size] * (batch // size) + ([batch % size] if batch % size else []) if batch else []
        unit["ranks"] = [{"device": unit["ranks"][0]["device"], "recompute": policy, "shard_ratio": share}]
    stage = {"ministages": template["pipelines"][0]["stages"][0]["ministages"], "units": units}
    return {"schema_version": template["schema_version"], "strategy": "by hand", "global_batch": template["global_batch"],
            "seq_len": template["seq_len"], "pipelines": [{"stages": [stage]}]}


# name: (strategy, settings) or (batches, microbatch sizes, shares, recompute) of A6000, L4, L4, P40, P100; the batch is 71.
PLANS = {
    "even": ("even", {}),
    "cephalo": ("cephalo", {}),
    "cephalo, all recomputed": ("cephalo", {"planner__recompute": "full"}),
    "uneven shards": ([27, 21, 11, 7, 5], [9, 7, 11, 7, 5], [.05, .10, .20, .30, .35], ["none"] * 5),
    "a device that only stores": ([30, 22, 12, 7, 0], [15, 11, 6, 7, 1], [.10, .15, .15, .20, .40], ["none"] * 5),
    "a device that only computes, recomputed in part": ([26, 20, 12, 8, 5], [13, 5, 4, 4, 5], [.4, .3, .3, .0, .0],
                                                        ["none", "full", "none", "full", "none"]),
}


def run(cluster, text_path, name, plan, template):
    job_id = "p" + "".join(c for c in name if c.isalnum())
    by_strategy = isinstance(plan[0], str)
    strategy, settings = plan if by_strategy else ("cephalo", {})
    job_path = cluster.path(f"{job_id}.toml")
    with open(job_path, "w", encoding="utf-8") as file:
        file.write(setting.job_file(text_path, cluster.path("checkpoints", job_id), strategy, STEPS, 0))
    if not by_strategy:
        settings = {"planner__plan_json": json.dumps(by_hand(json.loads(json.dumps(template)), *plan))}
    cluster.submit(job_path, job_id, **settings)
    job = cluster.wait_for(lambda: (lambda j: j if state_of(j) in ENDED else None)(cluster.job(job_id)), 300, f"the end of {name}",
                           poll_seconds=0.5)
    if state_of(job) != "SUCCEEDED":
        raise ClusterError(f"{name}: {state_of(job).lower()}: {job.get('reason', '')}")
    steady = cluster.steps(job_id)[WARM_UP_STEPS:]
    return (statistics.median(r["step_seconds"] for r in steady), steady[-1]["predicted_step_seconds"],
            cluster.motley("plan", job_id)["plan"])


def state_of(job):
    return job["state"].upper()


def measure(cluster, arguments):
    text_path = extract_text(arguments.cache)
    cluster.start_coordinator()
    for node, cards in setting.CARDS.items():
        cluster.start_worker(node, setting.devices(cards), setting.EMULATION)
    cluster.wait_for_nodes(setting.CARDS)
    rows, errors, template = [], [], None
    print(f"{'plan':<50} {'predicted':>10} {'measured':>10} {'error':>7}", flush=True)
    for name, plan in PLANS.items():
        measured, predicted, ran = run(cluster, text_path, name, plan, template)
        template = template or ran
        errors.append(abs(measured / predicted - 1))
        print(f"{name:<50} {predicted:8.3f} s {measured:8.3f} s {measured / predicted - 1:+7.1%}", flush=True)
        rows.append({"name": name, "value": measured / predicted - 1, "unit": "error of step time", "goal": WORST_GOAL,
                     "met": errors[-1] <= WORST_GOAL, "limit": "0"})
    mean = statistics.mean(errors)
    print(f"mean error {mean:.2%} (goal {MEAN_GOAL:.0%}), largest {max(errors):.2%} (goal {WORST_GOAL:.0%})")
    rows.append({"name": "mean", "value": mean, "unit": "error of step time", "goal": MEAN_GOAL, "met": mean <= MEAN_GOAL, "limit": "0"})
    return rows


def main():
    parser = argparse.ArgumentParser(description="predicted against measured step time on emulated devices")
    for name in ("bin", "cache", "work"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--json", help="file for the rows")
    arguments = parser.parse_args()
    with Cluster(arguments.bin, arguments.work, file_roots=[arguments.cache]) as cluster:
        try:
            rows = measure(cluster, arguments)
        except ClusterError as error:
            print(f"predictions: {error}\npredictions: logs are in {arguments.work}", file=sys.stderr)
            return 70
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"rows": rows}, file, indent=2)
            file.write("\n")
    shutil.rmtree(arguments.work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
