"""A cluster is upgraded node by node while a job trains. The next version is this one's programs with another number where a build
says which ranks may train together: nothing else knows that they are the same."""
import os
import shutil

from harness import TestCluster, expect
from faults_common import PACED, last_step, newest_checkpoint, paced_job, row
from patience import patience

NODES = {"a": [PACED], "b": [PACED], "c": [PACED]}
BUILD, NEXT_BUILD = b"ranks-0007", b"ranks-0008"
PROGRAMS = ("motley-worker", "motley-rank")


def next_version(source, folder, other_ranks):
    """The programs of a node as the next version has them."""
    os.makedirs(folder)
    for name in PROGRAMS:
        with open(os.path.join(source, name), "rb") as file:
            program = file.read()
        expect(program.count(BUILD) == 1, f"{name} says its rank build {program.count(BUILD)} times")
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(program.replace(BUILD, NEXT_BUILD) if other_ranks else program)
        shutil.copymode(os.path.join(source, name), path)
    return folder


class UpgradedCluster(TestCluster):
    def __init__(self):
        super().__init__()
        self.stop_seconds = 20   # a worker that is told to end lets the job save
        self.present = self.bin

    def upgrade(self, name, folder):
        """`systemctl restart motley-worker` after the new programs are there."""
        self.workers[name].stop(patience(30))
        self.bin = folder
        try:
            self.start_worker(name, NODES[name])
        finally:
            self.bin = self.present

    def devices_of_job(self):
        """Nodes on which the job trains."""
        return {d["id"].split("/")[0] for d in self.devices() if d["state"] == "training"}

    def wait_until_it_trains_on(self, names):
        def there():
            before = last_step(self.job("train"))
            return self.devices_of_job() == names and before[0] > 0 and self.job("train")["state"].upper() == "RUNNING"
        self.wait_for(there, 60, f"the job to train on {', '.join(sorted(names))}; it trains on {self.devices_of_job()}")

    def state_of(self, name):
        return next((node["state"], node.get("reason", "")) for node in self.nodes() if node["name"] == name)

    def step_on(self):
        """A step under the present generation."""
        generation, step = last_step(self.job("train"))
        self.wait_for(lambda: last_step(self.job("train"))[1] > step, 60, f"a step after {step} of generation {generation}")


class Repeats:
    """Steps that were done twice, by the records of the steps, which the coordinator has while it lives."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.before = self.count()

    def count(self):
        steps = [int(r["step"]) for r in self.cluster.motley("metrics", "train")["steps"]]
        return len(steps) - len(set(steps))

    def since(self):
        now = self.count()
        more, self.before = now - self.before, now
        return more


def begin(cluster):
    """A job on all three; whoever counts its repeated steps."""
    cluster.start(NODES)
    paced_job(cluster, "train", training__steps=1_000_000, checkpoint__interval=20)
    cluster.wait_for_step("train", 3)
    cluster.wait_until_it_trains_on({"a", "b", "c"})
    return Repeats(cluster)


def one_with_other_ranks(cluster, repeats):
    """It waits until more nodes than not have them."""
    other = next_version(cluster.bin, cluster.path("other-ranks"), other_ranks=True)
    cluster.upgrade("c", other)
    cluster.wait_until_it_trains_on({"a", "b"})
    cluster.wait_for(lambda: cluster.state_of("c")[0] == "held", 20, "node c to wait")
    expect(f"its ranks are of build {NEXT_BUILD.decode()}/" in cluster.state_of("c")[1], f"c waits: {cluster.state_of('c')}")
    cluster.step_on()
    return other, row("one with other ranks waits: steps repeated", repeats.since(), "steps", 1)


def one_node():
    """Rows, and what went wrong in words."""
    with UpgradedCluster() as cluster:
        return [one_with_other_ranks(cluster, begin(cluster))[1]], []


def upgrade():
    """Rows, and what went wrong in words."""
    rows = []
    with UpgradedCluster() as cluster:
        repeats = begin(cluster)
        same = next_version(cluster.bin, cluster.path("same-ranks"), other_ranks=False)

        cluster.upgrade("c", same)
        cluster.wait_until_it_trains_on({"a", "b", "c"})
        cluster.step_on()
        rows.append(row("a node of the next version with the same ranks: steps repeated", repeats.since(), "steps", 1))

        other, waits = one_with_other_ranks(cluster, repeats)
        rows.append(waits)

        cluster.upgrade("b", other)
        cluster.wait_until_it_trains_on({"b", "c"})
        cluster.wait_for(lambda: cluster.state_of("a")[0] == "held", 20, "node a to wait")
        cluster.step_on()
        expect(cluster.event_messages("rank_build_changed"), "no event says that the job moved over")
        rows.append(row("a second one, the job moves over: steps repeated", repeats.since(), "steps", 2))

        cluster.upgrade("a", other)
        cluster.wait_until_it_trains_on({"a", "b", "c"})
        cluster.step_on()
        rows.append(row("the last one: steps repeated", repeats.since(), "steps", 1))
        expect(newest_checkpoint(cluster, "train") > 0, "the job saved")
    return rows, []
