"""Faults of jobs with two pipelines of unlike shape: the first cause is named, and training goes on with the same numbers."""
import os
import signal
import time

from harness import TestCluster, expect
from faults_common import last_step, rank_of, stop_job
from faults_pipelines_cluster import (INTERVAL, NODES, PATIENCE_SECONDS, QUICK, SLOW, TWO_PIPELINES, pipelines_of, start, start_node,
                                      submit_by_hand, submit_planned, wait_for_next_generation, wait_for_next_step)
import netns

MIDDLE_OF_SUMS = 0.8   # of a step of the job by hand, over the slow network
STRIKES = 3            # a busy host may let one come in another part of the step
LEAST_KNOWN = 14       # steps of the undisturbed job
MOST_STRUCK = 40       # more steps than those make that are struck and parted
MOST_DIFFERENCE = 1e-10


class Undisturbed:
    """The losses of these jobs by step, whatever their plan, when nothing happens."""
    losses = {}

    @classmethod
    def train(cls, cluster, steps):
        submit_planned(cluster, "undisturbed")
        cluster.wait_for_step("undisturbed", steps)
        expect(pipelines_of(cluster, "undisturbed") == TWO_PIPELINES, f"{pipelines_of(cluster, 'undisturbed')}")
        stop_job(cluster, "undisturbed")
        cls.losses = {int(r["step"]): r["loss"] for r in cluster.steps("undisturbed")}


def expect_same_losses(cluster, job_id):
    """Of every step, as often as it was made."""
    records = cluster.motley("metrics", job_id)["steps"]
    worst = max(abs(r["loss"] / Undisturbed.losses[int(r["step"])] - 1) for r in records)
    expect(worst < MOST_DIFFERENCE, f"of {len(records)} losses one differs by {worst:.2e}")


def lost_node(cluster):
    """A pipeline's whole node is killed: the other one trains alone, and beside it again when it is back."""
    submit_planned(cluster, "lost-node")
    cluster.wait_for_step("lost-node", INTERVAL + 1)
    expect(pipelines_of(cluster, "lost-node") == TWO_PIPELINES, f"at first: {pipelines_of(cluster, 'lost-node')}")
    generation = last_step(cluster.job("lost-node"))[0]
    cluster.kill_node("n2")
    generation = wait_for_next_generation(cluster, "lost-node", generation)
    expect(pipelines_of(cluster, "lost-node") == {"n1": 2}, f"without n2: {pipelines_of(cluster, 'lost-node')}")
    said = cluster.event_messages("replan", "lost-node")
    expect(len(said) == 1 and said[0].startswith("node n2 was lost: ") and "on 2 devices" in said[0], f"{said}")
    start_node(cluster, "n2", QUICK)
    wait_for_next_generation(cluster, "lost-node", generation)
    expect(pipelines_of(cluster, "lost-node") == TWO_PIPELINES, f"n2 is back: {pipelines_of(cluster, 'lost-node')}")
    said = cluster.event_messages("replan", "lost-node")
    expect(len(said) == 2 and "n2 can be used now" in said[1] and " 0 steps repeated" in said[1], f"{said}")
    wait_for_next_step(cluster, "lost-node")
    stop_job(cluster, "lost-node")
    Undisturbed.train(cluster, max(LEAST_KNOWN, last_step(cluster.job("lost-node"))[1]))
    expect_same_losses(cluster, "lost-node")


def strike_in_sums(cluster, signal_number, kind, before=()):
    """n2's rank gets the signal while n1's ranks sum with it. `before`: (kind, device) of the job's earlier troubles; returns all of
    them, and the newest one's message."""
    blamed = list(before)
    for _ in range(STRIKES):
        wait_for_next_step(cluster, "struck")
        job = cluster.job("struck")
        time.sleep(MIDDLE_OF_SUMS * job["last_step"]["step_seconds"])
        os.kill(rank_of(cluster, "n2"), signal_number)
        generation = wait_for_next_generation(cluster, "struck", last_step(job)[0])
        blamed.append((kind, "n2/gpu0"))
        troubles = [e for e in cluster.events("struck") if e["kind"] in {"rank_lost", "rank_hung", "rank_failed"}]
        expect([(e["kind"], e["device"]) for e in troubles] == blamed, f"blamed: {troubles}")
        said = troubles[-1]["message"]
        expect(cluster.event_messages("replan", "struck")[-1].startswith(said), f"{cluster.event_messages('replan', 'struck')}")
        log = cluster.run_motley("logs", "struck").stdout
        expect(f"generation {generation} goes on from step " in log and said in log, log)
        if "reduce_scatter" in said:
            return blamed, said
    raise AssertionError(f"{STRIKES} strikes and none in a sum: {said}")


def struck_in_sums(cluster):
    """One that dies and one that stops: it is named, and not those who wait for it."""
    submit_by_hand(cluster, "struck")
    cluster.wait_for_step("struck", INTERVAL)
    blamed, said = strike_in_sums(cluster, signal.SIGKILL, "rank_lost")
    expect(said.startswith("the rank on n2/gpu0 died: ") and "killed by signal 9" in said, said)
    _, said = strike_in_sums(cluster, signal.SIGSTOP, "rank_hung", blamed)
    expect(said.startswith("the rank on n2/gpu0 made no progress: ") and "no sign of life" in said, said)
    expect(pipelines_of(cluster, "struck") == TWO_PIPELINES, f"{pipelines_of(cluster, 'struck')}")
    expect_same_losses(cluster, "struck")
    stop_job(cluster, "struck")


def parted_pipelines():
    """The data network between the pipelines' nodes is cut: both ends are named, and the job trains when it heals."""
    with netns.NetworkCluster(NODES) as cluster:
        start(cluster)
        submit_by_hand(cluster, "parted")
        cluster.wait_for_step("parted", INTERVAL + 1)
        for sender, receiver in (("n1", "n2"), ("n2", "n1")):
            cluster.network.cut(sender, receiver, netns.DATA)
        said = cluster.wait_for(lambda: cluster.event_messages("rank_lost", "parted"), PATIENCE_SECONDS, "the ranks to lose each other")[0]
        expect("the ranks lost each other and nobody said why; said by the rank on n" in said and "Connection timed out" in said and
               ": lost n" in said and "n1/gpu" in said and "n2/gpu0" in said, said)
        generation = last_step(cluster.job("parted"))[0]
        cluster.network.heal()
        wait_for_next_generation(cluster, "parted", generation)
        expect(cluster.event_messages("replan", "parted")[0].startswith(said), f"{cluster.event_messages('replan', 'parted')}")
        expect(not cluster.event_messages("node_lost"), "a node is said to be lost")
        expect_same_losses(cluster, "parted")
        stop_job(cluster, "parted")


def lost_pipeline(results):
    with TestCluster() as cluster:
        start(cluster)
        results.run("pipelines: a pipeline's node killed and back", lost_node, cluster)


def undisturbed(cluster):
    Undisturbed.train(cluster, MOST_STRUCK)


def struck_and_parted(results):
    with TestCluster() as cluster:
        start(cluster)
        results.prepare("pipelines: undisturbed", undisturbed, cluster)
    if not Undisturbed.losses:   # said already
        return
    with TestCluster() as cluster:
        start(cluster, SLOW)
        results.run("pipelines: a rank killed, one stopped in the sums between them", struck_in_sums, cluster)
    results.run("pipelines: parted", lambda: netns.why_not() or parted_pipelines())
