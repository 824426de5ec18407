"""A node that comes and goes beside two that train: what it costs them in steps."""
import time

from harness import TestCluster
from faults_common import PACED, last_step, paced_job, row, stop_job

STABLE = {"n1": [PACED], "n2": [PACED]}
UP_SECONDS = DOWN_SECONDS = 2.5
USUAL_SECONDS = 20
MOST_LOST_PERCENT = 5


def steps_per_second(cluster, seconds):
    """Of progress, repeated steps not counted, over a time that passes here."""
    begin, first = time.monotonic(), last_step(cluster.job("train"))[1]
    time.sleep(seconds)
    return (last_step(cluster.job("train"))[1] - first) / (time.monotonic() - begin)


def come_and_go(cluster, seconds):
    """How often it came."""
    end, times = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        times += 1
        cluster.start_worker("n3", [PACED])
        time.sleep(UP_SECONDS)
        cluster.workers["n3"].kill()
        cluster.workers.pop("n3").process.wait()
        time.sleep(DOWN_SECONDS)
    return times


def flapping(seconds):
    """Rows, and what went wrong in words."""
    with TestCluster() as cluster:
        cluster.start(STABLE)
        paced_job(cluster, "train", training__steps=1_000_000, checkpoint__interval=20)
        cluster.wait_for_step("train", 10)
        usual = steps_per_second(cluster, USUAL_SECONDS)
        begin, (epoch, first) = time.monotonic(), last_step(cluster.job("train"))
        times = come_and_go(cluster, seconds)
        job = cluster.job("train")
        lost = 100 * (1 - (last_step(job)[1] - first) / (time.monotonic() - begin) / usual)
        name = f"a node that came {times} times for {UP_SECONDS:g} s: "
        rows = [row(f"{name}steps lost", max(0.0, lost), "%", MOST_LOST_PERCENT, by_clock=True),
                row(f"{name}epochs ended", last_step(job)[0] - epoch, "epochs", 2)]
        problems = [] if rows[0]["met"] else [f"{name}{[(e['kind'], e.get('message')) for e in cluster.events()][-12:]}"]
        stop_job(cluster, "train")
    return rows, problems
