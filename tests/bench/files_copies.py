"""What a save takes on the nodes' own disks beside one in a common folder, and what the copies of it move.

A job saves every few steps. The time from one step's record to the next is longer by a save; the records are those that rank 0
writes (metrics.step_records), with the node's clock. Jobs of all kinds run by turns, on the same three nodes, whose links have no
limit. Bytes of copies are those of IP packets that leave the files processes' ports, and what was copied is every file of another
node's rank that a disk had whole, as somebody saw who looked all the time.
"""
import glob
import json
import os
import random
import threading

from check_local_storage import wait_until_safe
from harness import published_checkpoints
from files_common import FAST_DEVICE, NODES, SHORT, FilesTraffic, LinkedCluster, checkpoints_folder, event_times, manifest_of, \
    median, model_of, network_refusal, say, share_of, step_files

INTERVAL = 5
SAVES_OF_A_JOB = 5
MOST_STALL, MOST_OVER_LEAST = 1.1, 1.05
KINDS = ("common folder", "own disks", "own disks without copies")


class CopiesSeen(threading.Thread):
    """Looks at all disks for files of other nodes' ranks, until it is told to stop."""

    def __init__(self, cluster, job):
        super().__init__(daemon=True)
        self.cluster, self.job, self.over = cluster, job, threading.Event()
        self.makers, self.sizes, self.seen = {}, {}, {}   # by checkpoint, by its files, and by node and these

    def run(self):
        while not self.over.wait(0.02):
            for node in NODES:
                folder = checkpoints_folder(self.cluster, node, self.job)
                for _, _, name in published_checkpoints(folder or ""):
                    try:
                        self.look(node, name, os.path.join(folder, name))
                    except FileNotFoundError:
                        pass   # deleted meanwhile

    def look(self, node, name, folder):
        if name not in self.makers:
            files = manifest_of(folder)["files"]
            self.makers[name] = {entry["name"]: entry["node"] for entry in files}
            self.sizes.update({(name, entry["name"]): entry["bytes"] for entry in files})
        for file in os.listdir(folder):
            if self.makers[name].get(file, node) != node:
                self.seen[node, name, file] = os.path.getsize(os.path.join(folder, file))

    def end(self):
        """Bytes of files that were copied, and of those whose checkpoint was never safe."""
        self.over.set()
        self.join()
        safe = " ".join(message for _, message in event_times(self.cluster, "checkpoint_safe", self.job))
        # What was safe had a copy of each file, whether somebody looked in time or not.
        seen = {(name, file) for _, name, file in self.seen}
        missed = sum(size for (name, file), size in self.sizes.items() if name in safe and (name, file) not in seen)
        return sum(self.seen.values()) + missed, sum(size for (_, name, _), size in self.seen.items() if name not in safe)


def submit(cluster, job, kind, saves, model):
    changes = {"model__config": model, "training__steps": INTERVAL * saves + 1, "training__dtype": "float32",
               "checkpoint__interval": INTERVAL, "metrics__step_records": "jsonl", **SHORT}
    sections = cluster.sections(**changes)
    for name in ("name", "flavor"):
        del sections["model"][name]
    if kind == "common folder":
        sections["checkpoint"]["folder"] = cluster.checkpoints()
    elif kind == "own disks without copies":
        sections["checkpoint"]["copies"] = 0
    cluster.submit_job(job, sections)


def records_of(cluster, job, kind):
    if kind != "common folder":
        return step_files(cluster, job)
    records = []
    for path in sorted(glob.glob(os.path.join(glob.escape(cluster.checkpoints(job)), "steps", "*.jsonl"))):
        with open(path, encoding="utf-8") as file:
            records += [json.loads(line) for line in file]
    return records


def stalls_of(records):
    """By how much the time to the next step is longer where a save is in it, of each save; and the usual time."""
    at = {record["step"]: record["unix_seconds"] for record in records}
    times = {step: at[step + 1] - at[step] for step in at if step + 1 in at}
    usual = median([seconds for step, seconds in times.items() if step % INTERVAL != 0 and step > 1])
    return [seconds - usual for step, seconds in times.items() if step % INTERVAL == 0], usual


def one_job(cluster, job, kind, saves, model, traffic):
    """A row and the stalls of its saves."""
    before = traffic.total()
    submit(cluster, job, kind, saves, model)
    copies = CopiesSeen(cluster, job)
    copies.start()
    cluster.wait_for_state(job, "SUCCEEDED", 600)
    if kind == "own disks":
        wait_until_safe(cluster, job)
    (copied, in_vain), moved = copies.end(), traffic.total() - before
    stalls, usual = stalls_of(records_of(cluster, job, kind))
    row = say(job=job, of=kind, saves=len(stalls), stall_median=round(median(stalls), 4), usual_step=round(usual, 4),
              mb_copied=round(copied / 1e6, 1), mb_never_safe=round(in_vain / 1e6, 1), mb_moved=round(moved / 1e6, 1))
    return row | {"bytes_copied": copied, "bytes_moved": moved, "bytes_never_safe": in_vain}, stalls


def measure(saves, state_mb, draw):
    """Rows, and the stalls of each kind's saves."""
    with LinkedCluster(NODES) as cluster:
        cluster.start({node: [FAST_DEVICE] for node in NODES})
        model, traffic = model_of(cluster, state_mb), FilesTraffic(cluster, NODES)
        submit(cluster, "first", "own disks without copies", 1, model)   # its profiles are those of all
        cluster.wait_for_state("first", "SUCCEEDED", 300)
        cluster.wait_for(traffic.look, 30, "files processes on all nodes")
        rows, stalls, done = [], {kind: [] for kind in KINDS}, 0
        while done < saves:
            some = min(SAVES_OF_A_JOB, saves - done)
            for kind in draw.sample(KINDS, len(KINDS)):   # what else the machine does meets each of them
                row, more = one_job(cluster, f"{kind.replace(' ', '-')}-{done}", kind, some, model, traffic)
                rows.append(row)
                stalls[kind] += more
            done += some
        return rows, stalls


def copies_part(arguments):
    if reason := network_refusal():
        print(f"left out: copies: {reason}", flush=True)
        return {"left_out": reason, "correct": True}
    rows, stalls = measure(arguments.count or 50, arguments.state_mb, random.Random(arguments.seed))
    medians = {kind: median(of) for kind, of in stalls.items()}
    ratio = medians["own disks"] / medians["common folder"]
    copied, moved, in_vain = (sum(row[key] for row in rows if row["of"] == "own disks")
                              for key in ("bytes_copied", "bytes_moved", "bytes_never_safe"))
    over = moved / copied
    longer = [f"{kind} {seconds * 1000:.0f} ms, {share_of(stalls[kind], 0.9) * 1000:.0f} ms of a tenth"
              for kind, seconds in medians.items()]
    print(f"copies: a state of {arguments.state_mb} MB, {len(stalls['own disks'])} saves of each kind: a step with a save is "
          f"longer by ({'; '.join(longer)}): on own disks {ratio:.2f} of the common folder's (goal {MOST_STALL}); copies of "
          f"{copied / 1e6:.0f} MB moved {over:.4f} of it (goal {MOST_OVER_LEAST}), {in_vain / 1e6:.0f} MB of them of "
          f"checkpoints that never were safe", flush=True)
    return {"state_mb": arguments.state_mb, "saves": len(stalls["own disks"]), "stall_seconds_median": medians,
            "stall_seconds_of_a_tenth": {kind: share_of(of, 0.9) for kind, of in stalls.items()}, "stall_ratio": ratio,
            "stall_ratio_without_copies": medians["own disks without copies"] / medians["common folder"],
            "bytes_copied": copied, "bytes_moved": moved, "bytes_never_safe": in_vain, "over_least": over,
            "rows": rows, "correct": over <= MOST_OVER_LEAST}
