"""A job from its submission to its end on one card: coordinator, worker and rank as a user starts them, and what the card's
profile predicts beside each step. Other parts open the card themselves; only here does a rank of a worker."""
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


def run(programs, folder, device, environment):
    sys.path.insert(0, DEMO)
    from cluster import Cluster, to_toml
    os.environ.update(environment)  # the daemons', and through the worker the rank's
    os.makedirs(folder, exist_ok=True)
    with Cluster(programs, folder) as cluster:
        cluster.worker_cores = 0
        cluster.start_coordinator()
        cluster.start_worker("a", [{"kind": device}])
        cluster.wait_for_nodes(["a"])
        cluster.submit(job_file(folder, SETTINGS[device], to_toml), "one-card")
        cluster.wait_for(lambda: cluster.job("one-card")["state"].upper() in ENDED, JOB_SECONDS, "the job's end", poll_seconds=1)
        job = cluster.job("one-card")
        if job["state"].upper() != "SUCCEEDED":
            raise RuntimeError(f"the job {job['state']}: {job.get('reason', '')}")
        steps = cluster.steps("one-card")
    steady = steps[len(steps) // 3:]
    measured = statistics.median(step["step_seconds"] for step in steady)
    return {"steps": len(steps), "step_seconds": measured, "predicted_step_seconds": steady[-1]["predicted_step_seconds"],
            "tokens_per_second": statistics.median(step["tokens_per_second"] for step in steady),
            "peak_memory_bytes": steady[-1]["peak_memory_bytes"], "first_loss": steps[0]["loss"], "last_loss": steps[-1]["loss"]}
