#!/usr/bin/env python3
"""What can only be shown on a machine with an NVIDIA card: tests that need one, the card's ceilings, and steps beside PyTorch's.

usage: gpu_bench.py --bin FOLDER [--first-day | --speed] [--libtorch FOLDER] [--state FILE] [--json FILE] [--only SECTION ...] [--kernels] [--python PYTHON]
       gpu_bench.py --bin FOLDER --pack FOLDER

--first-day: what a machine with cards should be asked first (gpu_first_day.py), each part with what it needs, before the steps.
--speed: how fast a card is (gpu_speed.py), alone.

Sections take less than eight minutes each. Each one's result goes to --state when it ends: run again, the script goes on with what
is left. On a machine with no network and no build, --pack's folder and a PyTorch of the version that it was built with are all that
is needed: `python3 FOLDER/gpu_bench.py --bin FOLDER --libtorch SITE_PACKAGES`. docs/inside/cuda.md says what stays unmeasured.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time

from gpu_first_day import BY_HAND, FirstDay
from gpu_speed import Speed

HERE = os.path.dirname(os.path.abspath(__file__))
SECTION_SECONDS, SPEED_SECONDS = 480, 150
MOST_LEFT_MIB = 8  # the driver rounds
PROGRAMS = ("engine_tests", "cards_bench")
GPT2 = {"family": "gpt2", "vocab_size": 50257}
LLAMA = {"family": "llama3", "vocab_size": 128256}
# name: (flavor, shape for the baseline, sequence length, samples a step, microbatches, layers or 0)
STEPS = {
    "gpt2-124M-1024": ("gpt2:124M", {**GPT2, "hidden_size": 768, "num_layers": 12, "num_heads": 12, "num_kv_heads": 12,
                                     "intermediate_size": 3072}, 1024, 32, 2, 0),
    "gpt2-1.5B-1024": ("gpt2:1.5B", {**GPT2, "hidden_size": 1600, "num_layers": 48, "num_heads": 25, "num_kv_heads": 25,
                                     "intermediate_size": 6400}, 1024, 16, 4, 0),
    # Cut to fit 80 GB with float32 masters, moments and gradients.
    "llama3-8B-8192-12-layers": ("llama3:8B", {**LLAMA, "hidden_size": 4096, "num_layers": 12, "num_heads": 32, "num_kv_heads": 8,
                                               "intermediate_size": 14336}, 8192, 2, 2, 12),
    "llama3-8B-1024-12-layers": ("llama3:8B", {**LLAMA, "hidden_size": 4096, "num_layers": 12, "num_heads": 32, "num_kv_heads": 8,
                                               "intermediate_size": 14336}, 1024, 16, 2, 12),
}
# The same script on a machine without a card: whether it works.
TRIAL = {"gpt2-debug": ("gpt2:debug", {**GPT2, "vocab_size": 256, "hidden_size": 64, "num_layers": 2, "num_heads": 4,
                                       "num_kv_heads": 4, "intermediate_size": 256}, 64, 4, 2, 0)}
LEAST_OF_A_COPY = 0.75
UNMEASURED = ["two or more NCCL ranks, each on a card of its own", "links between cards: P2P, NVLink, through the host",
              "cards of several kinds in one job", "InfiniBand", "cards before sm_75 with libtorch 2.7.1"]


def slow_kernels(rates):
    """Of rates by type, those of our own that take less than such a part of what a copy takes."""
    return [f"{name}, {dtype}" for dtype, rows in rates.items() for name, rate in rows.items()
            if not name.startswith("copy") and not name.endswith(", by PyTorch's operators")
            and rate < LEAST_OF_A_COPY * next(rows[row] for row in rows if row.startswith("copy"))]


class Bench:
    def __init__(self, args):
        self.args = args
        self.state = {}
        if args.state and os.path.exists(args.state):
            with open(args.state, encoding="utf-8") as file:
                self.state = json.load(file)

    def environment(self):
        paths = [self.args.bin]
        if self.args.libtorch:
            paths += [os.path.join(self.args.libtorch, "torch", "lib")]
            nvidia = os.path.join(self.args.libtorch, "nvidia")
            paths += [os.path.join(nvidia, part, "lib") for part in sorted(os.listdir(nvidia))] if os.path.isdir(nvidia) else []
        return {**os.environ, "LD_LIBRARY_PATH": ":".join(paths + [os.environ.get("LD_LIBRARY_PATH", "")])}

    def run(self, command):
        return subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=False,
                              timeout=SPEED_SECONDS if self.args.speed else SECTION_SECONDS)

    def checked(self, command):
        done = self.run(command)
        if done.returncode != 0:
            name = os.path.basename(command[0])
            raise RuntimeError(f"{name} ended with {done.returncode}: {(done.stderr or done.stdout)[-2000:]}")
        return done.stdout

    def program(self, name, *arguments):
        return self.checked([os.path.join(self.args.bin, name), *arguments])

    def rows(self, *arguments):
        path = os.path.join(self.args.work, "rows.json")
        self.program("cards_bench", "--device", self.args.device, "--json", path, *arguments)
        with open(path, encoding="utf-8") as file:
            return {row["name"]: row["value"] for row in json.load(file)["rows"]}

    # ---- sections ----

    def tests(self):
        out = self.program("engine_tests", "--gtest_filter=*Card*Test.*-FakeCard*", "--gtest_brief=1")
        return {"tests": out.strip().splitlines()[-1]}

    def used_mib(self):
        """Of the first card, by all its processes; None where there is no card."""
        if self.args.device != "cuda":
            return None
        return int(self.checked(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]).split()[0])

    def starts(self):
        count, test = (20, "CardPlansTest.ACardBesideACpu*:CardTransportTest.Nccl*") if self.args.device == "cuda" else (2, "LossScale*")
        before = self.used_mib()
        for _ in range(count):
            self.program("engine_tests", f"--gtest_filter={test}", "--gtest_brief=1")
        if before is None:
            return {"starts": count}
        left = self.used_mib() - before
        if left > MOST_LEFT_MIB:
            raise RuntimeError(f"{count} processes that used the card left {left} MiB on it")
        return {"starts": count, "left_mib": left}

    def ceilings(self):
        size = {"cuda": "8192", "cpu": "256"}[self.args.device]
        return {dtype: self.rows("--only", "ceilings", "--dtype", dtype, "--size", size)
                for dtype in (("bfloat16", "float32") if self.args.device == "cuda" else ("float32",))}

    def kernels(self):
        size = {"cuda": "8192", "cpu": "64"}[self.args.device]
        found = {dtype: self.rows("--only", "kernels", "--dtype", dtype, "--size", size)
                 for dtype in (("bfloat16", "float16", "float32") if self.args.device == "cuda" else ("float32",))}
        return {**found, f"below {LEAST_OF_A_COPY} of a copy": slow_kernels(found)}

    def baseline(self, name, compiled):
        _, shape, length, samples, microbatches, _ = self.args.steps[name]
        path = os.path.join(self.args.work, "shape.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(shape, file)
        done = self.run([self.args.python, os.path.join(HERE, "gpu_baseline.py"), "--model", path, "--seq-len", str(length), "--samples",
                         str(samples), "--microbatches", str(microbatches), "--steps", "9", "--dtype", self.dtype(), "--device",
                         self.args.device] + (["--compile"] if compiled else []))
        if done.returncode != 0:
            return {"failed": done.stderr.strip().splitlines()[-1:]}
        found = json.loads(done.stdout.splitlines()[-1])
        return {**found, "tokens_per_second": samples * length / found["seconds"]}

    def dtype(self):
        return "bfloat16" if self.args.device == "cuda" else "float32"

    def motley_without_kernels(self, name, *options):
        os.environ["MOTLEY_KERNELS"] = "off"
        try:
            return self.motley(name, *options)
        finally:
            del os.environ["MOTLEY_KERNELS"]

    def motley(self, name, *options):
        flavor, _, length, samples, microbatches, layers = self.args.steps[name]
        return self.rows("--only", "steps", "--model", flavor, "--seq-len", str(length), "--samples", str(samples), "--microbatches",
                         str(microbatches), "--layers", str(layers), "--steps", "9", "--dtype", self.dtype(), *options)

    def sections(self):
        if self.args.speed:
            yield from Speed(self).parts()
            return
        if self.args.first_day:
            day = FirstDay(self)
            for part in day.parts():
                lacks = day.missing(part)
                if lacks:
                    print(f"{part.name}: not run, needs {' and '.join(lacks)}", flush=True)
                else:
                    yield part.name, part.run
        else:
            yield "tests", self.tests
            yield "starts", self.starts
            yield "ceilings", self.ceilings
            yield "kernels", self.kernels
        for name in self.args.steps:
            yield f"{name} motley", lambda name=name: self.motley(name)
            if self.args.device == "cuda":
                yield f"{name} motley without kernels", lambda name=name: self.motley_without_kernels(name)
            yield f"{name} eager", lambda name=name: self.baseline(name, False)
            if self.args.device == "cuda":
                yield f"{name} compiled", lambda name=name: self.baseline(name, True)

    def all(self):
        for name, section in self.sections():
            if name in self.state or (self.args.only and name not in self.args.only):
                continue
            begin = time.monotonic()
            try:
                result = section()
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                result = {"failed": str(error)}
            self.state[name] = {"seconds_taken": round(time.monotonic() - begin, 1), **result}
            print(f"{name}: {json.dumps(self.state[name])}", flush=True)
            if self.args.state:
                with open(self.args.state, "w", encoding="utf-8") as file:
                    json.dump(self.state, file, indent=1)
        return [name for name, result in self.state.items() if "failed" in result]


def pack(args):
    """The programs, stripped, and the shared libraries that are neither libtorch's nor glibc's."""
    os.makedirs(args.pack, exist_ok=True)
    libraries = set()
    for program in PROGRAMS:
        path = os.path.join(args.bin, program)
        for line in subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout.splitlines():
            parts = line.split()
            if "=>" in parts and len(parts) > 2 and "/torch" not in parts[2] and "/nvidia/" not in parts[2]:
                libraries.add(parts[2])
        subprocess.run(["strip", "-o", os.path.join(args.pack, program), path], check=True)
    of_the_system = ("libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "ld-linux")
    for library in sorted(libraries):
        if not os.path.basename(library).startswith(of_the_system):
            shutil.copy(library, args.pack)
    if os.path.exists(os.path.join(args.bin, "motley-kernels")):
        shutil.copy(os.path.join(args.bin, "motley-kernels"), args.pack)
    for script in ("gpu_bench.py", "gpu_first_day.py", "gpu_speed.py", "gpu_job.py", "gpu_baseline.py"):
        shutil.copy(os.path.join(HERE, script), args.pack)
    size = sum(os.path.getsize(os.path.join(args.pack, name)) for name in os.listdir(args.pack))
    print(f"packed {size / 1e6:.0f} MB into {args.pack}: take it to the machine with the card, then run\n"
          f"    python3 gpu_bench.py --bin . --libtorch SITE_PACKAGES --state state.json")


def has_card():
    return os.path.isdir("/proc/driver/nvidia/gpus") and bool(os.listdir("/proc/driver/nvidia/gpus"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--libtorch", help="folder that holds torch/ and nvidia/ (default: where the programs find them)")
    parser.add_argument("--state", help="results, kept as they come")
    parser.add_argument("--json")
    parser.add_argument("--only", action="append")
    parser.add_argument("--python", default=sys.executable, help="with torch, for the rows of PyTorch")
    parser.add_argument("--pack")
    parser.add_argument("--kernels", dest="only", action="append_const", const="kernels", help="each kernel of our own beside a copy, alone")
    parser.add_argument("--first-day", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--trial", action="store_true", help="on the CPU, a tiny model: whether this script works")
    parser.add_argument("--work", default=".")
    parser.add_argument("--cache", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.bin = os.path.abspath(args.bin)
    args.device, args.steps = ("cpu", TRIAL) if args.trial else ("cuda", STEPS)
    if args.pack:
        return pack(args)
    if not args.trial and not has_card():
        print("no GPU: nothing measured. On a machine with a card: ./run bench gpu, or what --pack makes", file=sys.stderr)
        return 69
    bench = Bench(args)
    failed = bench.all()
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"sections": bench.state, "unmeasured": UNMEASURED}, file, indent=1)
    if args.first_day:
        print("by hand:\n" + "\n".join(f"- {what}. Look for: {sign}." for what, sign in BY_HAND))
    print("unmeasured: " + "; ".join(UNMEASURED))
    if failed:
        print("failed: " + ", ".join(failed), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
