"""The coordinator's machine is lost again and again, and another takes the cluster over by a backup: what was acknowledged before
the backup is there, the job goes on, no generation is given twice, and the old coordinator, when it is back, harms nobody."""
import os
import random
import shutil
import signal
import statistics
import threading
import time

from harness import expect, job_sections
from faults_common import PACED, Progress, last_step, paced_job, row
from netns import CONTROL, NetworkCluster, run
from patience import patience

MACHINES = ("coordinator", "standby")
NODES = {"a": [PACED], "b": [PACED]}
READY_SECONDS = 10      # after the command, nodes are on the new machine
GO_ON_SECONDS = 90
END_SECONDS = 2         # an old coordinator that meets the new one
OWN_WORKER_SECONDS = 14   # a lease, after which a coordinator goes on with the nodes that it has, and a little
BACK_SECONDS = 20       # one that is cut off asks every ten seconds
TAKEN_OVER = 78
SILENT_SECONDS = 11     # until workers give up a machine that does not answer: a lease, and a little


class MovingCluster(NetworkCluster):
    """Two machines may be its coordinator; backups are where both see them."""

    def __init__(self, every):
        super().__init__(["standby", *NODES])
        self.every, self.place, self.moves, self.lost_at = every, MACHINES[0], 0, []
        self.port, self.workers_port, self.metrics_port = 7070, 7073, 7071   # of each machine's own namespace
        self.backups = self.path("backups")
        os.makedirs(self.backups, mode=0o700)

    def placed(self, name, command):
        if name == "motley" or name.startswith("coordinator"):
            return [*self.network.inside(self.place), *command]
        return super().placed(name, command)

    def state(self):
        return self.path(f"state-{self.moves}")

    def start_here(self):
        config = {"server": {"socket": self.state() + ".sock", "listen": self.address, "metrics": self.metrics_address},
                  "workers": {"listen": f"{self.network.address(self.place, CONTROL)}:{self.workers_port}",
                              "socket": self.state() + ".workers"},
                  "state": {"folder": self.state()}, "retention": {"jobs": 100_000},
                  "backup": {"folder": self.backups, "every": self.every}}
        return self._daemon(f"coordinator-{self.moves}", "motley-coordinator", config)

    def start_all(self):
        self.coordinator = self.start_here()
        self.wait_for(lambda: self.try_motley("nodes") is not None, 30, "the coordinator's first answer", self.coordinator)
        every_address = [f"{self.network.address(machine, CONTROL)}:{self.workers_port}" for machine in MACHINES]
        for name, devices in NODES.items():
            self.start_worker(name, devices, coordinator=every_address)
        self.wait_for_nodes(NODES)

    def lose(self, silently):
        """kill -9; or the machine falls silent: nobody is told that its connections are over."""
        if silently:
            run([*self.network.inside(self.place), "ip", "link", "set", "eth0", "down"])
        self.lost_at.append(time.monotonic())
        self.coordinator.kill(signal.SIGKILL)
        self.coordinator.process.wait()

    def take_over(self):
        """By the command of the page, then the service; the seconds from the command until all nodes are ready."""
        self.place = MACHINES[1 - MACHINES.index(self.place)]
        run([*self.network.inside(self.place), "ip", "link", "set", "eth0", "up"])
        self.moves += 1
        begin = time.monotonic()
        run([self.program("motley-coordinator"), "restore", "--take-over", self.backups, "--state-dir", self.state()])
        self.coordinator = self.start_here()

        def ready():
            said = self.try_motley("nodes") or {}
            return set(NODES) <= {node["name"] for node in said.get("nodes", []) if node["state"] == "ready"}

        self.wait_for(ready, 60, "the nodes on the new machine", self.coordinator, poll_seconds=0.05)
        return time.monotonic() - begin

    def worker_of_its_socket(self, moves, machine):
        """A worker of the old coordinator's machine, which needs no certificate."""
        config = {"worker": {"name": "own", "coordinator": f"unix:{self.path(f'state-{moves}')}.workers", "metrics": "127.0.0.1:0"},
                  "device": [PACED], "files": {"roots": self.file_roots}}
        place, self.place = self.place, machine
        try:
            return self._daemon("coordinator-own-worker", "motley-worker", config)
        finally:
            self.place = place

    def old_again(self, moves, reaches_others):
        """The coordinator from before is started with the state that it had; its daemon."""
        self.place = MACHINES[1 - MACHINES.index(self.place)]
        now, self.moves = self.moves, moves
        if reaches_others:
            run([*self.network.inside(self.place), "ip", "link", "set", "eth0", "up"])
        try:
            return self.start_here()
        finally:
            self.moves = now
            self.place = MACHINES[1 - MACHINES.index(self.place)]


class Submitter(threading.Thread):
    """Submits jobs, whichever machine is the coordinator; remembers when each was asked for and acknowledged."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster, self.acknowledged, self.over, self.number = cluster, {}, threading.Event(), 0
        self.file = cluster.job_file("queued", job_sections(cluster, training__steps=1))

    def run(self):
        while not self.over.wait(0.7):
            self.number += 1
            job = f"queued-{self.number}"
            begin = time.monotonic()
            done, end = self.cluster.run_motley("submit", self.file, "--id", job).returncode == 0, time.monotonic()
            # One that ran into a loss may have been acknowledged before it, and have waited for the queue's answer for a minute.
            if done and not any(begin < lost_at < end for lost_at in self.cluster.lost_at):
                self.acknowledged[job] = (begin, end)


class TakeOvers:
    def __init__(self, count, every, seed):
        self.count, self.every, self.random = count, every, random.Random(seed)
        self.ready_seconds, self.step_seconds, self.end_seconds, self.problems = [], [], [], []
        self.seen, self.lost, self.kept_checked, self.done, self.back_seconds = set(), [], 0, 0, None

    def run(self):
        progress = Progress("losses of the coordinator's machine", self.count)
        with MovingCluster(self.every) as cluster:
            cluster.start_all()
            paced_job(cluster, "train", training__steps=1_000_000, checkpoint__interval=10)
            cluster.wait_for_step("train", 3)
            submitter = Submitter(cluster)
            submitter.start()
            cluster.wait_for(lambda: self.due(submitter, time.monotonic() - 1), 60, "a job that no loss may lose")
            for number in range(self.count):
                self.loss(cluster, number, submitter)
                self.done += 1
                progress.add()
            submitter.over.set()
            submitter.join()
            self.cut_off(cluster, cluster.moves - 1)

    def loss(self, cluster, number, submitter):
        # So long that there is a backup of this machine, and at any moment between two.
        time.sleep(self.every + self.random.uniform(1, 1 + 2 * self.every))
        silently = self.random.random() < 0.3
        before = last_step(cluster.job("train"))
        cluster.lose(silently)
        lost_at = time.monotonic()
        what = f"loss {number + 1} ({'silent' if silently else 'kill'}) at generation {before[0]}, step {before[1]}"
        if silently:
            time.sleep(SILENT_SECONDS)
        else:
            time.sleep(self.random.uniform(0, 1))
        try:
            self.ready_seconds.append(cluster.take_over())
            seconds = self.seconds_to_generation_above(cluster, before[0])
        except Exception as error:  # what went wrong, with the loss it belongs to
            self.problems.append(f"{what}: {type(error).__name__}: {error}")
            raise
        if seconds is None:
            self.problems.append(f"{what}: the job did not go on: {cluster.job('train')}")
        else:
            self.step_seconds.append(seconds)
        self.look_for_jobs(cluster, submitter, lost_at)
        if number + 1 == self.count:
            return   # the last one is started in cut_off
        if not silently and number % 3 == 0:
            self.old_comes_back(cluster, what)
        shutil.rmtree(cluster.path(f"state-{cluster.moves - 1}"))

    def due(self, submitter, lost_at):
        """Jobs that were acknowledged so long before a loss that a backup has them."""
        return {job for job, (_, when) in dict(submitter.acknowledged).items() if when < lost_at - self.every - 5}

    def look_for_jobs(self, cluster, submitter, lost_at):
        """What was acknowledged just before the loss may be gone, and is not asked for any more."""
        before = {job: acknowledged for job, (begin, acknowledged) in dict(submitter.acknowledged).items() if begin < lost_at}
        missing = set(before) - {job["id"] for job in cluster.motley("list")["jobs"]}
        due = self.due(submitter, lost_at)
        self.kept_checked += len(due - self.seen)
        self.seen |= due
        self.lost += [f"{job}, asked for {lost_at - submitter.acknowledged[job][0]:.1f} s before the loss, acknowledged "
                      f"{lost_at - before[job]:.1f} s" for job in sorted(due & missing)]
        for job in missing:
            submitter.acknowledged.pop(job)

    @staticmethod
    def seconds_to_generation_above(cluster, generation):
        """Until a step of it is reported; None: not in time."""
        begin = time.monotonic()
        while time.monotonic() - begin < patience(GO_ON_SECONDS):
            if last_step(cluster.try_motley("status", "train") or {})[0] > generation:
                return time.monotonic() - begin
            time.sleep(0.05)
        return None

    def old_comes_back(self, cluster, what):
        """It reaches the new one, so it ends, and nothing else happens."""
        generation = last_step(cluster.job("train"))[0]
        begin = time.monotonic()
        old = cluster.old_again(cluster.moves - 1, reaches_others=True)
        try:
            code = old.process.wait(patience(30))
            self.end_seconds.append(time.monotonic() - begin)
            if code != TAKEN_OVER:
                self.problems.append(f"{what}: the old coordinator ended with {code}")
        except Exception as error:  # it goes on
            self.problems.append(f"{what}: the old coordinator goes on: {error}")
            old.kill(signal.SIGKILL)
        if last_step(cluster.job("train"))[0] != generation:
            self.problems.append(f"{what}: the old coordinator's return ended a generation")

    def cut_off(self, cluster, old_moves):
        """Where it reaches nobody but a worker of its own machine, it begins nothing and ends nobody; when the network is back, it
        ends."""
        generation = last_step(cluster.job("train"))[0]
        other = MACHINES[1 - MACHINES.index(cluster.place)]
        run([*cluster.network.inside(other), "ip", "link", "set", "eth0", "down"])
        run([*cluster.network.inside(other), "ip", "address", "add", f"{cluster.network.address(other, CONTROL)}/32", "dev", "lo"])
        state = cluster.path(f"state-{old_moves}")
        expect(os.path.isdir(state), f"{state} was kept")
        old = cluster.old_again(old_moves, reaches_others=False)
        own = cluster.worker_of_its_socket(old_moves, other)
        time.sleep(OWN_WORKER_SECONDS)
        with open(own.log_path, encoding="utf-8") as file:
            log = file.read()
        if "in session with" not in log or "training with" in log:
            self.problems.append(f"the old coordinator's own worker: {log[-800:]}")
        own.stop()
        if not old.alive():
            self.problems.append(f"the old coordinator, cut off, ended with {old.process.returncode}")
        if last_step(cluster.job("train"))[0] != generation:
            self.problems.append("an old coordinator that reaches nobody ended a generation")
        run([*cluster.network.inside(other), "ip", "address", "del", f"{cluster.network.address(other, CONTROL)}/32", "dev", "lo"])
        run([*cluster.network.inside(other), "ip", "link", "set", "eth0", "up"])
        begin = time.monotonic()
        code = old.process.wait(patience(40))
        self.back_seconds = time.monotonic() - begin
        if code != TAKEN_OVER:
            self.problems.append(f"the old coordinator ended with {code} when the network was back")


def take_overs(count, every, seed):
    """Rows, and what went wrong in words."""
    one = TakeOvers(count, every, seed)
    try:
        one.run()
    except Exception as error:  # said with what was measured
        one.problems.append(f"{type(error).__name__}: {error}")
    name = f"backups every {every} s: "
    rows = [row(name + "losses of the coordinator's machine", one.done, "losses", count, met=one.done == count),
            row(name + f"jobs acknowledged {every + 5} s before a loss", one.kept_checked, "jobs", 1, met=one.kept_checked > 0),
            row(name + "of them lost", len(one.lost), "jobs", 0)]
    if one.ready_seconds:
        rows += [row(name + "nodes on the other machine after the command, median", statistics.median(one.ready_seconds), "s", READY_SECONDS),
                 row(name + "the same, longest", max(one.ready_seconds), "s", READY_SECONDS)]
    if one.step_seconds:
        rows += [row(name + "next step after that, median", statistics.median(one.step_seconds), "s", GO_ON_SECONDS),
                 row(name + "the same, longest", max(one.step_seconds), "s", GO_ON_SECONDS)]
    if one.end_seconds:
        rows.append(row(name + "the old coordinator, started again, ends after, longest", max(one.end_seconds), "s", END_SECONDS))
    if one.back_seconds is not None:
        rows.append(row(name + "one that was cut off ends after the network is back", one.back_seconds, "s", BACK_SECONDS))
    return rows, one.problems + [f"lost: {job}" for job in one.lost]
