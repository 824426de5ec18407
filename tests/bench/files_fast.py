"""A job that saves every step, faster than copies are made: the most that each disk held meanwhile, and what is left over."""
import os
import re
import threading
import time

from check_local_storage import LocalCluster, wait_until_safe
from files_common import FAST_DEVICE, NODES, SHORT, checkpoints_folder, event_times, place_of, say, step_of
from harness import published_checkpoints

KEEP = 2
MOST_OWN, MOST_COPIES = KEEP + 3, KEEP + 1
LOOK_SECONDS = 0.03
SETTLE_SECONDS = 30
# A step takes what it takes, or about half a second: copies of a checkpoint take a second at first.
PACES = {"as fast as steps are": FAST_DEVICE, "two a second": {**FAST_DEVICE, "flops_per_second": 3e8}}


class Disk:
    """What one node's disk has of the job, look by look: files of ranks, each counted once however many names it has."""

    def __init__(self, node):
        self.node, self.rank, self.part_bytes = node, None, 0
        self.most_bytes, self.most_own, self.most_copies, self.names = 0, 0, 0, []   # `names`: of own files, when it had the most

    def look(self, folder):
        own, copies, seen = {}, {}, set()
        for entry in files_beneath(folder):
            found = re.fullmatch(r"rank-(\d+)\.bin(\.part)?", os.path.basename(entry))
            try:
                status = os.stat(entry)
            except FileNotFoundError:
                continue   # deleted meanwhile
            if not found or status.st_ino in seen:
                continue
            seen.add(status.st_ino)
            (own if int(found.group(1)) == self.rank else copies)[entry] = min(status.st_blocks * 512, status.st_size)
            if not found.group(2):
                self.part_bytes = max(self.part_bytes, status.st_size)
        if len(own) > self.most_own:
            self.most_own, self.names = len(own), sorted(os.path.relpath(path, folder) for path in own)
        self.most_bytes = max(self.most_bytes, sum(own.values()) + sum(copies.values()))
        self.most_copies = max(self.most_copies, len(copies))


def files_beneath(folder):
    return [os.path.join(path, name) for path, _, names in os.walk(folder) for name in names]


class Watch(threading.Thread):
    """Looks at all disks until it is told to stop."""

    def __init__(self, cluster, job):
        super().__init__(daemon=True)
        self.cluster, self.job, self.over, self.looks = cluster, job, threading.Event(), 0
        self.disks = {node: Disk(node) for node in NODES}

    def run(self):
        while not self.over.wait(LOOK_SECONDS):
            for node, disk in self.disks.items():
                folder = checkpoints_folder(self.cluster, node, self.job)
                if folder and disk.rank is None:
                    disk.rank = own_rank(folder)
                if folder and disk.rank is not None:
                    disk.look(folder)
            self.looks += 1


def own_rank(folder):
    """That which writes here: the first file beneath it is no copy, as there was nothing to copy. None: there is none yet."""
    numbers = [found.group(1) for path in files_beneath(folder)
               if (found := re.fullmatch(r"rank-(\d+)\.bin", os.path.basename(path)))]
    return int(numbers[0]) if len(numbers) == 1 else None


def left_over(cluster, job):
    """Paths on all disks that are of no checkpoint that should be kept: the newest, and the newest that were safe."""
    safe = {found.group(0) for _, message in event_times(cluster, "checkpoint_safe", job)
            if (found := re.search(r"step-\d+-gen-\d+", message))}
    kept = {*sorted(safe, key=place_of)[-KEEP:], cluster.job(job)["newest_checkpoint"]}
    found = []
    for node in NODES:
        folder = checkpoints_folder(cluster, node, job)
        published = {name for _, _, name in published_checkpoints(folder)}
        found += [os.path.join(node, name) for name in os.listdir(folder) if name not in kept | {"tb", "steps"}]
        found += [os.path.join(node, name, file) for name in published & kept for file in os.listdir(os.path.join(folder, name))
                  if not re.fullmatch(r"manifest\.json|mark|rank-\d+\.bin", file)]
        found += files_beneath(os.path.join(os.path.dirname(folder), "resume"))
    return found


def measure(saves, device):
    with LocalCluster() as cluster:
        cluster.start({node: [device] for node in NODES})
        # In float64, 31 MB: copies begin with 10 MB a second for each node.
        cluster.submit_job("fast", cluster.sections(model__flavor="text-small", training__steps=saves, checkpoint__interval=1,
                                                    checkpoint__keep_latest_k=KEEP, **SHORT))
        watch = Watch(cluster, "fast")
        watch.start()
        said = 0
        while cluster.job("fast")["state"].upper() != "SUCCEEDED":
            job = cluster.job("fast")
            if int(job["step"]) >= said + 20:
                said = int(job["step"])
                say(step=said, safe=step_of(job["safe_checkpoint"]), looks=watch.looks,
                    own_files={node: disk.most_own for node, disk in watch.disks.items()},
                    copies={node: disk.most_copies for node, disk in watch.disks.items()})
            time.sleep(0.2)
        cluster.wait_for_state("fast", "SUCCEEDED")
        wait_until_safe(cluster, "fast")
        deadline = time.monotonic() + SETTLE_SECONDS
        while left_over(cluster, "fast") and time.monotonic() < deadline:
            time.sleep(0.2)
        watch.over.set()
        watch.join()
        return watch, left_over(cluster, "fast"), len(event_times(cluster, "checkpoint_safe", "fast")), len(
            event_times(cluster, "checkpoint", "fast"))


def one_pace(name, saves, device):
    watch, left, safe, saved = measure(saves, device)
    disks = list(watch.disks.values())
    # A node has one own file of each checkpoint, and with one copy of each file one other node's at most, of about the same size.
    most = max(disk.most_bytes / disk.part_bytes for disk in disks)
    own, copies = max(disk.most_own for disk in disks), max(disk.most_copies for disk in disks)
    print(f"fast: {saved} saves, one a step, {name}, of which {safe} were copied: a disk held at most {own} own parts (goal "
          f"{MOST_OWN}) and {copies} copies (goal {MOST_COPIES}), begun ones counted, and bytes of {most:.2f} parts at once "
          f"(goal {MOST_OWN + MOST_COPIES}), in {watch.looks} looks; {len(left)} files left over (goal 0)", flush=True)
    print(f"  the most own parts: {max(disks, key=lambda disk: disk.most_own).names}", flush=True)
    for path in left:
        print(f"    left over: {path}", flush=True)
    of_disks = {disk.node: {"own": disk.most_own, "copies": disk.most_copies, "bytes": disk.most_bytes,
                            "part_bytes": disk.part_bytes, "names": disk.names} for disk in disks}
    return {"saves": saved, "safe": safe, "looks": watch.looks, "most_parts_of_bytes": most, "goal_own": MOST_OWN,
            "goal_copies": MOST_COPIES, "disks": of_disks, "within_goal": most <= MOST_OWN + MOST_COPIES, "left_over": left}


def fast_part(arguments):
    """How much is on disks meanwhile is a matter of how soon something is deleted, of time: what is left over is none."""
    saves = arguments.count or 200
    results = {name: one_pace(name, saves, device) for name, device in PACES.items()}
    return {**results, "correct": not any(result["left_over"] for result in results.values())}
