"""Processes of a cluster of three are killed, stopped and told to end: the first cause is reported, and training goes on with the same
numbers."""
import os
import re
import shutil
import signal
import time

from harness import expect, published_checkpoints, state_of
from faults_common import PACED, paced_job, rank_of
from patience import patience

NOTICE_SECONDS = 30   # a busy host; how soon is decided is asked of the decisions, with time as a number
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


def expect_cause(cluster, job_id, kinds, words, since, within_seconds=NOTICE_SECONDS):
    """An event of one of the kinds whose message holds all words comes."""
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
    expect_cause(cluster, "killed-rank", {"rank_lost"}, ["n2/"], begin)
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
    expect_cause(cluster, "stopped-rank", {"rank_hung"}, ["n3", "no sign of life"], begin)
    cluster.wait_for_state("stopped-rank", "SUCCEEDED")
    expect(not os.path.exists(f"/proc/{pid}"), "the stopped rank still exists")
    expect_same_curve(cluster, "stopped-rank")


def killed_worker(cluster):
    paced_job(cluster, "killed-worker")
    cluster.wait_for_step("killed-worker", 8)
    begin = time.time()
    rank = rank_of(cluster, "n1")
    cluster.workers["n1"].kill()
    cluster.wait_for(lambda: not os.path.exists(f"/proc/{rank}"), NOTICE_SECONDS, "the rank of the dead worker to be gone")
    expect_cause(cluster, "killed-worker", {"node_lost"}, ["n1"], begin)
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
    expect(cluster.coordinator.stop(patience(30)) == 0, "the coordinator did not end by itself")
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
    expect(cluster.workers["n2"].stop(patience(30)) == 0, "the worker did not end by itself")
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
    made_by, adopt = f"job 'stopped' (uid {cluster.job('stopped')['uid']}), newest step {saved}", os.path.join(cluster.checkpoints("foreign"), "adopt")
    expect(made_by in job["reason"] and adopt in job["reason"], f"another job's folder was taken: {job['reason']!r}")
    with open(os.path.join(cluster.checkpoints("resumed"), "adopt"), "w", encoding="utf-8") as file:
        file.write(f"{cluster.job('stopped')['uid']}\n")
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


def name_of_step(folder, step):
    return next((name for _, of, name in published_checkpoints(folder) if of == step), None)


CASES = (killed_rank, stopped_rank, killed_worker, last_worker_lost, killed_coordinator, stopped_coordinator_saves, stopped_worker_saves,
         drained_node, stop_saves, altered_checkpoint)


def processes_of_a_cluster(results, cluster):
    """Each case ends with all nodes ready."""
    cluster.start(NODES)
    results.prepare("undisturbed", undisturbed, cluster)
    for case in CASES if Undisturbed.curve else ():
        results.run(case.__name__.replace("_", " "), case, cluster)
        for job in cluster.motley("list")["jobs"]:   # a failed test must not hold up the next
            if state_of(job) not in {"SUCCEEDED", "FAILED", "STOPPED"}:
                cluster.run_motley("stop", job["id"])
