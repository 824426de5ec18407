"""Copies beside a job that is bound by its links: what they cost its steps, and how soon a checkpoint is safe.

The same job with and without copies, by turns, on three nodes whose links have --mbit a second each; then with copies once more
on links of twice that. A step counts as one beside copies when it lies between a checkpoint's event and the one that says it is
safe. Steps with a save are left out: they are longer by it. Times are those of rank 0's records and of the coordinator's events,
which are of one machine's clock here.
"""
import random
import re

from check_local_storage import wait_until_safe
from files_common import FAST_DEVICE, NODES, LinkedCluster, event_times, median, network_refusal, say, share_of, step_files

INTERVAL = 6              # so short that many steps are beside copies: their rate is judged by twenty of them
INTERVALS_OF_A_JOB = 20
ROOMY_INTERVAL = 20
MOST_SLOWER, MOST_INTERVALS = 1.02, 0.8


def train(cluster, job, copies, intervals, interval=INTERVAL):
    """{step: seconds}, without those that save, (begin, end) of each checkpoint's copies, and the seconds of each interval."""
    cluster.submit_job(job, cluster.sections(
        model__flavor="text-small", training__dtype="float32", training__steps=interval * intervals + interval // 2,
        training__seq_len=16, training__global_batch_size=3, checkpoint__interval=interval, checkpoint__copies=copies,
        metrics__step_records="jsonl"))
    cluster.wait_for_state(job, "SUCCEEDED", 1200)
    if copies:
        wait_until_safe(cluster, job)
    at = {record["step"]: record["unix_seconds"] for record in step_files(cluster, job)}
    # The last one, after the last step, has no interval to be compared with.
    published = {name_in(message): when for when, message in event_times(cluster, "checkpoint", job)[:-1]}
    safe = {name_in(message): when for when, message in event_times(cluster, "checkpoint_safe", job)}
    copied = [(when, safe[name]) for name, when in published.items() if name in safe and copies]
    steps = {step: (at[step], at[step] - at[step - 1]) for step in at if step - 1 in at and (step - 1) % interval and step > 3}
    return steps, copied, median(intervals_of(sorted(published.values()))), len(published) - len(copied) if copies else 0


def intervals_of(times):
    return [after - before for before, after in zip(times, times[1:])]


def name_in(message):
    return re.search(r"step-\d+-gen-\d+", message).group(0)


def beside(steps, copied, wanted):
    """Seconds of the steps that ended while copies were under way, or while none were."""
    return [seconds for at, seconds in steps.values() if wanted == any(begin <= at <= end for begin, end in copied)]


def compare(cluster, jobs, mbit, draw):
    """Seconds of steps: of jobs without copies, beside copies, beside those of the last half of each job, and between copies."""
    alone, with_copies, settled, between = [], [], [], []
    for number in range(jobs):
        for copies in draw.sample((0, 1), 2):
            steps, copied, interval, unsafe = train(cluster, f"copies-{copies}-{number}", copies, INTERVALS_OF_A_JOB)
            of_copies = beside(steps, copied, True)
            (between if copies else alone).extend(beside(steps, copied, False))
            with_copies += of_copies
            settled += of_copies[len(of_copies) // 2:]
            say(mbit=mbit, copies=copies, steps=len(steps),
                step_median=round(median([seconds for _, seconds in steps.values()]), 4), beside_copies=len(of_copies),
                beside_copies_median=median(of_copies) and round(median(of_copies), 4),
                interval=round(interval, 1), never_safe=unsafe)
    return alone, with_copies, settled, between


def measure(intervals, mbit, draw):
    with LinkedCluster(NODES) as cluster:
        cluster.start({node: [FAST_DEVICE] for node in NODES})
        cluster.limit(mbit)
        train(cluster, "first", 0, 2)   # its profiles are those of all
        seconds = compare(cluster, max(1, round(intervals / INTERVALS_OF_A_JOB)), mbit, draw)
        cluster.limit(2 * mbit)
        _, copied, interval, unsafe = train(cluster, "roomy", 1, max(3, intervals // 4), ROOMY_INTERVAL)
        delays = [(end - begin) / interval for begin, end in copied]
        say(mbit=2 * mbit, interval=round(interval, 2), copied=len(copied), never_safe=unsafe,
            safe_after_intervals=[round(delay, 2) for delay in delays])
        return *seconds, delays, unsafe, interval


def links_part(arguments):
    if reason := network_refusal():
        print(f"left out: links: {reason}", flush=True)
        return {"left_out": reason, "correct": True}
    draw = random.Random(arguments.seed)
    alone, with_copies, settled, between, delays, unsafe, interval = measure(arguments.count or 40, arguments.mbit, draw)
    slower, in_job = median(with_copies) / median(alone), median(with_copies) / median(between) if between else None
    print(f"links: at {arguments.mbit} Mbit/s a step takes {median(alone):.3f} s without copies ({len(alone)} steps) and "
          f"{median(with_copies):.3f} s beside them ({len(with_copies)}): {slower:.3f} of it (goal {MOST_SLOWER}), "
          f"{median(settled) / median(alone):.3f} in the last half of them; between copies {median(between) or 0:.3f} s "
          f"({len(between)}); at {2 * arguments.mbit} Mbit/s a checkpoint "
          f"is safe {median(delays):.2f} intervals of {interval:.1f} s after it was published in the median, {max(delays):.2f} "
          f"at most (goal {MOST_INTERVALS}); {unsafe} were never copied, as a newer one came first", flush=True)
    return {"mbit": arguments.mbit, "step_seconds_without": median(alone), "step_seconds_beside": median(with_copies),
            "step_seconds_between": median(between), "slower": slower, "slower_than_between": in_job,
            "slower_in_the_last_half": median(settled) / median(alone),
            "step_seconds_tenth": {"without": share_of(alone, 0.9), "beside": share_of(with_copies, 0.9)},
            "safe_after_intervals": delays, "safe_after_intervals_median": median(delays), "never_safe": unsafe,
            "interval_seconds": interval, "correct": True}
