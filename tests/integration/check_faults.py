#!/usr/bin/env python3
"""Things die, stop, and lie: the first cause is reported, training goes on with the same numbers, and nothing is left behind."""
import json
import os
import re
import shutil
import signal
import sys
import time

from harness import Results, TestCluster, expect, published_checkpoints, state_of
from cluster import processes
import mounts
import netns
from faults_common import PACED, paced_job, rank_of
from faults_curve import curve, flipped_reads
from faults_kills import kills
from faults_members import membership
from faults_newcomers import newcomers, silent_in_swap
from faults_partitions import BOTH, FROM, partitions
from faults_pipelines import pipelines
from faults_roots import swapped_folder
from faults_slow import slow_rank
from faults_take_over import take_overs
from faults_upgrade import upgrade
import faults_strangers

NOTICE_SECONDS = 5
NODES = {"n1": [PACED], "n2": [PACED], "n3": [PACED]}
STEPS = 40


def losses(cluster, job_id):
    return [r["loss"] for r in cluster.steps(job_id)]


class Undisturbed:
    """The loss curve of the same job when nothing happens."""
    curve = None


def undisturbed(cluster):
    paced_job(cluster, "undisturbed")
    cluster.wait_for_state("undisturbed", "SUCCEEDED")
    Undisturbed.curve = losses(cluster, "undisturbed")
    expect(len(Undisturbed.curve) == STEPS, f"{len(Undisturbed.curve)} steps")


def expect_same_curve(cluster, job_id):
    curve = losses(cluster, job_id)
    expect(len(curve) == STEPS, f"{len(curve)} of {STEPS} steps are known")
    worst = max(abs(a - b) / b for a, b in zip(curve, Undisturbed.curve))
    expect(worst < 1e-10, f"the loss curve differs by {worst:.2e}")


def expect_cause(cluster, job_id, kinds, words, within_seconds, since):
    """An event of one of the kinds whose message holds all words comes within the time."""
    def there():
        return [e for e in cluster.events() if e["kind"] in kinds and int(e["unix_ms"]) >= since * 1000 - 50 and
                all(w in e["message"] + (e["node"] or "") + (e["device"] or "") for w in words)]

    cluster.wait_for(there, within_seconds, f"an event {'/'.join(kinds)} that names {', '.join(words)}; events: "
                     f"{[(e['kind'], e.get('message')) for e in cluster.events()][-6:]}")


def killed_rank(cluster):
    paced_job(cluster, "killed-rank")
    cluster.wait_for_step("killed-rank", 8)
    begin = time.time()
    os.kill(rank_of(cluster, "n2"), signal.SIGKILL)
    expect_cause(cluster, "killed-rank", {"rank_lost"}, ["n2/"], NOTICE_SECONDS, begin)
    cluster.wait_for_state("killed-rank", "SUCCEEDED")
    expect_same_curve(cluster, "killed-rank")
    # Steps that come a second time would look like a training that went wrong.
    expect(re.search(r"training +generation \d+ goes on from step \d+: ", cluster.run_motley("logs", "killed-rank").stdout),
           "the log does not say that the training went back")


def stopped_rank(cluster):
    paced_job(cluster, "stopped-rank")
    cluster.wait_for_step("stopped-rank", 8)
    begin = time.time()
    pid = rank_of(cluster, "n3")
    os.kill(pid, signal.SIGSTOP)
    expect_cause(cluster, "stopped-rank", {"rank_hung"}, ["n3"], NOTICE_SECONDS, begin)
    cluster.wait_for_state("stopped-rank", "SUCCEEDED")
    expect(not os.path.exists(f"/proc/{pid}"), "the stopped rank still exists")
    expect_same_curve(cluster, "stopped-rank")


def killed_worker(cluster):
    paced_job(cluster, "killed-worker")
    cluster.wait_for_step("killed-worker", 8)
    begin = time.time()
    rank = rank_of(cluster, "n1")
    cluster.workers["n1"].kill()
    cluster.wait_for(lambda: not os.path.exists(f"/proc/{rank}"), 3, "the rank of the dead worker to be gone")
    expect_cause(cluster, "killed-worker", {"node_lost"}, ["n1"], NOTICE_SECONDS, begin)
    cluster.wait_for(lambda: int(cluster.job("killed-worker")["generation"]) >= 2, 30, "the second generation")
    cluster.workers["n1"].process.wait()
    cluster.start_worker("n1", NODES["n1"])
    cluster.wait_for_state("killed-worker", "SUCCEEDED")
    cluster.wait_for_nodes(["n1"])
    expect_same_curve(cluster, "killed-worker")


def last_worker_lost(cluster):
    paced_job(cluster, "all-lost")
    cluster.wait_for_step("all-lost", 8)
    for name in NODES:
        cluster.workers[name].kill()
    cluster.wait_for_state("all-lost", "WAITING", 30)
    expect(cluster.job("all-lost").get("reason"), "the waiting job has no reason")
    for name in NODES:
        cluster.workers[name].process.wait()
        cluster.start_worker(name, NODES[name])
    cluster.wait_for_nodes(NODES, 40)
    cluster.wait_for_state("all-lost", "SUCCEEDED")
    expect_same_curve(cluster, "all-lost")


def killed_coordinator(cluster):
    paced_job(cluster, "killed-coordinator")
    paced_job(cluster, "queued-behind", training__steps=2)
    cluster.wait_for_step("killed-coordinator", 8)
    done = int(cluster.job("killed-coordinator")["step"])
    cluster.coordinator.kill()
    cluster.coordinator.process.wait()
    cluster.start_coordinator()
    known = {j["id"] for j in cluster.motley("list")["jobs"]}
    expect({"killed-coordinator", "queued-behind"} <= known, f"acknowledged jobs are gone: {known}")
    cluster.wait_for_nodes(NODES, 40)
    cluster.wait_for_state("killed-coordinator", "SUCCEEDED", 120)
    cluster.wait_for_state("queued-behind", "SUCCEEDED", 120)
    said = cluster.event_messages("replan", "killed-coordinator")[-1]
    repeated = int(re.search(r"(\d+) steps? repeated", said).group(1))
    expect(repeated >= done % 5, f"step {done} was done and a checkpoint comes every 5 steps; yet: {said}")
    expect(abs(losses(cluster, "killed-coordinator")[-1] / Undisturbed.curve[-1] - 1) < 1e-10, "the last loss differs")


def expect_nothing_repeated(cluster, job_id):
    said = cluster.event_messages("replan", job_id)
    expect(said and all(" 0 steps repeated" in line for line in said), f"replans: {said}")
    steps = [int(r["step"]) for r in cluster.steps(job_id)]
    expect(len(steps) == len(set(steps)), f"steps were done twice: {steps}")


def stopped_coordinator_saves(cluster):
    """SIGTERM: the job saves although no checkpoint is due, and goes on from there when the coordinator is back."""
    paced_job(cluster, "stopped-coordinator", checkpoint__interval=1000)
    cluster.wait_for_step("stopped-coordinator", 8)
    expect(cluster.coordinator.stop(30) == 0, "the coordinator did not end by itself")
    saved = os.listdir(cluster.checkpoints("stopped-coordinator"))
    expect(any(name.startswith("step-") for name in saved), f"nothing was saved: {saved}")
    cluster.start_coordinator()
    cluster.wait_for_nodes(NODES, 40)
    cluster.wait_for_state("stopped-coordinator", "SUCCEEDED", 120)
    said = cluster.event_messages("replan", "stopped-coordinator")
    expect(said and all(" 0 steps repeated" in line for line in said), f"replans: {said}")
    expect(abs(losses(cluster, "stopped-coordinator")[-1] / Undisturbed.curve[-1] - 1) < 1e-10, "the last loss differs")


def stopped_worker_saves(cluster):
    """SIGTERM of a worker: the job saves first and goes on without it."""
    paced_job(cluster, "stopped-worker", checkpoint__interval=1000)
    cluster.wait_for_step("stopped-worker", 8)
    expect(cluster.workers["n2"].stop(30) == 0, "the worker did not end by itself")
    expect(cluster.event_messages("node_leaving"), "no event says that the node leaves")
    cluster.wait_for(lambda: int(cluster.job("stopped-worker")["generation"]) >= 2, 30, "the second generation")
    cluster.start_worker("n2", NODES["n2"])
    cluster.wait_for_state("stopped-worker", "SUCCEEDED", 120)
    cluster.wait_for_nodes(["n2"])
    expect_nothing_repeated(cluster, "stopped-worker")
    expect_same_curve(cluster, "stopped-worker")


def drained_node(cluster):
    paced_job(cluster, "drained")
    cluster.wait_for_step("drained", 8)
    cluster.motley("nodes", "drain", "n2")
    cluster.wait_for(lambda: int(cluster.job("drained")["generation"]) >= 2, 30, "the second generation")
    cluster.wait_for(lambda: {n["name"]: n["state"] for n in cluster.nodes()}["n2"] == "drained", 30, "n2 to be drained")
    cluster.motley("nodes", "undrain", "n2")
    cluster.wait_for_state("drained", "SUCCEEDED")
    expect_same_curve(cluster, "drained")


def stop_saves(cluster):
    """Stop saves a checkpoint; another job into whose folder it is copied goes on from there, and so does the job itself."""
    paced_job(cluster, "stopped")
    cluster.wait_for_step("stopped", 8)
    cluster.run_motley("stop", "stopped")
    job = cluster.wait_for_state("stopped", "STOPPED", 30)
    expect(job.get("newest_checkpoint"), "no checkpoint was saved on stop")
    saved = int(job["step"])
    for copy in ("foreign", "resumed"):
        shutil.copytree(cluster.checkpoints("stopped"), cluster.checkpoints(copy))
    paced_job(cluster, "foreign")
    job = cluster.wait_for_state("foreign", "FAILED", 60)
    expect("was made by job 'stopped'" in job["reason"] and "adopt" in job["reason"], f"another job's folder was taken: {job['reason']!r}")
    with open(os.path.join(cluster.checkpoints("resumed"), "adopt"), "w", encoding="utf-8") as file:
        file.write("stopped\n")
    paced_job(cluster, "resumed")
    cluster.wait_for_state("resumed", "SUCCEEDED")
    curve = losses(cluster, "resumed")
    expect(len(curve) == STEPS - saved, f"{len(curve)} steps after {saved}")
    worst = max(abs(a - b) / b for a, b in zip(curve, Undisturbed.curve[saved:]))
    expect(worst < 1e-10, f"the loss curve differs by {worst:.2e}")
    # The job itself goes on, too.
    cluster.motley("resume", "stopped")
    cluster.wait_for_state("stopped", "SUCCEEDED")
    expect_same_curve(cluster, "stopped")


def altered_checkpoint(cluster):
    """The newest checkpoint is altered, then a rank dies: the one before is used, and an event says so."""
    paced_job(cluster, "altered")
    folder = cluster.checkpoints("altered")
    name = cluster.wait_for(lambda: name_of_step(folder, 10), 60, "the checkpoint of step 10", poll_seconds=0.02)
    folder = os.path.join(folder, name)
    victim = max((os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".bin")), key=os.path.getsize)
    with open(victim, "r+b") as file:
        file.seek(100)
        byte = file.read(1)
        file.seek(100)
        file.write(bytes([byte[0] ^ 1]))
    os.kill(rank_of(cluster, "n2"), signal.SIGKILL)
    cluster.wait_for_state("altered", "SUCCEEDED")
    said = [e["message"] for e in cluster.events("altered") if e["kind"] == "checkpoint_skipped"]
    expect(any(name in message for message in said), f"no event says that {name} was left out: {said}")
    expect_same_curve(cluster, "altered")


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
        expect_cause(cluster, "full-disk", {"checkpoint_failed"}, [folder, "is full"], 40, begin)
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
        expect_cause(cluster, "lost-share", {"checkpoint_failed"}, ["n3"], 30, begin)
        said = [(e["node"], e["device"]) for e in cluster.events("lost-share") if e["kind"] == "checkpoint_failed"]
        expect(said[-1][1].startswith("n3/"), f"blamed: {said}")
        whole = whole_checkpoints(folder)
        expect(whole, "the good checkpoints are gone")
        os.kill(rank_of(cluster, "n2"), signal.SIGKILL)
        expect_cause(cluster, "lost-share", {"device_left_out"}, ["n3"], 60, begin)
        cluster.wait_for_state("lost-share", "SUCCEEDED", 120)
        if Undisturbed.curve:
            expect_same_curve(cluster, "lost-share")
        expect(max(whole_checkpoints(folder)) == STEPS, f"whole checkpoints: {whole_checkpoints(folder)}")
        expect(not os.listdir(cluster.mount), f"made on the node's own disk: {os.listdir(cluster.mount)}")
        for name in ("n1", "n2"):   # a worker without a rank keeps nobody from unmounting
            cluster.wait_for(lambda: not [p for p, parent, _ in processes() if parent == cluster.workers[name].pid], 20, f"{name}'s rank to end")
            cluster.unmount(name)
    return None


def name_of_step(folder, step):
    return next((name for _, of, name in published_checkpoints(folder) if of == step), None)


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


def expect_met(rows, problems):
    expect(all(row["met"] for row in rows) and not problems, f"{problems}; {[row for row in rows if not row['met']]}")


def killed_again_and_again(seed):
    """The start of ./run bench faults: the coordinator killed under submits and training."""
    expect_met(*kills(4, seed, interval_seconds=2.0, clusters=1))


def partitioned():
    """The same: a node's data plane, then its control plane one way, gone for longer than TCP's patience and a lease."""
    if netns.why_not():
        return netns.why_not()
    expect_met(*partitions(12, [((netns.DATA,), BOTH), ((netns.CONTROL,), FROM)]))
    return None


def bad_newcomers():
    """The same: one newcomer of each bad kind beside a running job."""
    return netns.why_not() or expect_met(*newcomers(1))


def members_on_a_network():
    """The same: certificates renewed and a new authority under a job, a node that is forgotten."""
    return netns.why_not() or expect_met(*membership(1))


def another_machine_takes_over():
    """The same: the coordinator's machine is lost twice, and another takes the cluster over."""
    return netns.why_not() or expect_met(*take_overs(2, every=2, seed=7))


def misreading_node():
    """One fault of the long job's: a node that reads other bytes of a checkpoint than there are."""
    return mounts.why_not() or expect_met(*curve(0, [flipped_reads]))


def silent_newcomer():
    return netns.why_not() or silent_in_swap()


def invented_numbers():
    return faults_strangers.why_not() or faults_strangers.nothing_believed()


def nothing_left(cluster, before_shm):
    cluster.stop()
    left = [(pid, name) for pid, _, name in processes() if name.startswith("motley") and cluster_owns(pid, cluster)]
    expect(not left, f"processes left: {left}")
    temporary = [os.path.join(d, f) for d, folders, files in os.walk(os.path.join(cluster.top, "checkpoints")) for f in folders + files
                 if f.startswith(".tmp")]
    expect(not temporary, f"temporary checkpoints left: {temporary[:3]}")
    shm = set(os.listdir("/dev/shm")) - before_shm
    expect(not [name for name in shm if "motley" in name], f"shared memory left: {shm}")


def cluster_owns(pid, cluster):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read().decode(errors="replace")
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read().decode(errors="replace")
    except OSError:
        return False
    return cluster.top in command or f"MOTLEY_TEST={cluster.top}" in environment


def main():
    results = Results("faults")
    before_shm = set(os.listdir("/dev/shm"))
    with TestCluster() as cluster:
        os.environ["MOTLEY_TEST"] = cluster.top   # marks every process of this cluster, orphans included
        cluster.stop_seconds = 20   # a worker that is told to end lets the job save
        cluster.start(NODES)
        results.run("undisturbed", undisturbed, cluster)
        if Undisturbed.curve:
            for test in (killed_rank, stopped_rank, killed_worker, last_worker_lost, killed_coordinator,
                         stopped_coordinator_saves, stopped_worker_saves, drained_node, stop_saves, altered_checkpoint):
                results.run(test.__name__.replace("_", " "), test, cluster)
                for job in cluster.motley("list")["jobs"]:   # a failed test must not hold up the next
                    if state_of(job) not in {"SUCCEEDED", "FAILED", "STOPPED"}:
                        cluster.run_motley("stop", job["id"])
        results.run("a checkpoint folder swapped for a link outside", swapped_folder, cluster)
        results.run("full disk", full_disk, cluster)
        results.run("nothing is left", nothing_left, cluster, before_shm)
    pipelines(results)
    results.run("a rank that is stopped again and again", slow_rank)
    results.run("lost share", lost_share)
    results.run("a node that misreads checkpoints", misreading_node)
    results.run("kills of the coordinator", killed_again_and_again, 1)
    results.run("partitions", partitioned)
    results.run("members: renewed, a new authority, forgotten", members_on_a_network)
    results.run("the coordinator's machine lost, another takes over", another_machine_takes_over)
    results.run("upgraded node by node", lambda: expect_met(*upgrade()))
    results.run("bad newcomers", bad_newcomers)
    results.run("a newcomer that is silent in the swap", silent_newcomer)
    results.run("strangers that invent numbers", invented_numbers)
    results.exit()


if __name__ == "__main__":
    sys.exit(main())
