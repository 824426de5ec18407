"""The first day on a machine with cards: what was only read and faked so far, in the order in which it would break.

Each part says what it needs. A part whose needs this machine does not meet is named with what is missing and tried again by the next
run; those that need a hand say what to do and what to look at.
"""
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import Callable

import gpu_job

HERE = os.path.dirname(os.path.abspath(__file__))
UNIT = os.path.join(HERE, "..", "..", "deploy", "systemd", "motley-worker.service.in")
# What confines the service, without what names its folders, its user or its end.
OF_THE_SANDBOX = ("NoNewPrivileges", "CapabilityBoundingSet", "AmbientCapabilities", "Device", "Private", "Protect", "LockPersonality",
                  "Restrict", "RemoveIPC", "SystemCall", "LimitMEMLOCK")
NOT_OF_A_UNIT_THAT_RUNS_ONCE = ("Restart=", "RestartSec=", "RestartPreventExitStatus=", "ProtectHome=")  # the programs may be at home
TWO_RANKS = "CardTransportTest.TwoRanksOnThisCardGoByNccl"


@dataclass
class Part:
    name: str
    needs: tuple  # keys of NEEDS
    run: Callable  # () -> a result's dictionary


def cards():
    folder = "/proc/driver/nvidia/gpus"
    return len(os.listdir(folder)) if os.path.isdir(folder) else 0


NEEDS = {
    "a card": lambda: cards() >= 1,
    "root": lambda: os.geteuid() == 0,
    "systemd": lambda: os.path.isdir("/run/systemd/system") and shutil.which("systemd-run") is not None,
    "the unit's file": lambda: os.path.exists(UNIT),
    "gdb": lambda: shutil.which("gdb") is not None,
    "nvidia-smi": lambda: shutil.which("nvidia-smi") is not None,
}


JOBS_PROGRAMS = "the programs of a job and their checkout"


def sandbox(path):
    """The properties of a transient unit that is confined as the worker's service is."""
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    begin = lines.index("[Service]")
    return [line for line in lines[begin + 1:lines.index("[Install]")]
            if line.startswith(OF_THE_SANDBOX) and not line.startswith(NOT_OF_A_UNIT_THAT_RUNS_ONCE)]


def calls_by_phase(text):
    """Of gdb's backtraces of a function, one after "MARK" each: how many calls came from the rehearsal, how many from elsewhere."""
    traces = text.split("MARK\n")[1:]
    if any("motley::" not in trace for trace in traces):
        raise RuntimeError("the programs have no symbols: run it where they were built")
    rehearsed = sum(1 for trace in traces if re.search(r"[Rr]ehears", trace))
    return {"rehearsed": rehearsed, "elsewhere": len(traces) - rehearsed}


class FirstDay:
    def __init__(self, bench):
        self.bench, self.args = bench, bench.args

    def test_program(self, name):
        return os.path.join(self.args.bin, name)

    def missing(self, part):
        """Of the part's needs; the programs are where the bench was told."""
        lacks = [need for need in part.needs if need != JOBS_PROGRAMS and not NEEDS[need]()]
        return lacks + [JOBS_PROGRAMS] * (JOBS_PROGRAMS in part.needs and not gpu_job.programs_are_there(self.args.bin))

    def job(self):
        return gpu_job.run(self.args.bin, os.path.join(self.args.work, "job"), self.args.device, self.bench.environment())

    def offload(self):
        return gpu_job.offload(self.args.bin, os.path.join(self.args.work, "offload"), self.args.device, self.bench.environment())

    def copies(self):
        """To the host's memory and back, each alone and both at once; what pinning takes."""
        return self.bench.rows("--only", "copies", *self.small())

    def card(self):
        fields = "name,driver_version,compute_cap,memory.total,power.limit,pcie.link.gen.max,pcie.link.width.max"
        rows = self.bench.checked(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]).strip().splitlines()
        result = {"cards": rows, "links": self.bench.checked(["nvidia-smi", "topo", "-m"]).strip().splitlines()}
        if os.path.exists(self.test_program("motley-rank")):
            result["nccl"] = self.bench.checked([self.test_program("motley-rank"), "--nccl"]).strip()
        return result

    def confined(self):
        """As the service is: what NCCL and the driver may not do there."""
        libraries = self.bench.environment()["LD_LIBRARY_PATH"]
        command = ["systemd-run", "--wait", "--pipe", "--collect", "--quiet", f"--setenv=LD_LIBRARY_PATH={libraries}"]
        for line in sandbox(UNIT):
            command += ["-p", line]
        test = [self.test_program("engine_tests"), "--gtest_filter=CardTransportTest.Nccl*:CardUnitsTest*", "--gtest_brief=1"]
        return {"tests": self.bench.checked(command + test).strip().splitlines()[-1]}

    def handles(self, function="cublasCreate_v2", test="CardPlansTest.ACardBesideACpuTrainsTheSame"):
        """A handle that is made within a step may wait for the card, which waits for a peer."""
        script = os.path.join(self.args.work, "first_day.gdb")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"set breakpoint pending on\nset pagination off\nbreak {function}\ncommands\nsilent\nprintf \"MARK\\n\"\n"
                       "backtrace 40\ncontinue\nend\nrun\n")
        said = self.bench.checked(["gdb", "--batch", "-x", script, "--args", self.test_program("engine_tests"),
                                   f"--gtest_filter={test}", "--gtest_brief=1"])
        found = calls_by_phase(said)
        if not sum(found.values()):
            raise RuntimeError(f"{function} was never called: {said[-600:]}")
        return found

    def beside_the_allocator(self):
        return self.bench.rows("--only", "memory")

    def soak(self):
        """A card's rate in the first second of a minute of load, and in its last ten."""
        return self.bench.rows("--only", "soak", "--seconds", "60" if self.args.device == "cuda" else "1", *self.small())

    def head(self):
        return self.bench.rows("--only", "head", "--dtype", self.bench.dtype(), *self.small())

    def small(self):
        return () if self.args.device == "cuda" else ("--size", "64")

    def nccl_log(self):
        """Which net, interface and channels NCCL says that it takes."""
        environment = {**self.bench.environment(), "NCCL_DEBUG": "INFO"}
        done = subprocess.run([self.test_program("engine_tests"), f"--gtest_filter={TWO_RANKS}", "--gtest_brief=1"], env=environment,
                              capture_output=True, text=True, timeout=120, check=False)
        lines = [line.split("NCCL INFO ", 1)[1] for line in (done.stdout + done.stderr).splitlines() if "NCCL INFO " in line]
        kept = [line for line in lines if re.search(r"NET/|Using network|Channel|via |version", line)]
        if done.returncode != 0:
            raise RuntimeError(f"ended with {done.returncode}: " + (done.stdout + done.stderr)[-1500:])
        return {"lines": kept[:60]}

    def parts(self):
        card = ("a card",)
        return [
            Part("card", card + ("nvidia-smi",), self.card),
            Part("a job", card + (JOBS_PROGRAMS,), self.job),
            Part("tests", card, self.bench.tests),
            Part("starts", card + ("nvidia-smi",), self.bench.starts),
            Part("confined as the service", card + ("root", "systemd", "the unit's file"), self.confined),
            Part("handles made in a step", card + ("gdb",), self.handles),
            Part("memory beside the allocator", card, self.beside_the_allocator),
            Part("NCCL's log", card, self.nccl_log),
            Part("copies to the host", card, self.copies),
            Part("jobs that offload", card + (JOBS_PROGRAMS,), self.offload),
            Part("a minute of load", card, self.soak),
            Part("columns of the head", card, self.head),
            Part("ceilings", card, self.bench.ceilings),
            Part("kernels", card, self.bench.kernels),
        ]


BY_HAND = [
    ("two cards: a job in two stages, 100 short runs (./run up, then motley submit)", "a first step that hangs or a peak above its prediction"),
    ("two nodes: pull the data network's cable in a step", "how long until which message; within 15 s"),
    ("two CPU sockets: cards_bench --only copies under numactl --membind, of the near and of the far node", "the far node's rates"),
    ("two cards: kill -9 a rank inside a gather, another inside a receive", "which device is named, and that the job goes on"),
    ("after a boot, before any other use of the card: systemctl start motley-worker", "motley nodes shows the card"),
    ("an L4 or another card of little power beside a large one: motley nodes after its profile", "the clocks that the profile names"),
    ("a P40: a job in bfloat16 and in float32 with libtorch 2.7.1; one NCCL pair with a newer card", "an error, or float32 as fast"),
    ("four ranks with six communicators on 16 cores: top", "NCCL's proxy threads that take a core each"),
]
