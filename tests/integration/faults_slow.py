"""What makes a job slower than its plan says: a rank that is stopped again and again, and a profile that was made on a busy machine."""
import os
import signal
import statistics
import threading
import time

from harness import TestCluster, expect, state_of
from faults_common import PACED, paced_job, rank_of, stop_job

SLOW_NODES = {"n1": [PACED], "n2": [PACED], "n3": [PACED]}
CPU = {"kind": "cpu", "memory_bytes": 2 << 30}
MOST_STEPS_TO_NAME = 20


class Stopped:
    """A process that is stopped again and again: by default 1 s of each 1.25 s."""

    def __init__(self, pid, stopped=1.0, runs=0.25):
        self.pid, self.stopped, self.runs, self.ended = pid, stopped, runs, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            while not self.ended.is_set():
                os.kill(self.pid, signal.SIGSTOP)
                time.sleep(self.stopped)
                os.kill(self.pid, signal.SIGCONT)
                self.ended.wait(self.runs)
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


def seconds_of_steps(cluster, generation):
    return [r["step_seconds"] for r in cluster.steps("spoiled") if int(r["generation"]) == generation]


def measuring_rank(cluster):
    """Of n1; None: it does not run yet."""
    try:
        return rank_of(cluster, "n1")
    except AssertionError:
        return None


def spoiled_profile():
    """Measured while something took three quarters of the time: said within ten steps, and right after the next measurement."""
    with TestCluster() as cluster:
        cluster.start({"n1": [CPU]})
        paced_job(cluster, "spoiled", training__steps=100000, checkpoint__interval=0, training__dtype="float32",
                  training__seq_len=128, training__global_batch_size=64)
        with Stopped(cluster.wait_for(lambda: measuring_rank(cluster), 30, "a rank that measures", poll_seconds=0.01), 0.045, 0.015):
            cluster.wait_for(lambda: state_of(cluster.job("spoiled")) not in {"QUEUED", "PROFILING"}, 120, "the end of the measurement")
        cluster.wait_for_state("spoiled", "RUNNING", 60)
        cluster.wait_for(lambda: cluster.event_messages("prediction_off"), 60, "an event prediction_off")
        job = cluster.job("spoiled")
        print(f"    predicted {job['predicted_step_seconds']:.4f} s; {job['reason'][:90]}", flush=True)
        expect("steps in a row took less than predicted" in job["reason"], job["reason"])
        before = int(job["generation"])
        cluster.motley("node", "measure", "n1")
        cluster.wait_for(lambda: int(cluster.job("spoiled")["generation"]) > before, 60, "the next generation")
        generation = int(cluster.job("spoiled")["generation"])
        cluster.wait_for(lambda: len(seconds_of_steps(cluster, generation)) >= 50, 60, "50 steps of it")
        median = statistics.median(seconds_of_steps(cluster, generation))
        predicted = cluster.job("spoiled")["predicted_step_seconds"]
        print(f"    measured again: predicted {predicted:.4f} s, median of its steps {median:.4f} s ({median / predicted - 1:+.1%})",
              flush=True)
        expect(abs(median / predicted - 1) < 1 / 3, "as wrong as before")
        stop_job(cluster, "spoiled")

