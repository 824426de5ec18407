"""All machines of a job lose their power at once, again and again: from where it went on, and with which numbers."""
import random
import re
import time

from check_local_storage import DEVICE, LocalCluster
from files_common import NODES, SAME, event_times, generation_of, kill_all, median, newest_published, say, \
    seconds_to_generation_above, start_all, step_files, step_of, worst_difference

KILLS_OF_A_JOB = 10
STEPS_OF_A_KILL, INTERVAL = 24, 3


def sections(cluster, seed, kills):
    return cluster.sections(training__steps=STEPS_OF_A_KILL * (kills + 2), training__seed=seed, checkpoint__interval=INTERVAL,
                            metrics__step_records="jsonl")


def kill_once(cluster, job_id, number, draw):
    # Of most restarts it makes fewer steps than it had: each kill has steps of its own to come in.
    cluster.wait_for_step(job_id, STEPS_OF_A_KILL * number + draw.randint(1, STEPS_OF_A_KILL - 4))
    time.sleep(draw.random() * 0.4)   # somewhere in a step, a save or a copy
    before = cluster.job(job_id)
    begin = time.time()
    kill_all(cluster, NODES)
    killed = time.monotonic()
    newest = newest_published(cluster, NODES, job_id)
    start_all(cluster, NODES, DEVICE)
    cluster.wait_for(lambda: [at for at, _ in event_times(cluster, "plan", job_id) if at > begin], 120, "another plan")
    to_step = seconds_to_generation_above(cluster, job_id, generation_of(before), killed)
    # All of them: none goes on from less, the one with nodes that came a moment later neither.
    plans = [message for at, message in event_times(cluster, "plan", job_id) if at > begin]
    from_steps = [int(found.group(1)) if (found := re.search(r"from step (\d+)", message)) else 0 for message in plans]
    return say(kill=number + 1, step=int(before["step"]), published=newest, went_on_from=min(from_steps),
               behind=max(0, step_of(newest) - min(from_steps)), first_step_after=None if to_step is None else round(to_step, 1))


def one_job(seed, kills, draw):
    """Rows, the worst difference of a loss, and steps that no record is of."""
    with LocalCluster() as cluster:
        cluster.start({node: [DEVICE] for node in NODES})
        cluster.submit_job("undisturbed", sections(cluster, seed, kills))
        cluster.wait_for_state("undisturbed", "SUCCEEDED", 300)
        alone = cluster.losses("undisturbed")
        cluster.submit_job("disturbed", sections(cluster, seed, kills))
        rows = [kill_once(cluster, "disturbed", number, draw) for number in range(kills)]
        cluster.wait_for_state("disturbed", "SUCCEEDED", 300)
        # A record may be lost with the rank that made it; of what was made again there is a later one.
        return rows, *worst_difference(step_files(cluster, "disturbed"), alone)


def killed_part(arguments):
    count, draw = arguments.count or 50, random.Random(arguments.seed)
    rows, worst, unknown, jobs = [], 0.0, 0, 0
    while len(rows) < count:
        jobs += 1
        of_job, difference, lacking = one_job(arguments.seed + jobs, min(KILLS_OF_A_JOB, count - len(rows)), draw)
        rows, worst, unknown = rows + of_job, max(worst, difference), unknown + lacking
    behind = [row["behind"] for row in rows]
    after = [row["first_step_after"] for row in rows if row["first_step_after"] is not None]
    times = sum(value > 0 for value in behind)
    print(f"killed: all processes killed at once {len(rows)} times in {jobs} jobs, all of which finished: behind the newest "
          f"published checkpoint {times} times, {max(behind)} steps at most (goal 0); losses differ by {worst:.1e} (goal "
          f"{SAME:.0e}), {unknown} steps have no record; the first step came {median(after)} s later in the median, "
          f"{max(after, default=None)} s at most", flush=True)
    return {"kills": len(rows), "jobs": jobs, "times_behind": times, "steps_behind_most": max(behind),
            "worst_loss_difference": worst, "steps_without_record": unknown, "first_step_seconds_median": median(after),
            "first_step_seconds_most": max(after, default=None), "rows": rows, "correct": max(behind) == 0 and worst <= SAME}
