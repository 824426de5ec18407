"""Kills of the coordinator under submits and training: nothing acknowledged is lost, and the job goes on from its newest checkpoint."""
import random
import statistics
import threading
import time

from harness import TestCluster, job_sections, state_of
from faults_common import PACED, Progress, last_step, newest_checkpoint, paced_job, row
from patience import patience

STEP_SECONDS = 0.27   # of two such devices
GO_ON_SECONDS = 60
NODES = {"n1": [PACED], "n2": [PACED]}


class KeepingCluster(TestCluster):
    """Forgets no job that has ended: what is missing was lost."""

    def start_coordinator(self, **extra):
        super().start_coordinator(retention={"jobs": 100_000}, **extra)


class Submitter(threading.Thread):
    """Submits jobs and stops some of them, all day long; remembers what was acknowledged."""

    def __init__(self, cluster, seed):
        super().__init__(daemon=True)
        self.cluster, self.random, self.over = cluster, random.Random(seed), threading.Event()
        self.submitted, self.stopped, self.refused = set(), set(), 0
        self.file = cluster.job_file("queued", job_sections(cluster, training__steps=1))

    def run(self):
        number = 0
        while not self.over.wait(0.5):
            running = self.submitted - self.stopped
            if running and self.random.random() < 0.4:
                job = self.random.choice(sorted(running))
                if self.cluster.run_motley("stop", job).returncode == 0:
                    self.stopped.add(job)
                continue
            number += 1
            job = f"queued-{number}"
            if self.cluster.run_motley("submit", self.file, "--id", job).returncode == 0:
                self.submitted.add(job)
            else:
                self.refused += 1

    def lost(self):
        """Acknowledged mutations that the coordinator does not know any more."""
        known = {job["id"]: state_of(job) for job in self.cluster.motley("list")["jobs"]}
        return sorted((self.submitted - set(known)) | {job for job in self.stopped if known.get(job) != "STOPPED"})


class Kills:
    """One cluster whose coordinator is killed again and again. Results are read after run()."""

    def __init__(self, count, seed, interval_seconds, progress):
        self.progress = progress
        self.count, self.random, self.interval_seconds, self.seed = count, random.Random(seed), interval_seconds, seed
        self.done, self.mutations, self.lost, self.stuck, self.behind, self.errors = 0, 0, [], [], [], []
        self.answer_seconds, self.step_seconds = [], []

    def run(self):
        try:
            with KeepingCluster() as cluster:
                cluster.start(NODES)
                paced_job(cluster, "train", training__steps=1_000_000,
                          checkpoint__interval=max(1, round(self.interval_seconds / STEP_SECONDS)))
                cluster.wait_for_step("train", 3)
                submitter = Submitter(cluster, self.seed)
                submitter.start()
                for number in range(self.count):
                    # On average two checkpoints apart, at any moment of a checkpoint's life.
                    time.sleep(min(self.random.expovariate(1 / (2 * self.interval_seconds)), 6 * self.interval_seconds))
                    self.kill(cluster, number)
                    self.progress.add()
                submitter.over.set()
                submitter.join()
                self.lost = submitter.lost()
                self.mutations = len(submitter.submitted) + len(submitter.stopped)
        except Exception as error:  # of one cluster of several: said with the others
            self.errors.append(f"{type(error).__name__}: {error}")

    def kill(self, cluster, number):
        saved, before = newest_checkpoint(cluster, "train"), last_step(cluster.job("train"))
        cluster.coordinator.kill()
        cluster.coordinator.process.wait()
        begin = time.monotonic()
        cluster.start_coordinator()
        self.answer_seconds.append(time.monotonic() - begin)
        self.done += 1
        what = f"kill {number + 1} at step {before[1]} with checkpoint {saved}"
        deadline = begin + patience(GO_ON_SECONDS)
        while time.monotonic() < deadline:
            job = cluster.try_motley("status", "train")
            if job is not None and last_step(job)[0] > before[0]:
                self.step_seconds.append(time.monotonic() - begin)
                break
            time.sleep(0.05)
        else:
            job = cluster.try_motley("status", "train") or {}
            self.stuck.append(f"{what}: {job.get('state')}: {job.get('reason')}")
            return
        first = min(int(r["step"]) for r in cluster.motley("metrics", "train")["steps"] if int(r["generation"]) > before[0])
        if first <= saved:
            self.behind.append(f"{what}: it went on at step {first}")


def kills(count, seed, interval_seconds=10.0, clusters=3):
    """Rows, and what went wrong in words."""
    shares = [count // clusters + (1 if i < count % clusters else 0) for i in range(clusters)]
    progress = Progress("kills", count)
    runs = [Kills(share, seed + i, interval_seconds, progress) for i, share in enumerate(shares) if share > 0]
    threads = [threading.Thread(target=one.run) for one in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done, answers, steps = sum(r.done for r in runs), sum((r.answer_seconds for r in runs), []), sum((r.step_seconds for r in runs), [])
    problems = sum((r.errors + [f"lost: {job}" for job in r.lost] + r.stuck + r.behind for r in runs), [])
    rows = [row("kills of the coordinator", done, "kills", count, met=done == count),
            row("mutations acknowledged meanwhile", sum(r.mutations for r in runs), "mutations", 1, met=any(r.mutations for r in runs)),
            row("acknowledged mutations lost", sum(len(r.lost) for r in runs), "mutations", 0),
            row("kills after which the job did not go on", sum(len(r.stuck) for r in runs), "kills", 0),
            row("kills after which it went on behind its newest checkpoint", sum(len(r.behind) for r in runs), "kills", 0)]
    if steps:
        rows += [row("API back after a kill, median", statistics.median(answers), "s", 1.0),
                 row("next step after a kill, median", statistics.median(steps), "s", 4.0),
                 row("next step after a kill, longest", max(steps), "s", 20.0)]
    return rows, problems
