"""Nodes under new names that join a running job for minutes, against the same job left alone, in turn: what they cost it in steps."""
import statistics
import time

from harness import expect
from faults_common import Progress, last_step, paced_job, row, stop_job
from faults_newcomers import STABLE, Newcomers

EVERY_SECONDS = 15      # one comes
LEAST_STEPS = 0.9       # of the undisturbed ones
ROUNDS = 3
# A rank that profiles its device as it should. The next one of its node lives, and says nothing any more: by hand, FromRank.progress = {}.
SILENT_LATER_RANK = """#!/usr/bin/python3
import os, sys, time
if "--check" in sys.argv or not os.path.exists(__file__ + ".profiled"):
    if "--check" not in sys.argv:
        open(__file__ + ".profiled", "w").close()
    os.execv({rank!r}, [{rank!r}, *sys.argv[1:]])
while True:
    time.sleep(0.25)
    os.write(3, bytes([2, 0, 0, 0, 0x4a, 0]))
"""


def silent_in_the_swap(cluster):
    """Passes the probe under a new name, and says nothing when the others wait for it."""
    name = f"silent-later-{cluster.started + 1}"
    cluster.come((name, SILENT_LATER_RANK.format(rank=cluster.program("motley-rank"))))


def joins_and_goes(cluster):
    """An honest node under a new name, which is gone when the next one comes."""
    cluster.come()


KINDS = {"silent in the swap": silent_in_the_swap, "that join and go": joins_and_goes}


def steps_made(cluster, seconds, every=None):
    """Steps of progress in this time, with `every()` each EVERY_SECONDS."""
    begin, first = time.monotonic(), last_step(cluster.job("steady"))[1]
    while (now := time.monotonic()) < begin + seconds:
        if every:
            cluster.go()
            every(cluster)
        time.sleep(min(EVERY_SECONDS, begin + seconds - now))
    made = last_step(cluster.job("steady"))[1] - first
    return made / (time.monotonic() - begin)


def one_kind(cluster, kind, seconds, rounds):
    generation, ratios = last_step(cluster.job("steady"))[0], []
    progress = Progress(f"rounds beside newcomers {kind}", rounds)
    for _ in range(rounds):
        alone = steps_made(cluster, seconds)
        beside = steps_made(cluster, seconds, KINDS[kind])
        cluster.go()
        ratios.append(beside / alone)
        cluster.wait_for_step("steady", last_step(cluster.job("steady"))[1] + 5)
        progress.add()
    job = cluster.job("steady")
    name = f"newcomers {kind}, one each {EVERY_SECONDS} s for {seconds:.0f} s, {rounds} times: "
    rows = [row(f"{name}steps of the undisturbed ones, median", statistics.median(ratios), "", LEAST_STEPS,
                met=statistics.median(ratios) >= LEAST_STEPS, by_clock=True),
            row(f"{name}generations", last_step(job)[0] - generation, "", None, met=True)]
    problems = [] if rows[0]["met"] else [f"{name}{[round(r, 3) for r in ratios]}; {job.get('reason')}; "
                                          f"{[(e['kind'], e.get('node'), e.get('message')) for e in cluster.events()][-8:]}"]
    return rows, problems


def joiners(seconds, kinds=None, rounds=ROUNDS):
    """Rows, and what went wrong in words."""
    rows, problems = [], []
    with Newcomers() as cluster:
        cluster.start(STABLE)
        paced_job(cluster, "steady", training__steps=1_000_000, checkpoint__interval=20)
        cluster.wait_for_step("steady", 10)
        for kind in kinds or KINDS:
            more, wrong = one_kind(cluster, kind, seconds, rounds)
            rows, problems = rows + more, problems + wrong
            expect(not cluster.job("steady")["state"].endswith("FAILED"), f"newcomers {kind} ended the job: {cluster.job('steady')}")
        stop_job(cluster, "steady")
    return rows, problems
