#!/usr/bin/env python3
"""An example: one job under several strategies on an emulated cluster, each measured beside what was predicted of it.

usage: example.py --example FOLDER --bin FOLDER --cache FOLDER --work FOLDER [--json FILE]
                  [--steps N] [--only ROWS] [--kill | --big]

The folder has cluster.toml (nodes, cards, links, strategies) and job.toml (the job; its data and checkpoint folder are filled in).
"""
import json
import os
import re
import sys
import time

import kill
import script
from cluster import ClusterError
from demo import ENDED, Watcher, measure, print_plan, say, state_of
from example_cluster import as_table_says, read_example, start_cluster
from text import extract_text

JOB_PATIENCE_SECONDS = 300
NO_PLAN = re.compile(r"(no plan|does not fit|do not fit): [^\n\\]*")   # what follows in other lines are ways out
LETTERS = re.compile(r"[^a-z0-9]+")


class Peaks:
    """The most memory that each device said it took while a job ran: a device says nothing of a job whose rank has ended."""

    def __init__(self, cluster):
        self.cluster, self.most = cluster, {}

    def poll(self):
        for device, value in self.cluster.device_gauges("motley_device_memory_peak_bytes").items():
            self.most[device] = max(int(value), self.most.get(device, 0))

    def beside(self, plan):
        """For each device of the plan what was measured beside what was predicted, the one that was predicted fullest first."""
        memory = {d["id"]: int(d["memory_bytes"]) for d in self.cluster.devices()}
        rows = [{"device": rank["device"], "peak_bytes": self.most.get(rank["device"], 0),
                 "predicted_peak_bytes": rank["predicted"]["peak_bytes"]} for rank in ranks_of(plan)]
        return sorted(rows, key=lambda row: -row["predicted_peak_bytes"] / memory[row["device"]])


def ranks_of(plan):
    return [rank for pipeline in plan["pipelines"] for stage in pipeline["stages"] for unit in stage["units"] for rank in unit["ranks"]]


def name_of(entry):
    return entry.get("name", entry["strategy"])


def job_of(name):
    return LETTERS.sub("-", name.lower())


def plan_by_hand(cluster, entry):
    """The plan of an entry that no job can ask its strategy for: at a ZeRO stage, or another row's with even shards."""
    source = job_of(entry["plan_of"])
    if cluster.try_motley("status", source) is None:
        raise ClusterError(f"{name_of(entry)} needs the row {entry['plan_of']} before it: --only {entry['plan_of']},{name_of(entry)}")
    other = ["--strategy", entry["strategy"], "--zero-stage", str(entry["zero_stage"]), "--runnable"] if "zero_stage" in entry else []
    plan = cluster.motley("plan", source, *other)
    plan = plan.get("plan", plan)   # of a strategy's plan there is nothing beside it
    plan.pop("report", None)
    for stage in plan["pipelines"][0]["stages"] if entry.get("shards") == "even" else []:
        ranks = [rank for unit in stage["units"] for rank in unit["ranks"]]
        plan.pop("ownership", None)   # of the shares that were
        for rank in ranks:
            rank["shard_ratio"] = 1 / len(ranks)
    return json.dumps(plan)


def submit(cluster, job_path, job_id, settings):
    values = {key.replace(".", "__"): json.dumps(value) if isinstance(value, bool) else value for key, value in settings.items()}
    try:
        cluster.submit(job_path, job_id, **values)
    except ClusterError as error:
        if f"job {job_id} failed: " not in str(error):   # a plan that does not fit fails at once, and the job says why
            raise


def run(cluster, job_path, text_path, entry, steps):
    """One strategy's row. A plan that does not fit is a row too."""
    steps = min(steps, entry.get("steps", steps))
    name = name_of(entry)
    job_id = job_of(name)
    say()
    say(f"{name}: {entry['what']} ({steps} steps)")
    settings = {"planner.strategy": entry["strategy"], "training.steps": steps, "data.path": text_path,
                "checkpoint.folder": cluster.path("checkpoints", job_id), **entry.get("set", {})}
    if "plan_of" in entry:
        settings["planner.plan_json"] = plan_by_hand(cluster, entry)
    submit(cluster, job_path, job_id, settings)
    watcher, peaks = Watcher(cluster, job_id), Peaks(cluster)

    def ended():
        peaks.poll()
        return state_of(watcher.poll()) in ENDED

    cluster.wait_for(ended, JOB_PATIENCE_SECONDS, f"the end of {job_id}", poll_seconds=0.4)
    job = cluster.job(job_id)
    if state_of(job) != "SUCCEEDED":
        reason = job.get("reason", "")
        no_plan = NO_PLAN.search(reason)
        if not no_plan:
            raise ClusterError(f"job {job_id} {state_of(job).lower()}: {reason}")
        return {"strategy": name, "fits": False, "why": no_plan.group()}
    print_plan(cluster, job_id)
    records = cluster.steps(job_id)
    devices = peaks.beside(cluster.motley("plan", job_id)["plan"])
    # The row has both numbers of one device, the one that was predicted fullest; step records are of whichever is fullest.
    return {"strategy": name, "fits": True, **measure(records), "loss_last": records[-1]["loss"], "devices": devices,
            "peak_bytes": devices[0]["peak_bytes"], "predicted_peak_bytes": devices[0]["predicted_peak_bytes"],
            "fullest_device": devices[0]["device"]}


def print_table(rows):
    width = max(len(row["strategy"]) for row in rows) + 2
    print(f"\n  {'':<{width}}tokens/s   step      predicted   error   peak memory   predicted   loss")
    for row in rows:
        if not row["fits"]:
            print(f"  {row['strategy']:<{width}}{row['why']}")
            continue
        error = row["step_seconds"] / row["predicted_step_seconds"] - 1
        print(f"  {row['strategy']:<{width}}{row['tokens_per_second']:8.0f}   {row['step_seconds']:6.3f} s   {row['predicted_step_seconds']:6.3f} s"
              f"  {error:+6.2%}   {row['peak_bytes'] / 2**20:7.1f} MiB  {row['predicted_peak_bytes'] / 2**20:7.1f} MiB"
              f"   {row['loss_last']:.6f}")
    ran = [row for row in rows if row["fits"]]
    if not ran:
        return
    first, others = ran[0], ran[1:]
    print()
    for row in others:
        factor = first["tokens_per_second"] / row["tokens_per_second"]
        predicted = row["predicted_step_seconds"] / first["predicted_step_seconds"]
        print(f"  {first['strategy']} is {factor:.2f} times as fast as {row['strategy']} (predicted {predicted:.2f})")
    sys.stdout.flush()


def rows_asked(example, only):
    names = [name_of(entry) for entry in example["strategy"]]
    asked = only.split(",") if only else names
    if unknown := set(asked) - set(names):
        raise SystemExit(f"demo: no row {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return [entry for entry in example["strategy"] if name_of(entry) in asked]


def example_asked(arguments, name):
    """What its cluster.toml says, with --big as its [big] says otherwise."""
    example = read_example(arguments.example)
    if arguments.kill and "kill" not in example:
        raise SystemExit(f"demo: example {name} kills no node: its cluster.toml has no [kill]")
    if not arguments.big:
        return example
    if "big" not in example:
        raise SystemExit(f"demo: example {name} has no model that is too big for its cards: its cluster.toml has no [big]")
    return as_table_says(example, "big", arguments.example)


def run_all(cluster, arguments):
    begin = time.monotonic()
    name = os.path.basename(os.path.abspath(arguments.example))
    example = example_asked(arguments, name)
    job_path = os.path.abspath(os.path.join(arguments.example, "job.toml"))
    text_path = extract_text(arguments.cache)
    result = {"schema_version": 1, "example": name}
    if arguments.kill:
        result["kill"] = kill.run(cluster, example, job_path, text_path, arguments)
    else:
        entries = rows_asked(example, arguments.only)
        start_cluster(cluster, example)
        result["strategies"] = [run(cluster, job_path, text_path, entry, arguments.steps or example["steps"]) for entry in entries]
    return result | {"setup_seconds": arguments.setup_seconds, "total_seconds": arguments.setup_seconds + time.monotonic() - begin}


def print_result(result):
    if "kill" in result:
        kill.print_rows(result["kill"])
    else:
        print_table(result["strategies"])


def main():
    parser = script.parser_of("one of Motley's examples")
    parser.add_argument("--example", required=True, help="its folder")
    parser.add_argument("--steps", type=int, default=0, help="of each row, in place of the example's")
    parser.add_argument("--only", default="", help="these rows, separated by commas; with --kill float32 or float64")
    parser.add_argument("--kill", action="store_true", help="in place of the table: a node is killed and comes back")
    parser.add_argument("--big", action="store_true", help="a model that the cards hold only with state in the hosts' memory")
    arguments = parser.parse_args()
    if arguments.kill and arguments.big:
        parser.error("--kill and --big are two examples; leave out one of them")
    if arguments.steps == 1:
        parser.error("--steps: at least 2; a device's memory is read while the next step runs")
    return script.run(arguments, lambda cluster: run_all(cluster, arguments), print_result)


if __name__ == "__main__":
    sys.exit(main())
