"""Partitions of one node from the others, by plane and direction: the job trains again within seconds of healing and never fails."""
import time

from faults_common import PACED, Progress, last_step, paced_job, row, seconds_to_next_step, stop_job
from netns import CONTROL, DATA, NetworkCluster

NODES = {"n1": [PACED], "n2": [PACED], "n3": [PACED]}
AWAY = "n3"
HEALED_SECONDS = 10
TO, FROM, BOTH = "to it", "from it", "both ways"
CASES = [(planes, way) for planes in ((CONTROL,), (DATA,), (CONTROL, DATA)) for way in (BOTH, TO, FROM)]


def cut(network, planes, way):
    for plane in planes:
        others = [host for host in network.numbers if host != AWAY and (plane == CONTROL) == (host == "coordinator")]
        for other in others:
            if way in (BOTH, TO):
                network.cut(other, AWAY, plane)
            if way in (BOTH, FROM):
                network.cut(AWAY, other, plane)


def seconds_after_healing(cluster, planes, way, seconds):
    """Seconds from healing to the next step; None when it did not come within a minute."""
    cut(cluster.network, planes, way)
    time.sleep(seconds)
    before = last_step(cluster.job("cut"))
    cluster.network.heal()
    return seconds_to_next_step(cluster, "cut", before, 60)


def one_case(name, planes, way, seconds):
    """A row, and what went wrong in words. A cluster of its own: a node that is lost again and again is held back."""
    with NetworkCluster(NODES) as cluster:
        cluster.start(NODES)
        paced_job(cluster, "cut", training__steps=1_000_000, checkpoint__interval=10)
        cluster.wait_for_step("cut", 12)
        healed = seconds_after_healing(cluster, planes, way, seconds)
        met = healed is not None and healed <= HEALED_SECONDS
        problems = []
        if healed is None:
            job = cluster.job("cut")
            problems = [f"{name}: more than 60 s; {job['state']}: {job.get('reason')}; "
                        f"{[e.get('message') for e in cluster.events('cut')][-4:]}"]
        stop_job(cluster, "cut")
    return row(name, healed, "s", HEALED_SECONDS, met=met), problems


def partitions(seconds, cases=None):
    """Rows, and what went wrong in words."""
    rows, problems = [], []
    cases = cases or CASES
    progress = Progress("partitions", len(cases))
    for planes, way in cases:
        name = f"{' and '.join(planes)} plane cut {way} for {seconds:g} s: next step after healing"
        try:
            one, wrong = one_case(name, planes, way, seconds)
        except Exception as error:  # of one case of several: said with the others
            one, wrong = row(name, None, "s", HEALED_SECONDS, met=False), [f"{name}: {error}"]
        rows.append(one)
        problems += wrong
        progress.add()
    return rows, problems
