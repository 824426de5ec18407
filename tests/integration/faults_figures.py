"""How long the common disturbances hold a job up, and what many jobs, watchers and workers cost the coordinator."""
import json
import os
import subprocess
import tempfile
import time

from harness import BIN, TestCluster
from faults_common import PACED, last_step, paced_job, row, seconds_to_next_step, stop_job

NODES = {"n1": [PACED], "n2": [PACED], "n3": [PACED]}


def lost_worker(cluster):
    """Seconds from the death of a worker to the next step without it."""
    before = last_step(cluster.job("train"))
    cluster.workers["n3"].kill()
    begin = time.monotonic()
    while time.monotonic() - begin < 60:
        if last_step(cluster.job("train"))[0] > before[0]:
            cluster.workers["n3"].process.wait()
            return time.monotonic() - begin
        time.sleep(0.02)
    return None


def join_pause(cluster):
    """Seconds that a planned join holds the job up, beyond one step; waits for the join."""
    cluster.start_worker("n3", NODES["n3"])
    epoch, step = last_step(cluster.job("train"))
    seen, begin = time.monotonic(), time.monotonic()
    while time.monotonic() - begin < 90:
        job = cluster.job("train")
        now = last_step(job)
        if now[0] > epoch:
            return max(0.0, time.monotonic() - seen - job["last_step"]["step_seconds"])
        if now[1] > step:
            step, seen = now[1], time.monotonic()
        time.sleep(0.01)
    return None


def crowd():
    """Rows of tests/bench/crowd_bench.cc, and what went wrong in words."""
    program = os.path.join(BIN, "crowd_bench")
    if not os.path.exists(program):
        print(f"left out: crowds: no {program}", flush=True)
        return [], []
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        done = subprocess.run([program, "--json", out.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            return [], [f"crowds: {done.stdout[-600:]}"]
        return json.load(out)["rows"], []


def measured(name, value, goal):
    return row(name, value, "s", goal, met=value is not None and value <= goal)


def figures():
    """Rows, and what went wrong in words."""
    with TestCluster() as cluster:
        cluster.start(NODES)
        paced_job(cluster, "train", training__steps=1_000_000, checkpoint__interval=20)
        cluster.wait_for_step("train", 25)
        rows = [measured("next step after the death of a worker", lost_worker(cluster), 3.5),
                measured("pause of a planned join, beyond a step", join_pause(cluster), 1.5)]
        if seconds_to_next_step(cluster, "train", last_step(cluster.job("train")), 60) is None:
            return rows, ["no step after the join"]
        stop_job(cluster, "train")
    more, wrong = crowd()
    return rows + more, wrong
