"""Nodes that are lost with their disks, one after the other, in a job that trains."""
import random
import re
import time

from files_common import SAME, generation_of, seconds_to_generation_above, step_of

LOSSES_OF_A_JOB = 20   # the undisturbed one takes longer than the minute behind the coordinator's start, in which it waits for nodes
STEPS, INTERVAL = 1000, 4


def sections(cluster, seed):
    return cluster.sections(training__steps=STEPS, training__seed=seed, checkpoint__interval=INTERVAL)


def resumed_steps(cluster, job_id):
    """Where each generation went on, the first one's begin left out."""
    steps = []
    for message in cluster.event_messages("plan", job_id)[1:]:
        found = re.search(r"from step (\d+)", message)
        steps.append(int(found.group(1)) if found else 0)
    return steps


def wait_until_safe_again(cluster, job_id, before):
    """Promised is the loss of one disk at a time: the next one comes when the job has a safe checkpoint of the nodes that it has now."""
    def is_safe():
        safe = cluster.job(job_id).get("safe_checkpoint", "")
        return safe if safe != before else None
    return cluster.wait_for(is_safe, 120, "a safe checkpoint", poll_seconds=0.05)


def lose_one(cluster, job_id, nodes, spare, draw):
    """Returns a row, and the names of the nodes that are left."""
    from check_local_storage import DEVICE, lose_disk
    at = int(cluster.job(job_id)["step"]) + draw.randint(5, 20)
    cluster.wait_for_step(job_id, min(at, STEPS - 20))
    time.sleep(draw.random() * 0.5)   # somewhere in a step, a save or a copy
    plans = len(cluster.event_messages("plan", job_id))
    before = cluster.job(job_id)
    lost = draw.choice(nodes)
    begin = time.monotonic()
    lose_disk(cluster, lost)
    cluster.workers.pop(lost)
    cluster.start_worker(spare, [DEVICE])
    cluster.wait_for(lambda: len(cluster.event_messages("plan", job_id)) > plans, 120, "another plan")
    seconds = time.monotonic() - begin
    went_on = resumed_steps(cluster, job_id)[plans - 1]
    to_step = seconds_to_generation_above(cluster, job_id, generation_of(before), begin)
    row = {"job": job_id, "lost": lost, "step": int(before["step"]), "newest": step_of(before["newest_checkpoint"]),
           "safe": step_of(before["safe_checkpoint"]), "went_on_from": went_on, "seconds": round(seconds, 1),
           "first_step_after": None if to_step is None else round(to_step, 1)}
    print("  " + "  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    return row, [node for node in nodes if node != lost] + [spare]


def measure(count, seed):
    from check_local_storage import DEVICE, LocalCluster
    draw = random.Random(seed)
    rows, worst, jobs, finished = [], 0.0, 0, 0
    while len(rows) < count:
        jobs += 1
        with LocalCluster() as cluster:
            nodes = ["n1", "n2", "n3"]
            cluster.start({node: [DEVICE] for node in nodes})
            cluster.submit_job("undisturbed", sections(cluster, seed + jobs))
            cluster.wait_for_state("undisturbed", "SUCCEEDED", 300)
            cluster.submit_job("disturbed", sections(cluster, seed + jobs))
            safe = ""
            for number in range(min(LOSSES_OF_A_JOB, count - len(rows))):
                safe = wait_until_safe_again(cluster, "disturbed", safe)
                row, nodes = lose_one(cluster, "disturbed", nodes, f"n{number + 4}", draw)
                rows.append(row)
            cluster.wait_for_state("disturbed", "SUCCEEDED", 300)
            finished += 1
            alone, curve = cluster.losses("undisturbed"), cluster.losses("disturbed")
            if len(alone) != len(curve):
                raise SystemExit(f"{len(curve)} of {len(alone)} steps are known")
            worst = max([worst] + [abs(a - b) / b for a, b in zip(curve, alone)])
    behind = sum(row["went_on_from"] < row["safe"] for row in rows)
    repeated = sorted(row["newest"] - row["went_on_from"] for row in rows)
    after = sorted(row["first_step_after"] for row in rows if row["first_step_after"] is not None)
    return {"losses": len(rows), "jobs": jobs, "finished": finished, "behind_safe": behind, "worst_loss_difference": worst,
            "steps_behind_newest_median": repeated[len(repeated) // 2], "steps_behind_newest_most": repeated[-1],
            "first_step_seconds_median": after[len(after) // 2] if after else None,
            "first_step_seconds_most": after[-1] if after else None, "rows": rows}


def losses_part(arguments):
    result = measure(arguments.losses, arguments.seed)
    print(f"{result['losses']} disks lost in {result['jobs']} jobs, {result['finished']} finished; {result['behind_safe']} times "
          f"behind the newest safe checkpoint; losses differ by {result['worst_loss_difference']:.1e} at most (float64); behind "
          f"the newest published: {result['steps_behind_newest_median']} steps in the median, "
          f"{result['steps_behind_newest_most']} at most; the first step came "
          f"{result['first_step_seconds_median']} s after the loss in the median, "
          f"{result['first_step_seconds_most']} s at most", flush=True)
    result["correct"] = result["behind_safe"] == 0 and result["worst_loss_difference"] <= SAME
    return result
