"""The loss curve of one long job through one fault after another, against the same job undisturbed: the same numbers. Of text, or of
packed rows, each with documents and a mask of its own: another row in a step would be another loss."""
import glob
import json
import os
import signal
import stat
import subprocess
import time

from harness import ROOT, expect, job_sections, state_of
from cluster import ClusterError, processes
from mounts import MountsCluster
from packed_rows import chats
from faults_common import PACED, Progress, last_step, rank_of, row, seconds_to_next_step
from patience import patience

NODES = ["n1", "n2", "n3"]
FULL_STEPS = 420
FAULTS = 11
INTERVAL = 5            # steps between checkpoints
MOST_DIFFERENCE = 1e-12
LAYOUT_DIFFERENCE = 1e-13
ROWS = 400
PATIENCE_SECONDS = 60   # of the next step after a fault


class CurveCluster(MountsCluster):
    """Jobs save in the share; ranks of n2 can be made to misread it."""

    def __init__(self):
        super().__init__()
        self.data = {}   # of the jobs, where it is not the text
        self.sign = os.path.join(self.top, "misread")
        library = os.path.join(self.top, "flip_reads.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library,
                        os.path.join(ROOT, "tests", "integration", "flip_reads.c"), "-ldl"], check=True)
        self.misreading_rank = os.path.join(self.top, "misreading-rank")
        with open(self.misreading_rank, "w", encoding="utf-8") as file:
            # By a folder to search: blanks part the names in LD_PRELOAD, and folders may have them.
            file.write(f"#!/bin/sh\nexport FLIP_READS='{self.sign}' LD_LIBRARY_PATH='{self.top}' LD_PRELOAD=flip_reads.so\n"
                       f"exec '{self.program('motley-rank')}' \"$@\"\n")
        os.chmod(self.misreading_rank, stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)

    def use_rows(self):
        self.data = {"data__path": os.path.join(self.top, "rows")}
        data = job_sections(self)
        chats(self.text, data["training"]["seq_len"], ROWS, data["data"]["validation_fraction"]).write(self.data["data__path"])

    def checkpoints(self, job_id=""):
        return os.path.join(self.mount, job_id).rstrip("/")

    def start_node(self, name):
        extra = {"rank_binary": self.misreading_rank} if name == "n2" else {}
        self.start_worker(name, [PACED], **extra)

    def start_again(self, name):
        self.workers[name].process.wait()
        self.start_node(name)

    def records(self, job_id):
        """Every step as often as it was made, in order, however often the coordinator was started again meanwhile."""
        rows = []
        for path in sorted(glob.glob(os.path.join(glob.escape(os.path.join(self.share, job_id)), "steps", "*.jsonl"))):
            with open(path, encoding="utf-8") as file:
                rows += [json.loads(line) for line in file]
        return rows


def submit(cluster, job_id, steps):
    cluster.submit_job(job_id, job_sections(cluster, **{
        "training__steps": steps, "training__dtype": "float64", "checkpoint__interval": INTERVAL, "metrics__step_records": "jsonl",
        **cluster.data}))


def wait_for_rank(cluster, node):
    """The node takes part again: after a loss it is held for a while."""
    def there():
        worker = cluster.workers[node].pid
        return any(parent == worker and program.startswith("motley-rank") for _, parent, program in processes())

    cluster.wait_for(there, PATIENCE_SECONDS, f"a rank on {node}")


# ---- the faults, each with what ends it ----
def killed_rank(cluster, _job):
    os.kill(rank_of(cluster, "n2"), signal.SIGKILL)


def stopped_rank(cluster, _job):
    os.kill(rank_of(cluster, "n3"), signal.SIGSTOP)


def killed_worker(cluster, _job):
    cluster.workers["n1"].kill()
    cluster.start_again("n1")


def joined_node(cluster, _job):
    cluster.start_node("n4")


def unmounted_share(cluster, job):
    """A save goes wrong for n2, a rank dies meanwhile, and the share comes back."""
    wait_for_rank(cluster, "n2")
    known = len(cluster.event_messages("checkpoint_failed", job))
    cluster.unmount("n2", "--lazy")
    cluster.wait_for(lambda: cluster.event_messages("checkpoint_failed", job)[known:], 90, "a save to go wrong")
    os.kill(rank_of(cluster, "n3"), signal.SIGKILL)
    cluster.wait_for_step(job, int(cluster.job(job)["step"]) + 3)
    cluster.remount("n2")
    cluster.workers["n2"].kill()   # it may have been left out for that
    cluster.start_again("n2")


def killed_coordinator(cluster, _job):
    cluster.coordinator.kill()
    cluster.coordinator.process.wait()
    cluster.start_coordinator()
    cluster.wait_for_nodes(NODES)


def leaving_worker(cluster, _job):
    expect(cluster.workers["n4"].stop(patience(30)) == 0, "n4's worker did not end by itself")


def flipped_reads(cluster, job):
    """n2 reads other bytes than there are. The others see them whole: it is left out until its worker is started again."""
    wait_for_rank(cluster, "n2")
    known = len(cluster.event_messages("device_left_out", job))
    with open(cluster.sign, "w", encoding="utf-8"):
        pass
    os.kill(rank_of(cluster, "n3"), signal.SIGKILL)
    cluster.wait_for(lambda: any("n2" in said for said in cluster.event_messages("device_left_out", job)[known:]), 90,
                     "n2, which misreads, to be left out")
    os.unlink(cluster.sign)
    cluster.workers["n2"].kill()
    cluster.start_again("n2")


def drained_node(cluster, _job):
    generation = int(cluster.job(_job)["generation"])
    cluster.motley("nodes", "drain", "n1")
    cluster.wait_for(lambda: int(cluster.job(_job)["generation"]) > generation, 30, "a generation without n1")
    cluster.motley("nodes", "undrain", "n1")


def two_killed_workers(cluster, _job):
    for name in ("n1", "n3"):
        cluster.workers[name].kill()
        time.sleep(0.3)
    for name in ("n1", "n3"):
        cluster.start_again(name)


def ended_coordinator(cluster, _job):
    expect(cluster.coordinator.stop(patience(60)) == 0, "the coordinator did not end by itself")
    cluster.start_coordinator()
    cluster.wait_for_nodes(["n1", "n3"])


# Deaths and new plans.
ON_ROWS = [killed_rank, joined_node, killed_worker, drained_node, killed_coordinator]
SEQUENCE = [killed_rank, flipped_reads, stopped_rank, killed_worker, joined_node, unmounted_share, killed_coordinator, leaving_worker,
            drained_node, two_killed_workers, ended_coordinator]
assert len(SEQUENCE) == FAULTS


def run_undisturbed(cluster, job, steps):
    submit(cluster, job, steps)
    cluster.wait_for_state(job, "SUCCEEDED", 30 + 2 * steps)
    records = cluster.records(job)
    expect([r["step"] for r in records] == list(range(1, steps + 1)), f"{job}: {len(records)} records of {steps} steps")
    return [r["loss"] for r in records]


def worst(curve, other):
    return max(abs(a - b) / abs(b) for a, b in zip(curve, other))


def disturbed(cluster, steps, faults, problems):
    """The job with its faults; the pauses that they made."""
    submit(cluster, "disturbed", steps)
    progress, pauses = Progress("faults", len(faults)), []
    for number, fault in enumerate(faults):
        cluster.wait_for_step("disturbed", (number + 1) * steps // (len(faults) + 1), 300)
        before = last_step(cluster.job("disturbed"))
        begin = time.monotonic()
        fault(cluster, "disturbed")
        paused = seconds_to_next_step(cluster, "disturbed", before, PATIENCE_SECONDS)
        if paused is None:
            problems.append(f"after {fault.__name__} no step was made for {PATIENCE_SECONDS} s: {cluster.job('disturbed').get('reason')}")
        pauses.append((fault.__name__, time.monotonic() - begin))
        progress.add()
    cluster.wait_for_state("disturbed", "SUCCEEDED", 30 + 3 * steps)
    return pauses


def curve(share_of_steps, faults=None, on_rows=False):
    """Rows of a report, and what went wrong in words."""
    faults = SEQUENCE if faults is None else faults
    steps, problems = max(12 * (len(faults) + 1), round(FULL_STEPS * share_of_steps)), []
    with CurveCluster() as cluster:
        cluster.stop_seconds = 20
        if on_rows:
            cluster.use_rows()
        cluster.start_coordinator()
        for name in NODES:
            cluster.start_node(name)
        cluster.wait_for_nodes(NODES)
        expected = run_undisturbed(cluster, "undisturbed", steps)
        # How far the same numbers come apart by themselves: sums in another order.
        cluster.motley("nodes", "drain", "n3")
        other = run_undisturbed(cluster, "two-nodes", steps)
        cluster.motley("nodes", "undrain", "n3")
        begin = time.monotonic()
        try:
            pauses = disturbed(cluster, steps, faults, problems)
        except (AssertionError, ClusterError) as error:
            job = cluster.try_motley("status", "disturbed") or {}
            return [row("disturbed: faults that the job outlived", 0, "faults", len(faults), met=False)], [
                f"{error}; {state_of(job) if job else ''} {job.get('reason')}; "
                f"{[(e['kind'], e.get('node'), e.get('message')) for e in cluster.events()][-12:]}"]
        seconds = time.monotonic() - begin
        records = cluster.records("disturbed")
    for name, lasted in pauses:
        print(f"    {name}: {lasted:.1f} s", flush=True)
    made = {r["step"] for r in records}
    differences = [abs(r["loss"] - expected[r["step"] - 1]) / expected[r["step"] - 1] for r in records]
    usual = sorted(r["step_seconds"] for r in records)[len(records) // 2]
    rows = [row(f"two undisturbed layouts after {steps} steps differ by", worst(other, expected), "relative", LAYOUT_DIFFERENCE),
            row(f"{len(faults)} faults in {steps} steps: losses differ by", max(differences), "relative", MOST_DIFFERENCE),
            row(f"{len(faults)} faults in {steps} steps: steps that nobody made", steps - len(made), "steps", 0),
            row(f"{len(faults)} faults in {steps} steps: steps repeated", len(records) - len(made), "steps", None, met=True),
            row(f"{len(faults)} faults in {steps} steps: goodput", steps * usual / seconds, "of time", None, met=True)]
    return rows, problems
