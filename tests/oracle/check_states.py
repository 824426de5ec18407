#!/usr/bin/env python3
"""One device of the engine trains tiny models as PyTorch does: loss, norm, and every parameter and moment after every step.

Runs in the oracle's Python. `equivalence_bench --references` writes what the engine computed; random plans are compared with the
same (docs/use/training-semantics.md), so that all of them are tied to PyTorch.
usage: check_states.py [FOLDER]       FOLDER: written before; else it is written now, with the programs in $MOTLEY_BIN
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch  # noqa: E402

import reference  # noqa: E402
from harness import Results, expect  # noqa: E402
from rows import read  # noqa: E402

# By the type that is computed in: of the step's numbers; of arrays, by the norm of their unit.
LIMITS = {"float64": (1e-10, 1e-10), "float32": (1e-5, 1e-4), "bfloat16": (2e-2, 1e-1), "float16": (2e-2, 1e-1)}
ARRAYS = ("parameter", "exp_avg", "exp_avg_sq")


class Worst:
    def __init__(self):
        self.relative, self.where = 0.0, "nothing"

    def take(self, relative, where):
        if not relative <= self.relative:
            self.relative, self.where = relative, where

    def check(self, limit):
        expect(self.relative <= limit, f"{self.where} differs by {self.relative:.2e}, limit {limit:.0e}")


def states_of(model, optimizer):
    """{parameter's name: its parameter, exp_avg, exp_avg_sq}"""
    return {name: (parameter.data, *(optimizer.state[parameter][key] for key in ARRAYS[1:])) for name, parameter in model.named_parameters()}


def compare_state(path, units, state, dtype, worst, step):
    with open(path, "rb") as file:
        ours = torch.frombuffer(bytearray(file.read()), dtype=reference.DTYPES[dtype])
    known = 0
    for unit, names in enumerate(units):
        for array, what in enumerate(ARRAYS):
            theirs = torch.cat([state[name][array].flatten() for name in names]).double()
            mine = ours[:theirs.numel()].double()
            ours = ours[theirs.numel():]
            worst.take(((mine - theirs).norm() / theirs.norm()).item(), f"{what} of unit {unit} after step {step}")
        known += len(names)
    expect(ours.numel() == 0 and known == len(state), f"{path}: {ours.numel()} elements too many, {known} of {len(state)} tensors")


def job_of(folder):
    with open(os.path.join(folder, "job.json"), encoding="utf-8") as file:
        return json.load(file)


def train(folder, job):
    """Yields PyTorch's record of each step, and what its parameters and moments are then."""
    model = reference.load_model(os.path.join(folder, "model"), job["training"]["dtype"], reference.half_of(job) is not None)
    optimizer = reference.optimizer_of(model, job)
    path, rows = job["data"]["path"], None
    if os.path.isdir(path):
        rows = read(path, job["data"]["validation_fraction"])
    for record in reference.train(model, job, optimizer=optimizer, losses=rows):
        yield record, states_of(model, optimizer)


def compare(folder, trained=None):
    """With PyTorch's `trained`, else it is trained here. A state is compared where one was written."""
    job = job_of(folder)
    dtype, mixed = job["training"]["dtype"], reference.half_of(job) is not None
    numbers, arrays, clipped = Worst(), Worst(), False
    for (theirs, state), ours in zip(trained or train(folder, job), job["steps"], strict=True):
        step = theirs["step"]
        expect(ours["step"] == step and abs(ours["lr"] - theirs["lr"]) <= 1e-12 * theirs["lr"], f"step {step}: learning rate {ours['lr']}, PyTorch {theirs['lr']}")
        expect(ours.keys() == theirs.keys(), f"step {step} has {sorted(ours)}, PyTorch {sorted(theirs)}")
        for key in ("loss", "grad_norm", "validation_loss"):
            if key in theirs:
                numbers.take(abs(ours[key] - theirs[key]) / abs(theirs[key]), f"{key} of step {step}")
        clipped |= theirs["grad_norm"] > job["training"]["max_norm"]
        path = os.path.join(folder, f"state-{step}.bin")
        if os.path.isfile(path):
            compare_state(path, job["units"], state, dtype, arrays, step)
    expect(clipped and arrays.where != "nothing", "no step clips, or no state was compared")
    print(f"    {os.path.basename(folder)}: {numbers.relative:.1e} at {numbers.where}, {arrays.relative:.1e} at {arrays.where}")
    limits = LIMITS[job["training"]["mixed_precision_param"] if mixed else dtype]
    numbers.check(limits[0])
    arrays.check(limits[1])


def main():
    torch.set_num_threads(1)
    results = Results("states")
    with tempfile.TemporaryDirectory() as written:
        top = sys.argv[1] if len(sys.argv) > 1 else written
        if top == written:
            subprocess.run([os.path.join(os.environ["MOTLEY_BIN"], "equivalence_bench"), "--references", top], check=True)
        folders = sorted(name for name in os.listdir(top) if os.path.isfile(os.path.join(top, name, "job.json")))
        results.run("there are jobs", expect, len(folders) > 0, f"{top} is empty")
        for name in folders:
            results.run(name, compare, os.path.join(top, name))
    results.exit()


if __name__ == "__main__":
    main()
