"""Strangers at the workers' port beside a job that trains: what they cost it. Times with them and without alternate, so that what
else the machine does falls on both."""
import os
import statistics
import subprocess
import time

from harness import BIN, TestCluster, expect
from faults_common import PACED, Progress, holds, last_step, paced_job, row, stop_job

STABLE = {"n1": [PACED], "n2": [PACED]}
KINDS = ("greetings", "declarations")   # of tests/bench/strangers_bench.cc
ROUNDS = 3
MOST_SLOWER = 0.02


def why_not():
    return None if os.path.exists(os.path.join(BIN, "strangers_bench")) else "no strangers_bench"


def dial(cluster, seconds, kind, each, *flags):
    command = cluster.placed("stranger", [os.path.join(BIN, "strangers_bench"), "--workers", cluster.workers_address, "--kind", kind,
                                          "--job", "train", "--seconds", str(seconds), "--each", str(each), *flags])
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    expect(done.returncode == 0, done.stdout[-400:])
    print(f"    {kind}: {done.stdout.strip()}", flush=True)


def window(cluster, seconds, disturb=None):
    """(generations ended, steps repeated, median step in seconds) of a time that passes here, with strangers or without."""
    generation, first = last_step(cluster.job("train"))
    (disturb or time.sleep)(seconds)
    job = cluster.job("train")
    steps = [r for r in cluster.motley("metrics", "train")["steps"] if first < int(r["step"])]
    expect(len(steps) > 2, f"{len(steps)} steps in {seconds:.0f} s: {job.get('reason')}")
    repeated = len(steps) - len({int(r["step"]) for r in steps})
    return last_step(job)[0] - generation, repeated, statistics.median(r["step_seconds"] for r in steps)


def alternated(cluster, name, seconds, disturb, progress):
    """Rows of a job with and without them in turn."""
    ended = repeated = 0
    slower = []
    for _ in range(ROUNDS):
        _, _, usual = window(cluster, seconds)
        more, again, median = window(cluster, seconds, disturb)
        ended, repeated = ended + more, repeated + again
        slower.append(median / usual - 1)
        print(f"    {name}: step {usual:.4f} s without, {median:.4f} s with; generations ended {more}, steps repeated {again}",
              flush=True)
        progress.add()
    name = f"{name} for {seconds:.0f} s, {ROUNDS} times: "
    return [row(f"{name}generations ended", ended, "generations", 0), row(f"{name}steps repeated", repeated, "steps", 0),
            row(f"{name}median step slower by, median", max(0.0, statistics.median(slower)), "of a step", MOST_SLOWER)]


def strangers(seconds, kinds=KINDS):
    """Rows, and what went wrong in words."""
    if why_not():
        print(f"left out: strangers: {why_not()}", flush=True)
        return [], []
    rows, problems = [], []
    progress = Progress("rounds of strangers", ROUNDS * len(kinds))
    for kind in kinds:   # each on a cluster of its own: a number that was believed would stay
        with TestCluster() as cluster:
            cluster.start(STABLE)
            paced_job(cluster, "train", training__steps=1_000_000, checkpoint__interval=20)
            cluster.wait_for_step("train", 10)
            try:
                more = alternated(cluster, f"{kind}, one a second", seconds, lambda time, kind=kind: dial(cluster, time, kind, 1),
                                  progress)
                rows += more
                if not all(holds(one) for one in more):
                    problems.append(f"{kind}: {[(e['kind'], e.get('message')) for e in cluster.events()][-12:]}")
            except Exception as error:  # of one kind of several: said with the others
                problems.append(f"{kind}: {type(error).__name__}: {error}")
                rows.append(row(f"{kind}: measured", None, "", None, met=False))
            stop_job(cluster, "train")
    return rows, problems


def nothing_believed():
    """Beside a job strangers invent generations, marks of the store and memory: no generation ends. And nothing stays of them: a
    coordinator and a worker that are started again go on with the next generation."""
    with TestCluster() as cluster:
        cluster.start(STABLE)
        paced_job(cluster, "train", training__steps=1_000_000)
        cluster.wait_for_step("train", 5)
        for kind in KINDS:
            ended, repeated, _ = window(cluster, 6, lambda time, kind=kind: dial(cluster, time, kind, 0.25))
            expect(ended == 0 and repeated == 0, f"{kind}: {ended} generations ended, {repeated} steps were repeated")
        generation, step = last_step(cluster.job("train"))
        cluster.coordinator.kill()
        cluster.coordinator.process.wait()
        cluster.start_coordinator()
        cluster.workers["n1"].kill()
        cluster.workers["n1"].process.wait()
        cluster.start_worker("n1", STABLE["n1"])
        cluster.wait_for_nodes(STABLE, 40)
        cluster.wait_for_step("train", step + 5)
        now = last_step(cluster.job("train"))[0]
        expect(generation < now < generation + 10, f"generation {now} after {generation}")
        stop_job(cluster, "train")
