#!/usr/bin/env python3
"""Packed rows train like documents one at a time: real ranks on a folder of rows against transformers' models in plain PyTorch.

Runs in the oracle's Python. The rows hold several documents each, some are not full, of some nothing is trained on. Every step's
loss, gradient norm and validation loss over 20 steps: float64 to 1e-10, float32 to 1e-5, half types to 2e-2 as on text.

usage: check_rows.py
"""
import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))

import torch  # noqa: E402

from check_plans import NODES, UNDIVIDED, Oracle, run_hand_plan, run_tensor_parallel, run_to_end  # noqa: E402
from harness import Results, TestCluster, expect, job_sections  # noqa: E402
from plans import HAND_PLANS  # noqa: E402
from rows import chats  # noqa: E402

STEPS, ROWS = 20, 400
MODELS = (("gpt2", "float64"), ("llama3", "float64"), ("qwen2", "float32"), ("mistral-window", "float64"), ("gemma3", "float64"))
HALVES = (("llama3", "bfloat16"), ("gpt2", "float16"))
BY_HAND = ("microbatches of one", "other operators recomputed on each device", "zero bubble")


def refuses_a_step_of_nothing(cluster, folder):
    """A step whose rows have nothing that is trained on ends the job, which says so."""
    job_id = "nothing-trained"
    cluster.submit_job(job_id, job_sections(cluster, data__path=folder, data__validation_samples=0))
    reason = cluster.wait_for_state(job_id, "FAILED").get("reason", "")
    expect("have no token that is trained on" in reason, f"the job says {reason!r}")


def check_half(results, cluster, rows, folder, model, dtype):
    oracle = Oracle(cluster, model, dtype, STEPS, rows, folder)
    name, job_id = f"{model} {dtype} on rows", f"{model}-{dtype}-rows"
    results.run(f"{name}: {BY_HAND[-1]}", run_hand_plan, oracle, f"{job_id}-hand", HAND_PLANS[BY_HAND[-1]])
    results.run(f"{name}: tensor-parallel", run_tensor_parallel, oracle, f"{job_id}-tp")


def check_model(results, cluster, rows, folder, model, dtype):
    oracle = Oracle(cluster, model, dtype, STEPS, rows, folder)
    name = f"{model} {dtype} on rows"
    for number, what in enumerate(BY_HAND):
        results.run(f"{name}: {what}", run_hand_plan, oracle, f"{model}-{dtype}-rows-{number}", HAND_PLANS[what])
    results.run(f"{name}: cephalo", functools.partial(run_to_end, planner__strategy="cephalo"), oracle, f"{model}-{dtype}-rows-cephalo")
    if model not in UNDIVIDED:
        results.run(f"{name}: tensor-parallel", run_tensor_parallel, oracle, f"{model}-{dtype}-rows-tp")


def main():
    if sys.argv[1:]:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    results = Results("rows")
    with TestCluster() as cluster:
        cluster.start(NODES)
        data = job_sections(cluster)
        rows = chats(cluster.text, data["training"]["seq_len"], ROWS, data["data"]["validation_fraction"])
        folder, untrained = (os.path.join(cluster.top, name) for name in ("rows", "untrained"))
        rows.write(folder)
        for model, dtype in MODELS:
            results.prepare(f"{model} {dtype} on rows", check_model, results, cluster, rows, folder, model, dtype)
        for model, dtype in HALVES:
            results.prepare(f"{model} {dtype} on rows", check_half, results, cluster, rows, folder, model, dtype)
        rows.rows = [[[(token, False) for token, _ in document] for document in row] for row in rows.rows]
        rows.write(untrained)
        results.run("a step of nothing", refuses_a_step_of_nothing, cluster, untrained)
    results.exit()


if __name__ == "__main__":
    main()
