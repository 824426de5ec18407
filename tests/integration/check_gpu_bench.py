#!/usr/bin/env python3
"""The bench of cards on a machine without one: that its script and its programs work, on the CPU and packed.

usage: check_gpu_bench.py PYTHON_WITH_TORCH LIBTORCH       MOTLEY_BIN: where the programs are
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOST_MB = 60
FAILED = []


def check(name, ok, why=""):
    print(f"ok gpu bench: {name}" if ok else f"FAIL gpu bench: {name}: {why}")
    if not ok:
        FAILED.append(name)


def run(folder, *arguments):
    return subprocess.run([sys.executable, os.path.join(folder, "gpu_bench.py"), *arguments], capture_output=True, text=True, check=False)


def check_verdict():
    sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
    import gpu_bench
    slow = gpu_bench.slow_kernels({"bfloat16": {"copy, read and written": 100, "one": 80, "two": 74, "one, by PyTorch's operators": 40},
                                   "float32": {"copy, read and written": 90, "one": 67, "two": 68}})
    check("names the kernels that a copy leaves behind", slow == ["two, bfloat16", "one, float32"], str(slow))


def check_speed(work, pack, trial):
    """Its parts on a CPU, and what it makes of a recorded step."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
    import gpu_speed
    found = gpu_speed.by_class({"step, median": 1, "kernel 2 x nvjet_sm90_tst": 3, "kernel 1 x void motley::kernels::AdamW<float>": 2,
                                "kernel 24.1 x cudnn_sdpa_flash": 5, "kernel 1e+02 x other": 1.5})
    check("sorts recorded kernels", found == {"ms and launches a step": {"products": [3, 2], "kernels of our own": [2, 1],
                                              "attention": [5, 24.1], "others": [1.5, 100]}, "others": [[1.5, "other"]]}, str(found))
    result = os.path.join(work, "speed.json")
    done = run(pack, *[argument for argument in trial if not argument.endswith(("state.json", "result.json"))
                       and argument not in ("--state", "--json")], "--speed", "--json", result)
    check("measures how fast a card is", done.returncode == 0, (done.stdout + done.stderr)[-900:])
    with open(result, encoding="utf-8") as file:
        sections = json.load(file)["sections"]
    check("measures attention without cuDNN", any(row.startswith("attention backward by") for row in sections["attention without cuDNN"]),
          str(sections.get("attention without cuDNN")))
    check("records a step", sections["gpt2-debug recorded"]["ms and launches a step"]["others"][1] > 0, str(sections["gpt2-debug recorded"]))


def check_first_day(work, pack, libtorch, binaries):
    """The parts that a CPU can run, and what they make of what they read."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
    import gpu_bench
    import gpu_first_day
    arguments = argparse.Namespace(bin=pack, libtorch=libtorch, state=None, work=work, device="cpu", steps={}, only=None, first_day=True, speed=False)
    day = gpu_first_day.FirstDay(gpu_bench.Bench(arguments))
    check("measures the head's columns", day.head()["logits of 50304 columns"] > 0)
    check("measures a load", day.soak()["last over first"] > 0)
    copies = day.copies()
    check("measures copies to the host", min(copies[way] for way in ("out", "in", "out and in at once", "pinning")) > 0, str(copies))
    check("measures memory beside the allocator", day.beside_the_allocator()["beside the allocator, opened"] == 0)
    unit = gpu_first_day.sandbox(gpu_first_day.UNIT)
    check("confines a test as the service", "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK" in unit and
          "DevicePolicy=closed" in unit and not [line for line in unit if line.startswith(("User=", "ExecStart="))], str(unit))
    lacks = day.missing(gpu_first_day.Part("a job", (gpu_first_day.JOBS_PROGRAMS,), None))
    check("names the programs that a pack lacks", lacks == [gpu_first_day.JOBS_PROGRAMS], str(lacks))
    arguments.bin = binaries
    job = day.job()
    check("trains a job from its submission to its end", job["steps"] == 6 and job["predicted_step_seconds"] > 0 and
          0 < job["last_loss"] < job["first_loss"], str(job))
    jobs = day.offload()
    names = ("activations", "everything", "large, all states on the host, capped")
    check("trains jobs that offload to the same losses", all(jobs[name]["losses are the same"] for name in names), str(jobs))
    check("measures their host bytes beside the plan", all(jobs[name]["host bytes, measured"] == jobs[name]["host bytes, planned"] > 0
                                                           for name in names), str(jobs))
    check("measures their memory and steps", all(0.9 < jobs[name]["memory over planned"] < 1.02 and jobs[name]["step over predicted"] > 0
                                                 for name in names), str(jobs))
    if shutil.which("gdb"):
        calls = day.handles("motley::engine::LmHeadLossBackward", "RehearsalTest*:EngineTest.*Train*")
        check("tells calls of the rehearsal from those of a step", min(calls.values()) > 0, str(calls))


def main():
    python, libtorch = sys.argv[1:3]
    bench = os.path.join(ROOT, "tests", "bench")
    binaries = os.environ["MOTLEY_BIN"]
    with tempfile.TemporaryDirectory() as work:
        if not os.path.isdir("/proc/driver/nvidia/gpus"):
            done = run(bench, "--bin", binaries)
            check("says that there is no GPU", done.returncode == 69 and "no GPU" in done.stderr, done.stderr)

        pack = os.path.join(work, "pack")
        done = run(bench, "--bin", binaries, "--pack", pack)
        check("packs", done.returncode == 0, done.stderr[-600:])
        size = sum(os.path.getsize(os.path.join(pack, name)) for name in os.listdir(pack)) / 1e6
        check(f"is no more than {MOST_MB} MB to carry", size <= MOST_MB, f"{size:.1f} MB")

        state, result = os.path.join(work, "state.json"), os.path.join(work, "result.json")
        trial = ["--bin", pack, "--libtorch", libtorch, "--trial", "--work", work, "--python", python, "--state", state, "--json", result]
        done = run(pack, *trial, "--only", "tests", "--only", "ceilings")
        check("runs what was packed", done.returncode == 0, (done.stdout + done.stderr)[-900:])
        done = run(pack, *trial)
        check("goes on with what is left", done.returncode == 0 and "ceilings:" not in done.stdout, (done.stdout + done.stderr)[-900:])
        with open(result, encoding="utf-8") as file:
            found = json.load(file)
        step = found["sections"].get("gpt2-debug motley", {})
        check("measures steps", step.get("tokens", 0) > 0 and 0 < step.get("loss of the last step", 0) < 10, json.dumps(found))
        memory = step.get("peak memory, measured over predicted", 0)
        check("measures memory beside its prediction", 0.9 < memory < 1.02, json.dumps(found))
        check("measures PyTorch beside", found["sections"].get("gpt2-debug eager", {}).get("tokens_per_second", 0) > 0, json.dumps(found))
        check("starts processes", found["sections"].get("starts", {}).get("starts") == 2, json.dumps(found))
        done = run(bench, "--bin", pack, "--libtorch", libtorch, "--trial", "--first-day", "--work", work, "--only", "none")
        check("names what a part of the first day needs", done.returncode == 0 and os.path.isdir("/proc/driver/nvidia/gpus") or
              "columns of the head: not run, needs a card" in done.stdout and "pull the data network's cable" in done.stdout,
              done.stdout + done.stderr)
        check_speed(work, pack, trial)
        check_first_day(work, pack, libtorch, binaries)
        check_verdict()
        check("says what stays unmeasured", len(found["unmeasured"]) > 0)
    sys.exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
