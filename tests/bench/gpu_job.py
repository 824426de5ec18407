"""Jobs from their submission to their end on one card: coordinator, worker and rank as a user starts them, and what the card's
profile predicts beside each step. Other parts open the card themselves; only here does a rank of a worker."""
import json
import os
import statistics
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DEMO = os.path.join(ROOT, "deploy", "demo")
PROGRAMS = ("motley", "motley-coordinator", "motley-worker", "motley-rank")
ENDED = ("SUCCEEDED", "FAILED", "STOPPED")
JOB_SECONDS = 240
LEAST_TEXT_BYTES = 2 << 20
SETTINGS = {
    "cuda": {"flavor": "124M", "seq_len": 1024, "global_batch_size": 32, "steps": 40, "mixed_precision_param": "bfloat16"},
    "cpu": {"flavor": "debug", "seq_len": 64, "global_batch_size": 4, "steps": 6, "mixed_precision_param": ""},
}

STATES = ["parameters", "gradients", "optimizer"]
KINDS = (("activations", ["activations"]), ("everything", ["activations"] + STATES))
GIB = 1 << 30
# The small job, the large one, the cap of the large one's device, what the host offers (0: what the worker takes by itself).
OFFLOAD = {
    "cuda": ({**SETTINGS["cuda"], "steps": 12}, {**SETTINGS["cuda"], "flavor": "1.5B", "global_batch_size": 16, "steps": 6}, 12 * GIB, 0),
    "cpu": (SETTINGS["cpu"], {**SETTINGS["cpu"], "steps": 4}, GIB, GIB),
}
LAYERS = {"124M": 12, "1.5B": 48, "debug": 2}
MICROBATCHES = 4


def programs_are_there(folder):
    return os.path.isdir(DEMO) and all(os.path.exists(os.path.join(folder, name)) for name in PROGRAMS)


def job_file(folder, settings, to_toml):
    """The job on text of this checkout, as often as its batch for validation asks."""
    text = os.path.join(folder, "text.txt")
    pages = ""
    for name in sorted(os.listdir(os.path.join(ROOT, "docs", "inside"))):
        if name.endswith(".md"):
            with open(os.path.join(ROOT, "docs", "inside", name), encoding="utf-8") as file:
                pages += file.read()
    with open(text, "w", encoding="utf-8") as out:
        out.write(pages * (LEAST_TEXT_BYTES // len(pages) + 1))
    training = {key: value for key, value in settings.items() if key != "flavor"}
    path = os.path.join(folder, "job.toml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(to_toml({"name": "one-card", "model": {"name": "gpt2", "flavor": settings["flavor"]},
                           "training": {**training, "seed": 1}, "optimizer": {"name": "AdamW", "lr": 3e-4}, "data": {"path": text},
                           "checkpoint": {"folder": os.path.join(folder, "checkpoints"), "interval": 0},
                           "planner": {"strategy": "auto"}}))
    return path


def trained(cluster, job, name, *options):
    """Submits the job and waits for its end. Its steps."""
    cluster.motley("submit", job, "--id", name, *options)
    cluster.wait_for(lambda: cluster.job(name)["state"].upper() in ENDED, JOB_SECONDS, "the job's end", poll_seconds=1)
    ended = cluster.job(name)
    if ended["state"].upper() != "SUCCEEDED":
        raise RuntimeError(f"the job {ended['state']}: {ended.get('reason', '')}")
    return cluster.steps(name)


def summary(steps):
    steady = steps[len(steps) // 3:]
    return {"steps": len(steps), "step_seconds": statistics.median(step["step_seconds"] for step in steady),
            "predicted_step_seconds": steady[-1]["predicted_step_seconds"],
            "tokens_per_second": statistics.median(step["tokens_per_second"] for step in steady),
            "peak_memory_bytes": steady[-1]["peak_memory_bytes"], "first_loss": steps[0]["loss"], "last_loss": steps[-1]["loss"]}


class OneCard:
    """A cluster of one node with one device."""
    def __init__(self, programs, folder, device, environment):
        sys.path.insert(0, DEMO)
        import cluster
        os.environ.update(environment)  # the daemons', and through the worker the rank's
        os.makedirs(folder, exist_ok=True)
        self.folder, self.device, self.to_toml, self.failed = folder, device, cluster.to_toml, cluster.ClusterError
        self.cluster = cluster.Cluster(programs, folder)

    def __enter__(self):
        self.cluster.__enter__()
        self.cluster.worker_cores = 0
        self.cluster.start_coordinator()
        return self

    def __exit__(self, *unused):
        self.cluster.__exit__(*unused)

    def start_worker(self, memory_bytes=0, host_memory_bytes=0):
        if "a" in self.cluster.workers:
            self.cluster.workers["a"].stop()
            self.cluster.wait_for(lambda: not any(node["state"] == "ready" for node in self.cluster.nodes()), JOB_SECONDS, "the node to go")
        limit = {"memory_bytes": memory_bytes} if memory_bytes else {}
        offers = {"host_memory_bytes": host_memory_bytes} if host_memory_bytes else {}
        self.cluster.start_worker("a", [{"kind": self.device, **limit}], **offers)
        self.cluster.wait_for_nodes(["a"])

    def train(self, name, settings, *options):
        try:
            return trained(self.cluster, job_file(self.folder, settings, self.to_toml), name, *options)
        except self.failed as error:
            raise RuntimeError(str(error)) from error

    def train_layer_by_layer(self, name, settings, kinds):
        """By a plan in which everything is computed again and these kinds wait on the host."""
        device = self.cluster.nodes()[0]["devices"][0]["id"]
        unit = {"ranks": [{"device": device, "shard_ratio": 1, "recompute": "full", "offload": kinds}],
                "microbatches": [settings["global_batch_size"] // MICROBATCHES] * MICROBATCHES}
        stage = {"ministages": [[layer, layer] for layer in range(LAYERS[settings["flavor"]])], "units": [unit]}
        path = os.path.join(self.folder, "plan.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"schedule": "layered", "pipelines": [{"stages": [stage]}]}, out)
        return self.train(name, settings, "--plan", path)

    def uses(self, name):
        """Of the job's only rank, by tier and purpose."""
        return {(use["tier"], use["purpose"]): use for use in self.cluster.motley("status", name, "--memory")["memory"][0]["uses"]}


def run(programs, folder, device, environment):
    with OneCard(programs, folder, device, environment) as card:
        card.start_worker()
        return summary(card.train("one-card", SETTINGS[device]))


def beside(card, name, steps, without):
    """What an offloading job shows beside the same one without: losses, memory beside the plan, steps beside predicted."""
    uses = card.uses(name)
    tensors, host = uses["device", "tensors"], uses["host", "waiting"]
    losses, expected = [step["loss"] for step in steps], [step["loss"] for step in without]
    found = summary(steps)
    return {**found, "losses are the same": losses == expected,
            "largest difference of a loss": max(abs(one - other) for one, other in zip(losses, expected)),
            "step over predicted": found["step_seconds"] / found["predicted_step_seconds"],
            "step over without": found["step_seconds"] / summary(without)["step_seconds"],
            "memory over planned": tensors["measured_bytes"] / tensors["planned_bytes"],
            "host bytes, measured": host["measured_bytes"], "host bytes, planned": host["planned_bytes"]}


def offload(programs, folder, device, environment):
    """One model with activations and with everything on the host, and a larger one with all its states there under a cap."""
    small, large, cap_bytes, host_bytes = OFFLOAD[device]
    with OneCard(programs, folder, device, environment) as card:
        card.start_worker(host_memory_bytes=host_bytes)
        without, again = (card.train_layer_by_layer(name, small, []) for name in ("without", "again"))
        found = {"without": summary(without), "two runs without have the same losses":
                 [step["loss"] for step in without] == [step["loss"] for step in again]}
        for name, kinds in KINDS:
            found[name] = beside(card, name, card.train_layer_by_layer(name, small, kinds), without)
        try:
            without = card.train_layer_by_layer("large-without", large, [])
        except RuntimeError as error:  # a small card has no room for it
            without, found["large, without"] = [], {"not run": str(error)}
        card.start_worker(cap_bytes, host_bytes)
        steps = card.train_layer_by_layer("large", large, STATES)
        found["large, all states on the host, capped"] = {**beside(card, "large", steps, without or steps), "cap_bytes": cap_bytes}
    return found
