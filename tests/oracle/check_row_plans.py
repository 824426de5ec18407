#!/usr/bin/env python3
"""Random plans on packed rows train as PyTorch does, one document at a time: loss, norm, and parameters and moments on the way.

Runs in the oracle's Python. `equivalence_bench --planned` draws the plans and trains by them: one to eight ranks, up to three
pipelines, tensor parallelism, recomputation by operator, backwards in two halves; of families with norms of heads, layers without
positions, norms behind what they normalise, and fused products. Limits are those of check_states.py.

usage: check_row_plans.py [--long] [--seed N]    # --long: 24 plans of 20 steps, else 8 of 6; another seed, other plans
"""
import argparse
import os
import subprocess
import tempfile

import torch

from check_states import compare, job_of, train
from harness import Results

SHORT, LONG = (8, 6), (24, 20)  # plans, steps
SEED = 2


class References:
    """What PyTorch computes for a job: several plans have the same."""

    def __init__(self):
        self.trained = {}

    def of(self, folder):
        job = job_of(folder)
        if job["name"] not in self.trained:
            self.trained[job["name"]] = [(record, {name: tuple(array.clone() for array in arrays) for name, arrays in state.items()})
                                         for record, state in train(folder, job)]
        return self.trained[job["name"]]


def check(references, folder):
    print("    " + job_of(folder)["plan"].replace("\n", "\n    "), flush=True)
    compare(folder, references.of(folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("MOTLEY_SEED", SEED)))
    arguments = parser.parse_args()
    plans, steps = LONG if arguments.long else SHORT
    torch.set_num_threads(1)
    results, references = Results("row plans"), References()
    print(f"{plans} plans of seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory() as top:
        subprocess.run([os.path.join(os.environ["MOTLEY_BIN"], "equivalence_bench"), "--planned", top, "--plans", str(plans),
                        "--steps", str(steps), "--seed", str(arguments.seed)], check=True)
        for n in range(plans):
            folder = os.path.join(top, f"plan-{n:02d}")
            results.run(f"plan {n} of seed {arguments.seed}: {job_of(folder)['name']}", check, references, folder)
    results.exit()


if __name__ == "__main__":
    main()
