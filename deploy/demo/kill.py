"""An example whose job loses a node while it trains and gets it back: two replans, the same losses.

cluster.toml's [kill] says which node, after how many steps, and how the job differs from the table's. Each type of numbers has a
cluster of its own, because a node that is lost again within minutes is held back longer. On it the job trains undisturbed first.
"""
import os
import sys

from cluster import Cluster
from demo import ENDED, JOB_PATIENCE_SECONDS, Watcher, say, state_of
from example_cluster import start_cluster, start_node

STEPS = {0: "no step", 1: "1 step"}


class Training:
    """One job from submission to its end. Notes the plan of every generation that makes a step, and what the replan to it cost."""

    def __init__(self, cluster, job_path, job_id, settings, patience_seconds=JOB_PATIENCE_SECONDS, **watching):
        self.cluster, self.job_id, self.patience_seconds = cluster, job_id, patience_seconds
        cluster.submit(job_path, job_id, checkpoint__folder=cluster.path("checkpoints", job_id), **settings)
        self.watcher = Watcher(cluster, job_id, **watching)
        self.records, self.generations = [], []
        self.pause_seconds = self.repeated = 0

    def ended(self):
        job = self.watcher.poll()
        self.records = self.cluster.motley("metrics", self.job_id).get("steps", [])
        newest = int(self.records[-1]["generation"]) if self.records else 0
        if newest > max((generation["generation"] for generation in self.generations), default=0):
            self.note_generation(newest)
        return state_of(job) in ENDED

    def note_generation(self, newest):
        plan = self.cluster.motley("plan", self.job_id)["plan"]
        if int(plan["generation"]) != newest:   # the next plan is there, and no step under it yet
            return
        pause, repeated = (self.cluster.job_counter(f"motley_job_{name}_total", self.job_id) for name in ("pause_seconds", "steps_repeated"))
        self.generations.append({"generation": int(plan["generation"]), "stages": len(plan["pipelines"][0]["stages"]),
                                 "layout": layout_of(plan), "pause_seconds": pause - self.pause_seconds,
                                 "steps_repeated": int(repeated - self.repeated)})
        self.pause_seconds, self.repeated = pause, repeated

    def steps_of_newest(self, generations):
        """Steps made under the newest plan, once there are as many generations; else 0."""
        if len(self.generations) < generations:
            return 0
        return sum(int(r["generation"]) == self.generations[-1]["generation"] for r in self.records)

    def until(self, what, condition):
        """Until the condition holds or the job has ended. A job that fails is an error."""
        self.watcher.until(what, lambda _: self.ended() or condition(), self.patience_seconds)

    def replans(self):
        return int(self.cluster.job_counter("motley_job_replans_total", self.job_id))


def layout_of(plan):
    """The stages of its first pipeline on one line: devices, then layers."""
    stages = []
    for stage in plan["pipelines"][0]["stages"]:
        nodes = {}
        for unit in stage["units"]:
            for rank in unit["ranks"]:
                node, device = rank["device"].split("/")
                nodes.setdefault(node, []).append(device)
        devices = " ".join(f"{node}/{','.join(names)}" for node, names in nodes.items())
        layers = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in stage["ministages"])
        stages.append(f"{devices}: {layers}")
    return " | ".join(stages)


def train_killed(cluster, example, training):
    """The same job, whose node is killed and started again when the others have made as many steps without it."""
    kill = example["kill"]
    training.until(f"step {kill['after_steps']}", lambda: training.steps_of_newest(1) >= kill["after_steps"])
    say()
    say(f"kill -9 of the worker of node {kill['node']} and of its ranks")
    cluster.kill_node(kill["node"])
    training.until("steps without the node", lambda: training.steps_of_newest(2) >= kill["after_steps"])
    say()
    say(f"node {kill['node']} is started again")
    start_node(cluster, example, next(node for node in example["node"] if node["name"] == kill["node"]))
    training.until("the job's end", lambda: False)


def farthest(records, undisturbed):
    """The largest relative difference of a loss from the undisturbed run's at that step, of steps that were made twice both times."""
    losses = {int(record["step"]): record["loss"] for record in undisturbed}
    return max(abs(record["loss"] / losses[int(record["step"])] - 1) for record in records)


def run_dtype(cluster, example, job_path, text_path, dtype, steps):
    kill = example["kill"]
    settings = {key.replace(".", "__"): value for key, value in kill.get("set", {}).items()}
    settings |= {"planner__strategy": kill["strategy"], "training__steps": steps, "training__dtype": dtype, "data__path": text_path}
    say()
    say(f"{dtype}: {kill['strategy']} undisturbed ({steps} steps)")
    start_cluster(cluster, example)
    undisturbed = Training(cluster, job_path, f"undisturbed-{dtype}", settings)
    undisturbed.until("the undisturbed job's end", lambda: False)
    say()
    say(f"{dtype}: the same, node {kill['node']} killed after {kill['after_steps']} steps")
    training = Training(cluster, job_path, f"killed-{dtype}", settings)
    train_killed(cluster, example, training)
    return {"dtype": dtype, "strategy": kill["strategy"], "node": kill["node"], "steps": steps, "replans": training.replans(),
            "generations": training.generations, "undisturbed_replans": undisturbed.replans(),
            "loss_last": training.records[-1]["loss"], "undisturbed_loss_last": undisturbed.records[-1]["loss"],
            "largest_relative_difference": farthest(training.records, undisturbed.records),
            "losses": [[int(r["generation"]), int(r["step"]), r["loss"]] for r in training.records]}


def run(outer, example, job_path, text_path, arguments):
    """Rows, one for each type of numbers. `outer` gives the folder and the files that jobs may use; it stays without daemons."""
    example = {**example, "emulation": {**example["emulation"], **example["kill"].get("emulation", {})}}
    rows, dtypes = [], arguments.only.split(",") if arguments.only else example["kill"]["dtypes"]
    if unknown := set(dtypes) - set(example["kill"]["dtypes"]):
        raise SystemExit(f"demo: no row {', '.join(sorted(unknown))}; there are {', '.join(example['kill']['dtypes'])}")
    for dtype in dtypes:
        with Cluster(outer.bin, outer.path(dtype), file_roots=[os.path.dirname(text_path)]) as cluster:
            rows.append(run_dtype(cluster, example, job_path, text_path, dtype, arguments.steps or example["kill"]["steps"]))
    return rows


def print_rows(rows):
    for row in rows:
        names = ["at first", f"without {row['node']}", f"{row['node']} is back"]
        print(f"\n  {row['dtype']}, {row['strategy']}: {row['replans']} replans in {row['steps']} steps")
        print(f"  {'':<12} pause    repeated   devices and layers of each stage")
        for i, generation in enumerate(row["generations"]):
            name = names[i] if i < len(names) else f"generation {generation['generation']}"
            steps = generation["steps_repeated"]
            cost = f"{generation['pause_seconds']:5.1f} s   {STEPS.get(steps, f'{steps} steps'):<8}" if i > 0 else f"{'':<18}"
            print(f"  {name:<12} {cost}   {generation['layout']}")
        print(f"  loss {row['loss_last']:.12g}, undisturbed {row['undisturbed_loss_last']:.12g}; "
              f"of all steps the largest relative difference is {row['largest_relative_difference']:.1e}")
    sys.stdout.flush()
