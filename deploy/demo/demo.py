#!/usr/bin/env python3
"""The demo: the same job under `even` and under `cephalo` on five unequal devices, then a node killed and one joined.

usage: demo.py --bin FOLDER --cache FOLDER --work FOLDER [--json FILE]
"""
import math
import signal
import statistics
import sys
import time

import script
import setting
from cluster import ClusterError
from text import extract_text

EVEN_STEPS = 6
PLANNED_STEPS = 40
MEASURED_STEPS = 22        # of the planned run, before the node is killed
STEPS_AFTER_CHANGE = 5
WARM_UP_STEPS = 2          # not measured: caches and the allocator fill
JOB_PATIENCE_SECONDS = 240
ENDED = {"SUCCEEDED", "FAILED", "STOPPED"}
VALIDATION = ("validation_loss", "validation_perplexity", "validation_bits_per_byte")
STARTED = time.monotonic()


def say(line=""):
    print(f"{time.monotonic() - STARTED:6.1f} s  {line}" if line else "", flush=True)


def state_of(job):
    return job["state"].upper()


class Watcher:
    """Prints a job's new events and steps as they come; of many steps each `every`th, and those with a validation."""

    def __init__(self, cluster, job_id, every=1, poll_seconds=0.4):
        self.cluster, self.job_id, self.every, self.poll_seconds = cluster, job_id, every, poll_seconds
        self.printed_step = (0, 0)
        self.printed_event = max([int(e["sequence"]) for e in cluster.events()], default=0)
        self.reason = ""

    def poll(self):
        job = self.cluster.job(self.job_id)
        for record in self.cluster.motley("metrics", self.job_id).get("steps", []):
            position = (int(record.get("generation", 0)), int(record["step"]))
            if position > self.printed_step:
                self.printed_step = position
                if position[1] % self.every == 0 or record.get("validation_loss") is not None:
                    say(step_line(record))
        for event in self.cluster.events(self.job_id):
            if int(event["sequence"]) > self.printed_event:
                self.printed_event = int(event["sequence"])
                say(f"· {event['kind']}: {event.get('message', '')}")
        return job

    def until(self, what, condition, seconds=JOB_PATIENCE_SECONDS):
        """Polls until condition(job) holds; ends the demo when the job fails first."""
        def ready():
            job = self.poll()
            if state_of(job) in {"FAILED", "STOPPED"}:
                raise ClusterError(f"job {self.job_id} {state_of(job).lower()}: {job.get('reason', '')}")
            return condition(job)

        self.cluster.wait_for(ready, seconds, what, poll_seconds=self.poll_seconds)

    def until_step(self, step):
        self.until(f"step {step} of {self.job_id}", lambda job: int(job.get("step", 0)) >= step or state_of(job) in ENDED)


def step_line(r):
    line = (f"step {int(r['step']):3d}  loss {r['loss']:.4f}  |g| {r['grad_norm']:.3f}  lr {r['lr']:.2e}  {r['tokens_per_second']:.0f} tokens/s"
            f"  step {r['step_seconds']:.2f} s (predicted {r['predicted_step_seconds']:.2f})")
    if r.get("validation_loss") is not None:
        line += f"  validation loss {validation_text(r)}"
    return line


def validation_text(r):
    """As `motley status` says it."""
    loss, perplexity, bits = (r[key] for key in VALIDATION)
    bits_text = "" if bits is None else f"; {bits:.2f} bits a byte"
    return f"{loss:.4f} (perplexity {math.inf if perplexity is None else perplexity:.2f}{bits_text})"


def measure(records):
    """Medians over an undisturbed run; the first steps warm up."""
    steady = records[WARM_UP_STEPS:] or records
    seconds = statistics.median(r["step_seconds"] for r in steady)
    tokens = statistics.median(r["tokens_per_second"] * r["step_seconds"] for r in steady)
    return {"tokens_per_second": tokens / seconds, "step_seconds": seconds,
            "predicted_step_seconds": steady[-1]["predicted_step_seconds"]}


def start_cluster(cluster):
    cluster.start_coordinator()
    for node, cards in setting.CARDS.items():
        cluster.start_worker(node, setting.devices(cards), setting.EMULATION)
    cluster.wait_for_nodes(setting.CARDS)
    described = "; ".join(f"{node}: {' + '.join(cards)}" for node, cards in setting.CARDS.items())
    say(f"a coordinator at {cluster.address} and three workers ({described})")
    say(f"watch them in a browser: {cluster.motley('open')['url']}")


def submit(cluster, arguments, text_path, strategy, steps, checkpoint_interval):
    job_id = f"demo-{strategy}"
    job_path = cluster.path(f"{job_id}.toml")
    with open(job_path, "w", encoding="utf-8") as file:
        file.write(setting.job_file(text_path, cluster.path("checkpoints", strategy), strategy, steps, checkpoint_interval))
    cluster.submit(job_path, job_id)
    return Watcher(cluster, job_id)


def run_even(cluster, arguments, text_path):
    say()
    say(f"even: what FSDP does, every device the same share ({EVEN_STEPS} steps)")
    watcher = submit(cluster, arguments, text_path, "even", EVEN_STEPS, 0)
    watcher.until("the even job's end", lambda job: state_of(job) in ENDED)
    return measure(cluster.steps(watcher.job_id))


def print_plan(cluster, job_id):
    text = cluster.run_motley("plan", job_id, "--explain").stdout
    for line in text.rstrip().splitlines():
        say(f"| {line}")


def run_planned(cluster, arguments, text_path):
    """Returns (measurement, watcher); the job is still running."""
    say()
    say(f"cephalo: batches by speed, training state by free memory ({PLANNED_STEPS} steps)")
    watcher = submit(cluster, arguments, text_path, "cephalo", PLANNED_STEPS, 10)
    watcher.until_step(1)
    print_plan(cluster, watcher.job_id)
    watcher.until_step(MEASURED_STEPS)
    return measure([r for r in cluster.steps(watcher.job_id) if int(r["step"]) <= MEASURED_STEPS]), watcher


def change_nodes(cluster, watcher):
    """Kills one node and lets another join while the job runs on. Returns the events that say what it cost, and the steps."""
    job = cluster.job(watcher.job_id)
    epoch, marks = int(job["generation"]), [[int(job["step"]), f"node {setting.LOST_NODE} killed"]]
    say()
    say(f"kill -9 of the worker of node {setting.LOST_NODE}")
    cluster.workers[setting.LOST_NODE].kill(signal.SIGKILL)
    continue_after_change(cluster, watcher, epoch, "after the loss")

    job = cluster.job(watcher.job_id)
    epoch = int(job["generation"])
    marks.append([int(job["step"]), f"node {setting.SPARE_NODE} joins"])
    say()
    say(f"node {setting.SPARE_NODE} ({' + '.join(setting.SPARE_CARDS)}) joins")
    cluster.start_worker(setting.SPARE_NODE, setting.devices(setting.SPARE_CARDS), setting.EMULATION)
    continue_after_change(cluster, watcher, epoch, "after the join")
    watcher.until("the cephalo job's end", lambda job: state_of(job) in ENDED)
    changed = {setting.LOST_NODE, setting.SPARE_NODE}
    events = [e for e in cluster.events() if (e["kind"] == "replan" and e.get("job_id") == watcher.job_id) or
              (e["kind"] in {"node_lost", "node_left", "node_joined"} and e.get("node") in changed)]
    joined_first = min((int(e["sequence"]) for e in events if e["kind"] == "node_joined" and e["node"] == setting.LOST_NODE), default=None)
    return [{key: e.get(key) for key in ("kind", "unix_ms", "generation", "message")} for e in events if int(e["sequence"]) != joined_first], marks


def continue_after_change(cluster, watcher, epoch, what):
    def steps_in_new_epoch(job):
        if state_of(job) in ENDED:
            return True
        new = [r for r in cluster.motley("metrics", watcher.job_id).get("steps", []) if int(r.get("generation", 0)) > epoch]
        return len(new) >= STEPS_AFTER_CHANGE

    watcher.until(f"{STEPS_AFTER_CHANGE} steps {what}", steps_in_new_epoch)


def describe_devices(devices):
    return [{"id": d["id"], "model": d["model"], "memory_bytes": int(d["memory_bytes"]),
             "declared_flops_per_second": d["declared_flops_per_second"],
             "standalone_tokens_per_second": d["measured_tokens_per_second"]} for d in devices]


def print_table(result):
    even, planned, total = result["even"], result["planned"], result["standalone_sum_tokens_per_second"]
    say()
    print("  device      card    memory     alone, without the memory cap")
    for d in result["devices"]:
        print(f"  {d['id']:<11} {d['model']:<7} {d['memory_bytes'] / 2**20:6.0f} MiB {d['standalone_tokens_per_second']:7.0f} tokens/s")
    print(f"  {'sum of the devices alone':<31} {total:7.0f} tokens/s\n")
    print(f"  {'':<10} tokens/s   of the sum   step      predicted   error")
    for name, run in (("even", even), (planned["strategy"], planned)):
        error = run["step_seconds"] / run["predicted_step_seconds"] - 1
        print(f"  {name:<10} {run['tokens_per_second']:8.0f}   {run['tokens_per_second'] / total:8.1%}   {run['step_seconds']:6.3f} s"
              f"   {run['predicted_step_seconds']:6.3f} s   {error:+.1%}")
    print(f"\n  {planned['strategy']} is {planned['tokens_per_second'] / even['tokens_per_second']:.2f} times as fast as even.")
    print(f"  loss {planned['loss_first']:.4f} -> {planned['loss_last']:.4f}, validation loss {validation_text(planned)}\n")
    for event in result["events"]:
        print(f"  {event['kind']}: {event['message']}")
    sys.stdout.flush()


def demo(cluster, arguments):
    text_path = extract_text(arguments.cache)
    start_cluster(cluster)
    even = run_even(cluster, arguments, text_path)
    planned, watcher = run_planned(cluster, arguments, text_path)
    devices = cluster.devices()
    events, marks = change_nodes(cluster, watcher)
    records = cluster.steps(watcher.job_id)
    validations = [r for r in records if r.get("validation_loss") is not None]
    described = describe_devices([d for d in devices if d["id"].split("/")[0] in setting.CARDS])
    return {"schema_version": 1, "devices": described, "even": even,
            "planned": {"strategy": "cephalo", **planned, "loss_first": records[0]["loss"], "loss_last": records[-1]["loss"],
                        **{key: validations[-1][key] if validations else None for key in VALIDATION}},
            "standalone_sum_tokens_per_second": sum(d["standalone_tokens_per_second"] for d in described),
            "events": events,
            "losses": [[int(r["step"]), r["loss"]] for r in records], "marks": marks,
            "setup_seconds": arguments.setup_seconds, "total_seconds": arguments.setup_seconds + time.monotonic() - STARTED}


def main():
    arguments = script.parser_of("Motley's demo").parse_args()
    return script.run(arguments, lambda cluster: demo(cluster, arguments), print_table)


if __name__ == "__main__":
    sys.exit(main())
