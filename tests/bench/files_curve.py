"""The loss curve of a job, its checkpoints on its nodes' disks, through one fault after another: that of the job undisturbed."""
import random
import time

from check_local_storage import LocalCluster, lose_disk
from cluster import processes
from faults_common import PACED   # nodes that came back are held for a while: steps must not all be made meanwhile
from files_common import NODES, SAME, generation_of, kill, median, place_of, say, seconds_to_generation_above, step_files, \
    worst_difference
from harness import state_of

FULL_FAULTS, STEPS_OF_A_FAULT, INTERVAL = 30, 14, 4
KINDS = ("rank", "worker", "disk", "coordinator")


class Disturbed:
    def __init__(self, cluster, job, steps, draw):
        self.cluster, self.job, self.steps, self.draw = cluster, job, steps, draw
        self.nodes, self.records, self.rows, self.spares = list(NODES), [], [], len(NODES)

    def ranks(self):
        """(node, pid) of each."""
        nodes = {self.cluster.workers[node].pid: node for node in self.nodes}
        return [(nodes[parent], pid) for pid, parent, program in processes()
                if parent in nodes and program.startswith("motley-rank")]

    def keep_records(self):
        """What is said of steps so far: the coordinator forgets it with its process, and a disk takes its files with it."""
        self.records += step_files(self.cluster, self.job)
        self.records += [record for record in self.cluster.steps(self.job)]

    def a_disk_may_go(self):
        """Not more than one that has the newest safe checkpoint: what this generation saved lies on two nodes at least."""
        job = self.cluster.job(self.job)
        return len(self.ranks()) > 1 and job["safe_checkpoint"] and place_of(job["safe_checkpoint"])[0] == generation_of(job)

    # ---- the faults ----
    def rank(self):
        node, pid = self.draw.choice(self.ranks())
        kill([pid])
        return node

    def worker(self):
        node = self.draw.choice([node for node, _ in self.ranks()])
        self.cluster.kill_node(node)
        self.cluster.start_worker(node, [PACED])
        return node

    def disk(self):
        node = self.draw.choice([node for node, _ in self.ranks()])
        lose_disk(self.cluster, node)
        self.cluster.workers.pop(node)
        self.spares += 1
        self.nodes[self.nodes.index(node)] = f"n{self.spares}"
        self.cluster.start_worker(f"n{self.spares}", [PACED])
        return f"{node}, n{self.spares} in its place"

    def coordinator(self):
        self.cluster.coordinator.kill()
        self.cluster.coordinator.process.wait()
        self.cluster.start_coordinator()
        return "coordinator"

    def fault(self, number, kind):
        self.cluster.wait_for_step(self.job, number * STEPS_OF_A_FAULT + self.draw.randint(2, STEPS_OF_A_FAULT - 2), 300)
        time.sleep(self.draw.random() * 0.2)
        self.cluster.wait_for(lambda: self.ranks() or state_of(self.cluster.job(self.job)) == "SUCCEEDED", 120, "a rank")
        if kind == "disk" and not self.a_disk_may_go():
            kind = self.draw.choice(["rank", "worker"])
        self.keep_records()
        before, begin = self.cluster.job(self.job), time.monotonic()
        if state_of(before) == "SUCCEEDED":
            return False
        what = getattr(self, kind)()
        paused = seconds_to_generation_above(self.cluster, self.job, generation_of(before), begin)
        self.rows.append(say(fault=number + 1, kind=kind, of=what, step=int(before["step"]),
                             next_step_after=paused and round(paused, 1), ranks=len(self.ranks())))
        return True


def measure(faults, draw):
    steps = STEPS_OF_A_FAULT * faults
    with LocalCluster() as cluster:
        cluster.start({node: [PACED] for node in NODES})
        sections = cluster.sections(training__steps=steps, checkpoint__interval=INTERVAL, metrics__step_records="jsonl")
        cluster.submit_job("undisturbed", sections)
        cluster.wait_for_state("undisturbed", "SUCCEEDED", 600)
        alone = cluster.losses("undisturbed")
        cluster.submit_job("disturbed", sections)
        disturbed = Disturbed(cluster, "disturbed", steps, draw)
        # As many of each kind, in an order of chance.
        kinds = [KINDS[number % len(KINDS)] for number in range(faults)]
        draw.shuffle(kinds)
        for number, kind in enumerate(kinds):
            if not disturbed.fault(number, kind):
                break
        cluster.wait_for_state("disturbed", "SUCCEEDED", 600)
        disturbed.keep_records()
        return disturbed.rows, steps, *worst_difference(disturbed.records, alone)


def curve_part(arguments):
    rows, steps, worst, unknown = measure(arguments.count or FULL_FAULTS, random.Random(arguments.seed))
    kinds = {kind: sum(row["kind"] == kind for row in rows) for kind in KINDS}
    pauses = [row["next_step_after"] for row in rows if row["next_step_after"]]
    said = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    print(f"curve: {steps} steps in float64 with {len(rows)} faults ({said}): losses differ from those of the job undisturbed by "
          f"{worst:.1e} at most (goal {SAME:.0e}), {unknown} steps have no record; the next step came after {median(pauses)} s "
          f"in the median, {max(pauses, default=None)} s at most", flush=True)
    return {"steps": steps, "faults": len(rows), "kinds": kinds, "worst_loss_difference": worst, "steps_without_record": unknown,
            "pause_seconds_median": median(pauses), "rows": rows, "correct": worst <= SAME}
