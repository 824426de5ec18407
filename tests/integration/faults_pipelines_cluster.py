"""A cluster and jobs of two pipelines of unlike shape: n1's of two stages, n2's of one."""
import json

from harness import expect
from faults_common import last_step, paced_job, seconds_to_next_step

TIGHT, ROOMY = 75 << 16, 64 << 20  # bytes; a tight device does not hold what a step needs of the whole model
NODES = {"n1": [TIGHT, TIGHT], "n2": [ROOMY]}
TWO_PIPELINES = {"n1": 2, "n2": 1}   # stages of each
# Bytes a second between the nodes. Over the slow one a step's last third is the sum of all gradients between the pipelines.
QUICK, SLOW = 4e6, 1e6
STEPS = 200    # more than any of them makes
INTERVAL = 2   # steps between checkpoints
PATIENCE_SECONDS = 60


def start_node(cluster, name, bytes_per_second):
    devices = [{"kind": "emulated", "model": "tight" if memory == TIGHT else "roomy", "memory_bytes": memory,
                "flops_per_second": 12e8 if memory == TIGHT else 18e8, "link_bytes_per_second": 1e8} for memory in NODES[name]]
    cluster.start_worker(name, devices, network={"node_link_bytes_per_second": bytes_per_second})


def start(cluster, bytes_per_second=QUICK):
    cluster.start_coordinator()
    for name in NODES:
        start_node(cluster, name, bytes_per_second)
    cluster.wait_for_nodes(NODES)
    return cluster


def submit(cluster, job_id, **changes):
    paced_job(cluster, job_id, training__steps=STEPS, training__seq_len=128, data__validation_samples=2,
              checkpoint__interval=INTERVAL, **changes)


def submit_planned(cluster, job_id):
    """By the strategy that makes pipelines of unlike shape."""
    submit(cluster, job_id, planner__strategy="hexiscale", planner__max_tp=1)


def submit_by_hand(cluster, job_id):
    def stage(device, layers, microbatches):
        rank = {"device": device, "shard_ratio": 1, "recompute": "full"}
        return {"ministages": [layers], "zero_stage": 1, "units": [{"ranks": [rank], "microbatches": microbatches}]}

    two_stages = {"stages": [stage("n1/gpu0", [0, 0], [1] * 4), stage("n1/gpu1", [1, 1], [1] * 4)]}
    plan = {"schedule": "1f1b", "pipelines": [two_stages, {"stages": [stage("n2/gpu0", [0, 1], [4, 4])]}]}
    submit(cluster, job_id, planner__plan_json=json.dumps(plan))


def pipelines_of(cluster, job_id):
    """{node: number of its pipeline's stages} of the plan in force, in which no pipeline lies on two nodes."""
    pipelines = {}
    for pipeline in cluster.motley("plan", job_id)["plan"]["pipelines"]:
        nodes = {rank["device"].split("/")[0] for stage in pipeline["stages"] for unit in stage["units"] for rank in unit["ranks"]}
        expect(len(nodes) == 1 and not nodes & pipelines.keys(), f"{nodes} beside {pipelines}")
        pipelines[nodes.pop()] = len(pipeline["stages"])
    return pipelines


def wait_for_next_step(cluster, job_id):
    before = last_step(cluster.job(job_id))
    expect(seconds_to_next_step(cluster, job_id, before, PATIENCE_SECONDS) is not None,
           f"no step within {PATIENCE_SECONDS} s: {cluster.job(job_id).get('reason')}; {cluster.event_messages('replan', job_id)}")


def wait_for_next_generation(cluster, job_id, generation):
    """The number of the next one that makes a step."""
    cluster.wait_for(lambda: last_step(cluster.job(job_id))[0] > generation, PATIENCE_SECONDS, f"a step after generation {generation}")
    return last_step(cluster.job(job_id))[0]
