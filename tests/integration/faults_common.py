"""What the fault cases share: a slow device, a job on it, and how to see that it goes on."""
import glob
import os
import threading
import time

from harness import expect, job_sections, published_checkpoints, state_of
from cluster import ClusterError, processes
from patience import patience

# Slow enough that a test can act in the middle of a job: whatever the host, a step takes 0.18 s on three of them, 0.27 s on two.
PACED = {"kind": "emulated", "model": "slow", "flops_per_second": 6e8, "memory_bytes": 1 << 30, "link_bytes_per_second": 1e9}


# ./run bench faults --without-folder: jobs name no common folder, and their checkpoints lie on the nodes' disks.
COMMON_FOLDER = True


def paced_job(cluster, job_id, **changes):
    sections = job_sections(cluster, **{"training__steps": 40, "training__dtype": "float64", "checkpoint__interval": 5, **changes})
    if not COMMON_FOLDER:
        del sections["checkpoint"]["folder"]
    cluster.submit_job(job_id, sections)


def rank_of(cluster, node):
    worker = cluster.workers[node].pid
    found = [pid for pid, parent, program in processes() if parent == worker and program.startswith("motley-rank")]
    expect(found, f"node {node} runs no rank")
    return found[0]


def newest_checkpoint(cluster, job_id):
    """The step of the newest published checkpoint on disk; 0 without one."""
    of_disks = glob.glob(os.path.join(glob.escape(cluster.folder), "files-*", "jobs", f"{job_id}.*", "checkpoints"))
    found = [published_checkpoints(folder)[-1:] for folder in [cluster.checkpoints(job_id), *of_disks]]
    return max((step for one in found for _, step, _ in one), default=0)


def last_step(job):
    """(generation, step) of the newest step that was reported."""
    record = job.get("last_step") or {}
    return int(record.get("generation", 0)), int(record.get("step", 0))


def seconds_to_next_step(cluster, job_id, after, limit_seconds):
    """Until a step other than `after` (last_step) is reported. None: it did not come in time. A job that ended is an error."""
    begin = time.monotonic()
    while time.monotonic() - begin < patience(limit_seconds):
        answer = cluster.try_motley("status", job_id)
        if answer is not None:
            expect(state_of(answer) not in {"FAILED", "STOPPED"}, f"job {job_id} is {state_of(answer)}: {answer.get('reason', '')}")
            if last_step(answer) != after:
                return time.monotonic() - begin
        time.sleep(0.05)
    return None


CLOCK_UNITS = {"s", "of a step", "of time"}


def row(name, value, unit, goal, met=None, limit=None, by_clock=None):
    """`by_clock`: what else the machine does decides it, as of all times. ./run bench judges such a row, no test does."""
    return {"name": name, "value": value, "unit": unit, "goal": goal, "met": value <= goal if met is None else met, "limit": limit,
            "by_clock": unit in CLOCK_UNITS if by_clock is None else by_clock}


def holds(one):
    """Whether a test takes a row: what it counts is met, and what it times came at all."""
    return one["value"] is not None if one["by_clock"] else bool(one["met"])


def expect_holds(rows, problems):
    expect(all(holds(one) for one in rows) and not problems, f"{problems}; {[one for one in rows if not holds(one)]}")


class Progress:
    """Says how far a long part is and how long it will last, at most every 30 s."""

    def __init__(self, what, total):
        self.what, self.total, self.done = what, total, 0
        self.begin = self.said = time.monotonic()
        self.lock = threading.Lock()

    def add(self, count=1):
        with self.lock:
            self.done += count
            now = time.monotonic()
            if now - self.said < 30 or self.done >= self.total:
                return
            self.said = now
            left = (now - self.begin) / self.done * (self.total - self.done)
        print(f"    {self.what}: {self.done} of {self.total}, about {left / 60:.0f} min left", flush=True)


def stop_job(cluster, job_id):
    try:
        cluster.run_motley("stop", job_id)
        cluster.wait_for_state(job_id, {"STOPPED", "SUCCEEDED", "FAILED"}, 30)
    except ClusterError:
        pass  # what the case found has been said already
