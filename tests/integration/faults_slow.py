"""What makes a job slower than its plan says: a rank that is stopped again and again."""
import os
import random
import signal
import threading
import time

from harness import TestCluster, expect
from faults_common import PACED, paced_job, rank_of, stop_job

SLOW_NODES = {"n1": [PACED], "n2": [PACED], "n3": [PACED]}
MOST_STEPS_TO_NAME = 60  # of half a second and more each: half a minute is looked at


class Stopped:
    """A process that is stopped 1 s of each 1.1 to 1.4 s: not in time with its steps."""

    def __init__(self, pid):
        self.pid, self.ended = pid, threading.Event()
        self.random = random.Random(1)
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            while not self.ended.is_set():
                os.kill(self.pid, signal.SIGSTOP)
                time.sleep(1)
                os.kill(self.pid, signal.SIGCONT)
                self.ended.wait(self.random.uniform(0.1, 0.4))
        except ProcessLookupError:
            pass  # it has ended

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def slow_rank():
    """The right one of three is named, with what it takes, and is not named any more when it is fast again."""
    with TestCluster() as cluster:
        cluster.start(SLOW_NODES)
        paced_job(cluster, "slow", training__steps=4000, checkpoint__interval=0)
        cluster.wait_for_step("slow", 30, 120)
        expect(not cluster.event_messages("slow_rank"), f"named before: {cluster.event_messages('slow_rank')}")
        first = int(cluster.job("slow")["step"])
        with Stopped(rank_of(cluster, "n2")):
            cluster.wait_for(lambda: cluster.event_messages("slow_rank"), 90, "an event slow_rank", poll_seconds=0.1)
            job = cluster.job("slow")
            took = int(job["step"]) - first
        [message] = cluster.event_messages("slow_rank")
        print(f"    named after {took} steps: {message}", flush=True)
        expect(message.startswith("n2/") and "slows the job down" in message, message)
        expect(took <= MOST_STEPS_TO_NAME, f"{took} steps")
        expect("slows the job down" in job["reason"], job["reason"])
        cluster.wait_for(lambda: len(cluster.event_messages("slow_rank")) == 2, 60, "a word that it is fast again")
        expect("is as fast as predicted again" in cluster.event_messages("slow_rank")[1], f"{cluster.event_messages('slow_rank')}")
        stop_job(cluster, "slow")
