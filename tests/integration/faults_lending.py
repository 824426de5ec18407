"""A job whose plan names a node that is lost lends the cluster; both jobs end with the numbers of one that nobody disturbed."""
from harness import TestCluster, expect
from faults_common import PACED, paced_job

STEPS = 60
INTERVAL = 10


def losses(cluster, job_id):
    """By step, as it was made last."""
    return {int(step["step"]): step["loss"] for step in cluster.steps(job_id)}


def a_waiting_job_lends():
    with TestCluster() as cluster:
        cluster.stop_seconds = 20
        cluster.start({"n1": [PACED], "n2": [PACED]})
        settings = {"training__steps": STEPS, "checkpoint__interval": INTERVAL}
        paced_job(cluster, "pinned", planner__strategy="auto", planner__pins="stage0=n2", **settings)
        cluster.wait_for_step("pinned", INTERVAL + 1)
        paced_job(cluster, "other", **settings)
        cluster.kill_node("n2")
        cluster.wait_for_step("other", INTERVAL + 1, 120)
        reason = cluster.job("pinned")["reason"]
        expect("n2" in reason and "lends the cluster to job other" in reason, f"the lender says: {reason}")
        expect("borrows the cluster from job pinned" in cluster.job("other")["reason"], f"the borrower says: {cluster.job('other')['reason']}")
        cluster.start_worker("n2", [PACED])
        cluster.wait_for_state("other", "QUEUED", 120)
        for job_id in ("pinned", "other"):
            cluster.wait_for_state(job_id, "SUCCEEDED", 180)
        paced_job(cluster, "undisturbed", **settings)
        cluster.wait_for_state("undisturbed", "SUCCEEDED", 120)
        wanted = losses(cluster, "undisturbed")
        for job_id in ("pinned", "other"):
            got = losses(cluster, job_id)
            worst = max(abs(got[step] - wanted[step]) / abs(wanted[step]) for step in wanted)
            expect(worst <= 1e-12, f"{job_id}: relative difference {worst:.1e}")
