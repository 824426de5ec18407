"""Newcomers of every bad kind beside a running job: no epoch ends, no step is repeated, nothing pauses or slows down."""
import os
import stat
import statistics
import time

from harness import BIN, expect, make_text
from faults_common import PACED, Progress, holds, last_step, paced_job, row, stop_job
from netns import NetworkCluster
from patience import patience

STABLE = {"n1": [PACED], "n2": [PACED]}
PLACE = "new"          # the host on which newcomers start
BATCH = 10             # so many at once
REFUSED_SECONDS = 60   # the longest that a kind which answers may take
SILENT_SECONDS = 15    # so long a kind that says nothing is left alone
MOST_SLOWER = 0.02
# A rank that answers every question for a profile with nothing. By hand: FromRank.profile_result = {}, and a sign of life.
EMPTY_RANK = """#!/usr/bin/python3
import os, time
from patience import patience
os.read(3, 1 << 16)
os.write(3, bytes([2, 0, 0, 0, 0x3a, 0]))
while True:
    time.sleep(0.25)
    os.write(3, bytes([2, 0, 0, 0, 0x4a, 0]))
"""
# A rank that measures its device alone, and then ranks that never say a word. A worker tries its rank first, by --check.
HALF_RANK = """#!/bin/sh
[ "$1" = --check ] && exec '{rank}' "$@"
mkdir "$0.began" 2>/dev/null && exec '{rank}' "$@"
exec sleep 1000
"""


class Newcomers(NetworkCluster):
    """Two nodes that train, and a place for those that come and go. Each has a name and a speed of its own: nothing is known of it."""

    def __init__(self):
        super().__init__([*STABLE, PLACE])
        self.started, self.here = 0, []
        self.other_text = make_text(os.path.join(self.top, "other.txt"), 100)
        self.sees_other_text = False

    def placed(self, name, command):
        if not name.startswith(f"worker-{PLACE}"):
            return super().placed(name, command)
        if self.sees_other_text:
            command = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && shift 1 && exec "$@"', self.other_text, self.text,
                       *command]
        return [*self.network.inside(PLACE), *command]

    def data_address(self, node):
        return super().data_address(PLACE if node.startswith(PLACE) else node)

    def come(self, rank_program=None):
        self.started += 1
        name = f"{PLACE}{self.started}"
        extra = {"rank_binary": self.program_file(*rank_program)} if rank_program else {}
        self.start_worker(name, [{**PACED, "flops_per_second": PACED["flops_per_second"] + 1e6 * self.started}], **extra)
        self.here.append(name)

    def go(self):
        for name in self.here:
            self.workers[name].kill()
            self.workers.pop(name).process.wait()
        self.here = []
        self.network.heal()
        self.sees_other_text = False

    def states(self):
        """Of the newcomers that are here."""
        return {n["name"]: n["state"] for n in self.nodes() if n["name"] in self.here}

    def program_file(self, name, text):
        path = os.path.join(self.top, name)
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
        return path


def failing_profile(cluster):
    cluster.come(("failing-rank", "#!/bin/sh\nexit 1\n"))


def empty_profile(cluster):
    cluster.come(("empty-rank", EMPTY_RANK))


def silent_profile(cluster):
    cluster.come(("silent-rank", "#!/bin/sh\nexec sleep 1000\n"))


def firewalled_data_address(cluster):
    cluster.network.refuse_data(PLACE)
    cluster.come()


def other_data(cluster):
    cluster.sees_other_text = True
    cluster.come()


# name: (how one comes, whether it is refused for something that it says)
KINDS = {"a failing profile": (failing_profile, True), "an empty profile": (empty_profile, True),
         "a firewalled data address": (firewalled_data_address, True), "other data": (other_data, True),
         "a silent profile": (silent_profile, False)}


def come_and_go(cluster, kind, count):
    """How many were refused, of those that answer; of the silent ones, how many were still looked at or refused."""
    come, answers = KINDS[kind]
    left_out = 0
    for first in range(0, count, BATCH):
        try:
            for _ in range(min(BATCH, count - first)):
                come(cluster)
            cluster.wait_for(lambda: len(cluster.states()) == len(cluster.here), 30, "the newcomers to be seen")
            deadline = time.monotonic() + (patience(REFUSED_SECONDS) if answers else SILENT_SECONDS)
            while time.monotonic() < deadline and set(cluster.states().values()) != {"refused"}:
                time.sleep(0.2)
            wanted = {"refused"} if answers else {"refused", "probing"}
            left_out += sum(state in wanted for state in cluster.states().values())
        finally:
            cluster.go()
    return left_out


def records(cluster, after_step):
    return [r for r in cluster.motley("metrics", "steady")["steps"] if int(r["step"]) > after_step]


def one_kind(cluster, kind, count):
    """Rows of one kind, and what went wrong."""
    epoch, begin = last_step(cluster.job("steady"))
    cluster.wait_for_step("steady", begin + 15)   # undisturbed, to compare with
    middle = last_step(cluster.job("steady"))[1]
    left_out = come_and_go(cluster, kind, count)
    before = [r for r in records(cluster, begin) if int(r["step"]) <= middle]
    during = records(cluster, middle)
    job = cluster.job("steady")
    usual = statistics.median(r["step_seconds"] for r in before)
    slower = statistics.median(r["step_seconds"] for r in during) / usual - 1
    longest = max(r["step_seconds"] for r in during)
    name = f"{count} newcomers with {kind}: "
    rows = [row(f"{name}left out", left_out, "nodes", count, met=left_out == count),
            row(f"{name}epochs ended", last_step(job)[0] - epoch, "epochs", 0),
            row(f"{name}steps repeated", len(during) - len({int(r["step"]) for r in during}), "steps", 0),
            row(f"{name}steps that paused", sum(r["step_seconds"] > 2 * usual for r in during), "steps", 0, by_clock=True),
            row(f"{name}median step slower by", max(0.0, slower), "of a step", MOST_SLOWER)]
    problems = []
    if not all(holds(one) for one in rows):
        problems.append(f"{name}longest step {longest:.2f} s, usually {usual:.2f} s; {job.get('reason')}; "
                        f"{[(e['kind'], e.get('node'), e.get('message')) for e in cluster.events()][-6:]}")
    return rows, problems


def newcomers(count, kinds=None):
    """Rows, and what went wrong in words."""
    rows, problems = [], []
    progress = Progress("kinds of newcomers", len(kinds or KINDS))
    with Newcomers() as cluster:
        cluster.start(STABLE)
        paced_job(cluster, "steady", training__steps=1_000_000, checkpoint__interval=100)
        cluster.wait_for_step("steady", 5)
        for kind in kinds or KINDS:
            try:
                more, wrong = one_kind(cluster, kind, count)
                rows, problems = rows + more, problems + wrong
            except Exception as error:  # of one kind of several: said with the others
                problems.append(f"newcomers with {kind}: {type(error).__name__}: {error}")
                rows.append(row(f"{count} newcomers with {kind}: left out", None, "nodes", count, met=False))
                expect(not cluster.job("steady")["state"].endswith("FAILED"), f"{kind} ended the job: {cluster.job('steady')}")
            progress.add()
        stop_job(cluster, "steady")
    return rows, problems


def silent_in_swap():
    """A newcomer that passes every check and is silent in the swap is left out, and so is the next name from its address."""
    with Newcomers() as cluster:
        cluster.start(STABLE)
        paced_job(cluster, "steady", training__steps=1_000_000, checkpoint__interval=100)
        cluster.wait_for_step("steady", 5)
        epoch = last_step(cluster.job("steady"))[0]
        cluster.come(("half-rank", HALF_RANK.format(rank=os.path.join(BIN, "motley-rank"))))
        cluster.wait_for(lambda: set(cluster.states().values()) == {"refused"} and last_step(cluster.job("steady"))[0] > epoch, 60,
                         "the job to go on without the silent newcomer")
        steps = [int(r["step"]) for r in cluster.motley("metrics", "steady")["steps"]]
        expect(len(steps) == len(set(steps)), f"steps were repeated: {steps}")
        cluster.go()
        epoch = last_step(cluster.job("steady"))[0]
        cluster.come()
        cluster.wait_for(lambda: set(cluster.states().values()) == {"refused"}, 30, "the next newcomer from there to be held off")
        reason = next(n["reason"] for n in cluster.nodes() if n["name"] in cluster.here)
        expect("1 swap with nodes from address" in reason, reason)
        step = last_step(cluster.job("steady"))
        cluster.wait_for_step("steady", step[1] + 5)
        expect(last_step(cluster.job("steady"))[0] == epoch, "a generation ended for a node that was held off")
        stop_job(cluster, "steady")
