#!/usr/bin/env python3
"""The examples run: each one's own strategy and another for two steps, on the example's cluster, to the same loss.

usage: check_examples.py   (MOTLEY_BIN: folder of the binaries)
"""
import json
import os
import subprocess
import sys
import tempfile

from harness import ROOT

KEYS = {"strategy", "fits", "tokens_per_second", "step_seconds", "predicted_step_seconds", "peak_bytes", "predicted_peak_bytes",
        "devices"}
EXAMPLES = {"zorse": "zorse,megatron", "poplar": "poplar,even"}
# Of a device's measured peak beside the predicted one. The first step puts what a rank owns into its buffers, unit by unit, and
# a stage of one layer with small microbatches takes more for that than for all that follows.
FULLEST_TOLERANCE, TOLERANCE = 0.05, 0.1
CACHE = os.environ.get("MOTLEY_CACHE", os.path.expanduser("~/.cache/motley"))


def check(name, strategies):
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "rows.json")
        done = subprocess.run([sys.executable, os.path.join(ROOT, "deploy", "demo", "example.py"),
                               "--example", os.path.join(ROOT, "deploy", "examples", name), "--bin", os.environ["MOTLEY_BIN"],
                               "--cache", CACHE, "--work", os.path.join(folder, "work"), "--json", result, "--steps", "2",
                               "--only", strategies], capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            return f"status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        with open(result, encoding="utf-8") as file:
            rows = json.load(file)["strategies"]
    if [row["strategy"] for row in rows] != strategies.split(","):
        return f"rows of {[row['strategy'] for row in rows]}"
    for row in rows:
        if missing := KEYS - row.keys():
            return f"{row['strategy']}: no {', '.join(sorted(missing))}: {row}"
        if problem := mispredicted(row["devices"]):
            return f"{row['strategy']}: {problem}"
    losses = [row["loss_last"] for row in rows]
    if max(losses) - min(losses) > 1e-4 * max(losses):
        return f"losses differ: {losses}"
    return ""


def mispredicted(devices):
    """The first device that took another amount of memory than was predicted of it; of all but the fullest, only more counts."""
    for device in devices:
        error = device["peak_bytes"] / device["predicted_peak_bytes"] - 1
        if abs(error) > FULLEST_TOLERANCE if device is devices[0] else error > TOLERANCE or not device["peak_bytes"]:
            return f"its memory is {error:+.1%} off the prediction: {device}"
    return ""


def main():
    failed = 0
    for name, strategies in EXAMPLES.items():
        problem = check(name, strategies)
        print(f"FAIL example {name}: {problem}" if problem else f"ok example {name}: {strategies}", flush=True)
        failed += bool(problem)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
