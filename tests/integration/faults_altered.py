"""Somebody on the way between two nodes alters what their ranks send each other: no step is made of it, and the job goes on.

Needs what netns.py needs. What alters is a rule of nftables, which TCP does not notice.
"""
from faults_common import PACED, last_step, newest_checkpoint, paced_job, row, stop_job
from harness import expect
from netns import NetworkCluster

NODES = {"n1": [PACED], "n2": [PACED]}
STEPS = 30
WORDS = "what n2/gpu0 sent to n1/gpu0 was altered on the way"
MOST_DIFFERENCE = 1e-13   # float64, the same plan


def times_said(cluster, job_id):
    return sum(WORDS in message for message in cluster.event_messages("rank_lost", job_id))


def alter_once(cluster, job_id):
    """Beyond a new checkpoint: three times without one between are too many."""
    saved, said = newest_checkpoint(cluster, job_id), times_said(cluster, job_id)
    cluster.wait_for(lambda: newest_checkpoint(cluster, job_id) > saved, 60, f"a checkpoint after step {saved}")
    cluster.network.alter("n2", "n1")
    cluster.wait_for(lambda: times_said(cluster, job_id) > said, 60, "the ranks to find what was altered")
    cluster.network.heal()
    before = last_step(cluster.job(job_id))
    cluster.wait_for(lambda: last_step(cluster.job(job_id)) > before, 60, f"a step after {before}")


def losses(cluster, job_id):
    """(step, loss) of every step as often as it was made."""
    return [(int(record["step"]), float(record["loss"])) for record in cluster.motley("metrics", job_id)["steps"]]


def altered_messages(times):
    """Rows, and what went wrong in words."""
    with NetworkCluster(NODES) as cluster:
        cluster.start(NODES)
        for job_id, alterations in (("quiet", 0), ("altered", times)):
            paced_job(cluster, job_id, training__steps=STEPS, checkpoint__interval=2)
            for _ in range(alterations):
                alter_once(cluster, job_id)
            cluster.wait_for_state(job_id, "SUCCEEDED", 120)
        quiet, altered = dict(losses(cluster, "quiet")), losses(cluster, "altered")
        expect({step for step, _ in altered} == set(quiet) == set(range(1, STEPS + 1)), f"{sorted(quiet)}; {altered}")
        differ = max(abs(loss - quiet[step]) / abs(quiet[step]) for step, loss in altered)
        paced_job(cluster, "ever", training__steps=1_000_000, checkpoint__interval=1_000_000)
        cluster.wait_for_step("ever", 1)
        cluster.network.alter("n2", "n1")
        cluster.wait_for(lambda: cluster.event_messages("device_left_out", "ever"), 90, "one of the two nodes to be left out")
        left_out = cluster.event_messages("device_left_out", "ever")
        expect(any(WORDS in message for message in left_out), left_out)
        generation = last_step(cluster.job("ever"))[0]
        cluster.wait_for(lambda: last_step(cluster.job("ever"))[0] > generation, 60, "steps on the node that is left")
        stop_job(cluster, "ever")
    return [row(f"messages altered {times} times: losses differ from the undisturbed job's by", differ, "relative", MOST_DIFFERENCE)], []
