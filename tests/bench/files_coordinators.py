"""The coordinator is lost again and again: taken over by a backup, or begun with an empty store and the job adopted."""
import os
import random
import re
import shutil
import signal
import subprocess
import time

from check_local_storage import DEVICE, LocalCluster
from files_common import NODES, SAME, event_times, generation_of, median, newest_published, say, seconds_to_generation_above, \
    step_files, step_of, worst_difference
from local_adopt import lose_store, uid_of_lost

LOSSES_OF_A_JOB = 8
STEPS_OF_A_LOSS, INTERVAL = 60, 3
BACKUP_SECONDS = 1
WAYS = ("taken over", "adopted")


class MovingCluster(LocalCluster):
    """Its coordinator makes backups, and goes on from one in another folder."""

    def start_coordinator(self, **extra):
        os.makedirs(self.path("backups"), mode=0o700, exist_ok=True)
        super().start_coordinator(backup={"folder": self.path("backups"), "every": BACKUP_SECONDS}, **extra)

    def take_over(self):
        nodes = list(self.workers)
        self.coordinator.kill(signal.SIGKILL)
        self.coordinator.process.wait()
        shutil.rmtree(self.path("coordinator-state"))
        done = subprocess.run([self.program("motley-coordinator"), "restore", "--take-over", self.path("backups"), "--state-dir",
                               self.path("coordinator-state")], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"restore: status {done.returncode}: {done.stderr}")
        self.start_coordinator()
        self.wait_for_nodes(nodes)


def sections(cluster, seed, losses):
    return cluster.sections(training__steps=STEPS_OF_A_LOSS * (losses + 2), training__seed=seed, checkpoint__interval=INTERVAL,
                            metrics__step_records="jsonl")


def adopt(cluster, job_id, job_file):
    lose_store(cluster)
    shutil.rmtree(cluster.path("backups"))
    os.makedirs(cluster.path("backups"), mode=0o700)
    uid = uid_of_lost(cluster, job_id)
    newest = newest_published(cluster, NODES, job_id)
    cluster.motley("submit", job_file, "--id", job_id, "--adopt", uid)
    return newest


def lose_once(cluster, job_id, job_file, number, draw):
    at = max(int(cluster.job(job_id)["step"]) + 4, STEPS_OF_A_LOSS * number + draw.randint(1, STEPS_OF_A_LOSS - 20))
    cluster.wait_for_step(job_id, at)
    time.sleep(BACKUP_SECONDS + draw.random() * 0.4)   # somewhere in a step, a save or a copy, with a backup of this store
    before, begin = cluster.job(job_id), time.time()
    way = draw.choice(WAYS)
    lost = time.monotonic()
    if way == "adopted":
        newest = adopt(cluster, job_id, job_file)
    else:
        cluster.take_over()
        newest = newest_published(cluster, NODES, job_id)
    to_step = seconds_to_generation_above(cluster, job_id, generation_of(before), lost)
    plans = [message for at, message in event_times(cluster, "plan", job_id) if at > begin]
    from_steps = [int(found.group(1)) if (found := re.search(r"from step (\d+)", message)) else 0 for message in plans]
    return say(loss=number + 1, way=way.replace(" ", "_"), step=int(before["step"]), published=newest,
               went_on_from=min(from_steps, default=None), behind=max(0, step_of(newest) - min(from_steps, default=0)),
               first_step_after=None if to_step is None else round(to_step, 1))


def one_job(seed, losses, draw):
    with MovingCluster() as cluster:
        cluster.start({node: [DEVICE] for node in NODES})
        cluster.submit_job("undisturbed", sections(cluster, seed, losses))
        cluster.wait_for_state("undisturbed", "SUCCEEDED", 300)
        alone = cluster.losses("undisturbed")
        job_file = cluster.job_file("disturbed", sections(cluster, seed, losses))
        cluster.motley("submit", job_file, "--id", "disturbed")
        rows = [lose_once(cluster, "disturbed", job_file, number, draw) for number in range(losses)]
        cluster.wait_for_state("disturbed", "SUCCEEDED", 300)
        return rows, *worst_difference(step_files(cluster, "disturbed"), alone)


def coordinators_part(arguments):
    count, draw = arguments.count or 40, random.Random(arguments.seed)
    rows, worst, unknown = [], 0.0, 0
    while len(rows) < count:
        of_job, difference, lacking = one_job(arguments.seed + len(rows), min(LOSSES_OF_A_JOB, count - len(rows)), draw)
        rows, worst, unknown = rows + of_job, max(worst, difference), unknown + lacking
    went_on = [row for row in rows if row["first_step_after"] is not None and row["behind"] == 0]
    after = [row["first_step_after"] for row in rows if row["first_step_after"] is not None]
    ways = {way: sum(row["way"] == way.replace(" ", "_") for row in rows) for way in WAYS}
    print(f"coordinators: lost {len(rows)} times ({', '.join(f'{way} {ways[way]}' for way in WAYS)}), went on from the newest "
          f"checkpoint {len(went_on)} times; losses differ by {worst:.1e} (goal {SAME:.0e}), {unknown} steps have no record; the "
          f"first step came {median(after)} s later in the median, {max(after, default=None)} s at most", flush=True)
    return {"losses": len(rows), "ways": ways, "went_on_from_newest": len(went_on), "worst_loss_difference": worst,
            "steps_without_record": unknown, "first_step_seconds_median": median(after), "rows": rows,
            "correct": len(went_on) == len(rows) and worst <= SAME}
