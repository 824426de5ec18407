"""A job goes on with one plan after another: what its nodes bring, beside the blocks that each one's ranks own and it lacks.

Bytes are those of IP packets that leave the files processes' ports. What must move is counted without asking the product: by the
manifest from which the job went on and the one that its next plan saved, whose pieces are what each node's ranks own.
"""
import json
import os
import random

from check_local_storage import DEVICE
from files_common import NODES, FilesTraffic, LinkedCluster, SHORT, checkpoints_folder, manifest_of, network_refusal, say, step_of
from harness import state_of

BLOCK = 4 << 20
ELEMENT_BYTES = {"float32": 4, "float64": 8}
STRATEGIES = ("even", "fsdp", "megatron", "cephalo", "zorse", "poplar", "hexiscale", "baton")
DEVICES = {node: [{**DEVICE, "flops_per_second": speed}] for node, speed in zip(NODES, (8e10, 4e10, 2e10))}
MOST_OVER_LEAST = 1.05


def blocks_of(piece, owned, element_bytes):
    """Of the piece's file: the blocks with an element of these ranges."""
    found = set()
    for begin, end in owned:
        begin, end = max(begin, piece["begin"]), min(end, piece["end"])
        if begin < end:
            first = piece["offset"] + (begin - piece["begin"]) * element_bytes
            last = piece["offset"] + (end - piece["begin"]) * element_bytes - 1
            found.update(range(first // BLOCK, last // BLOCK + 1))
    return found


def overlap(piece, owned):
    return sum(max(0, min(end, piece["end"]) - max(begin, piece["begin"])) for begin, end in owned)


def least_bytes(before, after):
    """What nodes of the newer manifest lack of other nodes' files and their ranks own: bytes of whole blocks, and of it alone."""
    of_blocks, alone, element_bytes = 0, 0, ELEMENT_BYTES[before["dtype"]]
    for node in {entry["node"] for entry in after["files"]}:
        owned = {}
        for entry in after["files"]:
            for piece in entry["pieces"] if entry["node"] == node else ():
                owned.setdefault((piece["unit"], piece["tensor"]), []).append((piece["begin"], piece["end"]))
        for entry in before["files"]:
            if entry["node"] == node:
                continue
            pieces = [(piece, owned.get((piece["unit"], piece["tensor"]), [])) for piece in entry["pieces"]]
            blocks = set().union(*(blocks_of(piece, ranges, element_bytes) for piece, ranges in pieces))
            of_blocks += sum(min(BLOCK, entry["bytes"] - block * BLOCK) for block in blocks)
            alone += sum(overlap(piece, ranges) for piece, ranges in pieces) * element_bytes
    return of_blocks, alone


class Replanned:
    def __init__(self, cluster, job):
        self.cluster, self.job, self.traffic = cluster, job, FilesTraffic(cluster, NODES)
        cluster.submit_job(job, cluster.sections(model__flavor="text-medium", training__steps=100_000, training__dtype="float32",
                                                 checkpoint__interval=0, checkpoint__copies=0, **SHORT))
        self.stop_behind(1)

    def stop_behind(self, step):
        def there():
            job = self.cluster.job(self.job)
            if state_of(job) in {"FAILED", "STOPPED"}:
                raise SystemExit(f"{self.job} is {state_of(job)}: {job['reason']}")
            return int(job["step"]) >= step and state_of(job) == "RUNNING"

        self.cluster.wait_for(there, 120, f"step {step} of {self.job}", poll_seconds=0.05)
        self.cluster.motley("stop", self.job)
        self.cluster.wait_for_state(self.job, "STOPPED", 60)
        self.cluster.wait_for(self.traffic.look, 30, "files processes on all nodes")

    def newest(self):
        """(step, manifest)"""
        name = self.cluster.job(self.job)["newest_checkpoint"]
        folders = [os.path.join(checkpoints_folder(self.cluster, node, self.job), name) for node in NODES]
        has_it = next(folder for folder in folders if os.path.exists(os.path.join(folder, "manifest.json")))
        return step_of(name), manifest_of(has_it)

    def go_on(self, *settings):
        """Bytes that moved, and the least: of whole blocks, and of what is owned alone."""
        step, before = self.newest()
        bytes_before = self.traffic.total()
        self.cluster.motley("resume", self.job, *(word for setting in settings for word in ("--set", setting)))
        self.stop_behind(step + 1)
        moved = self.traffic.total() - bytes_before
        return moved, *least_bytes(before, self.newest()[1])

    def shares_drawn(self, draw):
        """A plan by hand: that of `even`, with other parts of the state for each device."""
        plan = json.loads(self.cluster.run_motley("plan", self.job, "-o", "json").stdout)
        plan = plan.get("plan", plan)
        plan.pop("ownership", None)
        ranks = [rank for stage in plan["pipelines"][0]["stages"] for unit in stage["units"] for rank in unit["ranks"]]
        drawn = [draw.random() + 0.05 for _ in ranks]
        for rank, share in zip(ranks, drawn):
            rank["shard_ratio"] = share / sum(drawn)
        return json.dumps(plan)


def settings_drawn(number, replanned, draw):
    """What it is called, and settings of the job."""
    exclude = draw.choice(["", "", *NODES])
    if number % 2 == 0:
        strategy = STRATEGIES[number // 2 % len(STRATEGIES)]
        settings = [f"planner.strategy={strategy}", f"planner.exclude={exclude}", "planner.plan_json="]
        return f"{strategy} without {exclude or 'none'}", settings
    return "shares by hand", ["planner.plan_json=" + replanned.shares_drawn(draw), "planner.exclude="]


def measure(count, draw):
    with LinkedCluster(NODES) as cluster:
        cluster.start(DEVICES)
        replanned, rows = Replanned(cluster, "replanned"), []
        even = ["planner.strategy=even", "planner.exclude=", "planner.plan_json="]
        for number in range(count):
            if number % 2 == 1:
                replanned.go_on(*even)   # whose plan is the one that is changed by hand
            what, settings = settings_drawn(number, replanned, draw)
            moved, least, alone = replanned.go_on(*settings)
            same = replanned.go_on(*settings)[0]
            rows.append(say(plan=what, mb_moved=round(moved / 1e6, 2), mb_of_blocks=round(least / 1e6, 2),
                            mb_owned=round(alone / 1e6, 2), over_least=round(moved / least, 4) if least else None,
                            same_plan_again=same) |
                        {"bytes_moved": moved, "bytes_least": least, "bytes_owned": alone})
        return rows


def plans_part(arguments):
    if reason := network_refusal():
        print(f"left out: plans: {reason}", flush=True)
        return {"left_out": reason, "correct": True}
    rows = measure(arguments.count or 20, random.Random(arguments.seed))
    moved, least = sum(row["bytes_moved"] for row in rows), sum(row["bytes_least"] for row in rows)
    worst = max((row["over_least"] for row in rows if row["over_least"]), default=None)
    same = max(row["same_plan_again"] for row in rows)
    over, alone = moved / max(1, least), sum(row["bytes_owned"] for row in rows)
    print(f"plans: {len(rows)} other plans brought {moved / 1e6:.1f} MB, {over:.4f} of the blocks that lacked (goal "
          f"{MOST_OVER_LEAST}), {worst} at most, and {moved / max(1, alone):.2f} of what their ranks own of these; the same plan "
          f"again {same} bytes at most (goal 0)", flush=True)
    return {"plans": len(rows), "bytes_moved": moved, "bytes_least": least, "over_least": over, "over_least_most": worst,
            "same_plan_bytes_most": same, "rows": rows, "correct": same == 0 and over <= MOST_OVER_LEAST}
