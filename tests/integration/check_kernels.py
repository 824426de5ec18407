#!/usr/bin/env python3
"""Kernels of cards compile for every target by NVIDIA's compiler, without a card: no kernel spills registers or has a stack, and the
file is as small as it is said to be. A target that NVRTC does not know is left out, and the others are made.

usage: check_kernels.py COMPILE_KERNELS LIBNVRTC
"""
import lzma
import os
import re
import subprocess
import sys
import tempfile

from harness import ROOT, Results, expect

TARGETS = ["sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120 (PTX)"]
MOST_BYTES, MOST_PACKED_BYTES = 6_000_000, 1_000_000


def run(program, nvrtc, folder, *arguments):
    out = os.path.join(folder, "motley-kernels")
    done = subprocess.run([program, "--nvrtc", nvrtc, "--sources", ROOT, "--out", out, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr, out


def every_target(program, nvrtc):
    with tempfile.TemporaryDirectory() as folder:
        status, said, out = run(program, nvrtc, folder, "--strict")
        expect(status == 0, said)
        expect(re.findall(r"^(.*): \d+ bytes$", said, re.MULTILINE) == TARGETS, said)
        with open(out, "rb") as file:
            written = file.read()
        packed = len(lzma.compress(written))
        expect(len(written) <= MOST_BYTES and packed <= MOST_PACKED_BYTES, f"{len(written)} bytes, {packed} compressed")
        digest = run(program, nvrtc, folder, "--strict")[1].split("digest ")[-1]
        expect(said.split("digest ")[-1] == digest, "compiled again it has another digest")


def some_targets(program, nvrtc):
    with tempfile.TemporaryDirectory() as folder:
        status, said, _ = run(program, nvrtc, folder, "--targets", "90,50,13")
        expect(status == 0 and "sm_90: " in said and "left out: sm_13: NVRTC" in said, said)
        status, said, out = run(program, nvrtc, folder + "/nowhere", "--targets", "90")
        expect(status == 1 and "cannot write" in said and not os.path.exists(out), said)


def main():
    results = Results("kernels")
    program, nvrtc = sys.argv[1:]
    results.run("every target, no spills, a small file", every_target, program, nvrtc)
    results.run("a target that NVRTC does not know is named", some_targets, program, nvrtc)
    results.exit()


if __name__ == "__main__":
    main()
