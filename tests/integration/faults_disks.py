"""The disk beneath a job: full, or a share that goes."""
import json
import os
import signal
import time

from harness import expect, published_checkpoints
from cluster import processes
import mounts
from faults_common import paced_job, rank_of
from faults_processes import NODES, STEPS, Undisturbed, expect_cause, expect_same_curve, name_of_step


def full_disk(cluster):
    """A checkpoint folder that cannot hold the checkpoint: training goes on and says so; with more space the last one is saved.
    Needs a small file system, so only as root."""
    folder = os.path.join(cluster.top, "small")
    os.makedirs(folder)
    if os.geteuid() != 0 or os.system(f"mount -t tmpfs -o size=64k tmpfs '{folder}' 2>/dev/null") != 0:
        return "not allowed to mount a small file system here"
    try:
        begin = time.time()
        paced_job(cluster, "full-disk", checkpoint__folder=folder, checkpoint__interval=3)
        expect_cause(cluster, "full-disk", {"checkpoint_failed"}, [folder, "is full"], begin)
        cluster.wait_for_step("full-disk", STEPS)
        expect(os.system(f"mount -o remount,size=64m '{folder}'") == 0, "the file system did not grow")
        job = cluster.wait_for_state("full-disk", "SUCCEEDED")
        expect(os.path.isdir(job["newest_checkpoint"] or ""), f"the last checkpoint is not there: {job}")
        expect_same_curve(cluster, "full-disk")
    finally:
        cluster.run_motley("stop", "full-disk")
        os.system(f"umount '{folder}'")
    return None


def lost_share():
    """The share is unmounted on one node of three, in the middle of a job: nothing is published that lacks its file, so that the
    loss of a rank afterwards costs the steps since the newest whole checkpoint, and the node."""
    if mounts.why_not():
        return mounts.why_not()
    with mounts.MountsCluster() as cluster:
        cluster.start(NODES)
        paced_job(cluster, "lost-share", checkpoint__folder=cluster.mount)
        folder = os.path.join(cluster.share, "lost-share")
        cluster.wait_for(lambda: name_of_step(folder, 5), 60, "the checkpoint of step 5", poll_seconds=0.02)
        begin = time.time()
        cluster.unmount("n3", "-l")
        expect_cause(cluster, "lost-share", {"checkpoint_failed"}, ["n3"], begin)
        said = [(e["node"], e["device"]) for e in cluster.events("lost-share") if e["kind"] == "checkpoint_failed"]
        expect(said[-1][1].startswith("n3/"), f"blamed: {said}")
        whole = whole_checkpoints(folder)
        expect(whole, "the good checkpoints are gone")
        os.kill(rank_of(cluster, "n2"), signal.SIGKILL)
        expect_cause(cluster, "lost-share", {"device_left_out"}, ["n3"], begin, 60)
        cluster.wait_for_state("lost-share", "SUCCEEDED", 120)
        if Undisturbed.curve:
            expect_same_curve(cluster, "lost-share")
        expect(max(whole_checkpoints(folder)) == STEPS, f"whole checkpoints: {whole_checkpoints(folder)}")
        expect(not os.listdir(cluster.mount), f"made on the node's own disk: {os.listdir(cluster.mount)}")
        for name in ("n1", "n2"):   # a worker without a rank keeps nobody from unmounting
            cluster.wait_for(lambda: not [p for p, parent, _ in processes() if parent == cluster.workers[name].pid], 20, f"{name}'s rank to end")
            cluster.unmount(name)
    return None


def whole_checkpoints(folder):
    """Steps of the published checkpoints, each of which has all files of its manifest."""
    steps = []
    for _, step, name in published_checkpoints(folder):
        with open(os.path.join(folder, name, "manifest.json"), encoding="utf-8") as file:
            files = {f["name"]: f["bytes"] for f in json.load(file)["files"]}
        there = {f: os.path.getsize(os.path.join(folder, name, f)) for f in os.listdir(os.path.join(folder, name)) if f.endswith(".bin")}
        expect(there == files, f"{name} was published with {there} instead of {files}")
        steps.append(step)
    return steps
