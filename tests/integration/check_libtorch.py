#!/usr/bin/env python3
"""Ranks of two versions of libtorch train one job to the loss of one device.

usage: check_libtorch.py VERSION   (of the second rank, which lies beside the first: motley-rank-VERSION)
"""
import json
import os
import re
import subprocess
import sys

from harness import BIN, CPU_DEVICE, Results, TestCluster, expect, job_sections
from patience import patience

STEPS = 20
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}   # relative, of every step's loss and gradient norm
STAGES = "baton"   # as published one for each rank: activations and their gradients go from one version to the other
STRATEGIES = ["even", STAGES]
MODELS = ["gpt2", "llama3"]


def rank_binary(version=""):
    return os.path.join(BIN, f"motley-rank-{version}" if version else "motley-rank")


def libtorch_of(program):
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=patience(60), check=False)
    expect(done.returncode == 0, f"{program} --version: status {done.returncode}: {done.stderr}")
    return done.stdout.split("libtorch ")[1].strip()


def says_its_version(version):
    said = libtorch_of(rank_binary(version))
    expect(said == version, f"{rank_binary(version)} says libtorch {said}")
    expect(libtorch_of(rank_binary()) != version, f"both ranks are of libtorch {version}")


def curves(cluster, name, nodes, strategies=("even",)):
    """Losses and gradient norms of every model and type, trained on all nodes that there are."""
    return {(model, dtype, strategy): train(cluster, f"{name}-{model}-{dtype}-{strategy}", nodes, model, dtype, strategy)
            for model in MODELS for dtype in TOLERANCE for strategy in strategies}


def train(cluster, job_id, nodes, model, dtype, strategy):
    changes = {"training__steps": STEPS, "training__dtype": dtype, "planner__strategy": strategy}
    if strategy == STAGES:
        changes["planner__fidelity"] = "published"
    cluster.submit_job(job_id, job_sections(cluster, model, **changes))
    cluster.wait_for_state(job_id, "SUCCEEDED")
    plan = cluster.motley("plan", job_id)["plan"]
    used = set(re.findall(r'"device": "([^/"]+)/', json.dumps(plan)))
    expect(used == set(nodes), f"{job_id} ran on {sorted(used)}: {plan}")
    expect(strategy != STAGES or len(plan["pipelines"][0]["stages"]) == len(nodes), f"{job_id} has no stage for each node: {plan}")
    curve = [(step["loss"], step["grad_norm"]) for step in cluster.steps(job_id)]
    expect(len(curve) == STEPS, f"{len(curve)} steps of {job_id} are known")
    return curve


def expect_same(mine, alone):
    for (model, dtype, strategy), curve in mine.items():
        wanted = alone[model, dtype, "even"]
        worst = max(abs(a - b) / abs(b) for pair in zip(curve, wanted) for a, b in zip(*pair))
        print(f"    {model} {dtype} {strategy}: largest relative difference {worst:.1e}")
        expect(worst <= TOLERANCE[dtype], f"{model} {dtype} {strategy}: loss or gradient norm differs by {worst:.2e}")


def trains_with_the_first(version):
    with TestCluster() as cluster:
        cluster.start({"n1": [CPU_DEVICE]})
        alone = curves(cluster, "alone", ["n1"])
        cluster.start_worker("n2", [CPU_DEVICE], rank_binary=rank_binary(version))
        cluster.wait_for_nodes(["n2"])
        expect_same(curves(cluster, "both", ["n1", "n2"], STRATEGIES), alone)
        cluster.workers.pop("n1").stop()
        expect_same(curves(cluster, "second", ["n2"]), alone)


def main():
    version, = sys.argv[1:]
    results = Results("libtorch")
    results.run(f"motley-rank-{version} says its version", says_its_version, version)
    results.run(f"ranks of libtorch {version} and of another train to the loss of one device", trains_with_the_first, version)
    results.exit()


if __name__ == "__main__":
    main()
