"""What the integration tests share: where things are, one line a check, and a cluster that ends with the test."""
import json
import os
import re
import shutil
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "deploy", "demo"))

from cluster import Cluster, ClusterError  # noqa: E402  (the path is known only now)
from patience import patience  # noqa: E402

FILTER = os.environ.get("MOTLEY_TEST_FILTER", "")   # ./run test NAME FILTER: only tests with this in their name
BIN = os.environ.get("MOTLEY_BIN", os.path.join(ROOT, "build", "release", "bin"))
ENDED = {"SUCCEEDED", "FAILED", "STOPPED"}
CPU_DEVICE = {"kind": "cpu", "memory_bytes": 2 << 30}


class Results:
    """Counts checks and prints a line for each: "ok NAME", "FAIL NAME: why", "skip NAME: why". ./run test counts the lines."""

    def __init__(self, suite):
        self.suite, self.failed, self.asked = suite, 0, 0

    def is_asked(self, name):
        asked = FILTER in f"{self.suite}: {name}"
        self.asked += asked
        return asked

    def check(self, name, condition, why=""):
        if condition:
            print(f"ok {self.suite}: {name}", flush=True)
        else:
            self.failed += 1
            print(f"FAIL {self.suite}: {name}: {why}", flush=True)
        return bool(condition)

    def skip(self, name, why):
        print(f"skip {self.suite}: {name}: {why}", flush=True)

    def prepare(self, name, test, *arguments):
        """What others stand on runs whatever is asked for. Else as run()."""
        before, begin = self.failed, time.monotonic()
        try:
            left_out = test(*arguments)
        except Exception as error:  # any error of a test is that test's failure
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.check(name, False, f"{type(error).__name__} at {os.path.basename(where.filename)}:{where.lineno}: {error}".replace("\n", " | "))
            return
        if left_out:
            self.skip(name, left_out)
        elif self.failed == before:
            print(f"ok {self.suite}: {name} ({time.monotonic() - begin:.1f} s)", flush=True)

    def run(self, name, test, *arguments):
        """Runs a test function; what it raises is its failure. A text that it returns says why it was left out."""
        if self.is_asked(name):
            self.prepare(name, test, *arguments)

    def exit(self):
        if FILTER and not self.asked:
            self.check("the tests that were asked for", False, f"none has '{FILTER}' in its name")
        sys.exit(1 if self.failed else 0)


def expect(condition, why):
    if not condition:
        raise AssertionError(why)


def published_checkpoints(folder):
    """(generation, step, name) of each in a job's folder, the newest last. docs/use/checkpoints.md"""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = [re.fullmatch(r"step-(\d{8,})-gen-(\d+)(?:-job-[0-9a-f]{32})?", name) for name in names]
    return sorted((int(of[2]), int(of[1]), of[0]) for of in found if of)


def state_of(job):
    return job["state"].upper()


def make_text(path, sentences=4000):
    """Plain prose of a small grammar: long enough for a validation split, the same everywhere."""
    words = "the a small old quick river stone garden light shadow walks sings remembers opens under over beyond and but while".split()
    value, out = 12345, []
    for _ in range(sentences):
        sentence = []
        for _ in range(8):
            value = (value * 1103515245 + 12345) % (1 << 31)
            sentence.append(words[(value >> 16) % len(words)])
        out.append(" ".join(sentence).capitalize() + ".\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(out))
    return path


class TestCluster(Cluster):
    """A cluster in a temporary folder with a text; everything is gone afterwards."""

    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="motley test ")
        super().__init__(BIN, os.path.join(self.top, "cluster"), file_roots=[self.top])
        self.text = make_text(os.path.join(self.top, "text.txt"))

    def __exit__(self, kind, *unused):
        self.stop()
        if kind is None or not os.environ.get("MOTLEY_KEEP"):
            shutil.rmtree(self.top, ignore_errors=True)

    def checkpoints(self, job_id=""):
        """checkpoint.folder of every job; the coordinator adds the job's id."""
        return os.path.join(self.top, "checkpoints", job_id).rstrip("/")

    # ---- waits, longer on a machine that is known to be busy ----
    def wait_for(self, condition, seconds, what, daemon=None, poll_seconds=0.1):
        return super().wait_for(condition, patience(seconds), what, daemon, poll_seconds)

    def run_motley(self, *arguments, timeout=120):
        return super().run_motley(*arguments, timeout=patience(timeout))

    def start(self, nodes, **emulation):
        """nodes: {name: [device, ...]}"""
        self.start_coordinator()
        for name, devices in nodes.items():
            self.start_worker(name, devices, emulation or None)
        self.wait_for_nodes(nodes)

    def job_file(self, job_id, sections):
        path = os.path.join(self.top, f"{job_id}.toml")
        with open(path, "w", encoding="utf-8") as file:
            for section, values in sections.items():
                file.write(f"[{section}]\n")
                file.writelines(f"{key} = {toml(value)}\n" for key, value in values.items())
        return path

    def submit_job(self, job_id, sections):
        """One that fails at once is submitted, too: whoever waits for its state hears why."""
        done = self.run_motley("submit", self.job_file(job_id, sections), "--id", job_id)
        expect(done.returncode == 0 or f"job {job_id} failed: " in done.stderr, f"status {done.returncode}: {done.stderr}")

    def wait_for_state(self, job_id, states, seconds=90):
        """The job once it is in one of the states; a job that ended otherwise is an error with its reason."""
        states = {states} if isinstance(states, str) else set(states)

        def there():
            job = self.job(job_id)
            state = state_of(job)
            if state in states:
                return job
            if state in ENDED:
                raise ClusterError(f"job {job_id} is {state}: {job.get('reason', '')}\n{self.job_log(job_id)}")
            return None

        return self.wait_for(there, seconds, f"job {job_id} to be {' or '.join(sorted(states))}")

    def wait_for_step(self, job_id, step, seconds=90):
        def there():
            job = self.job(job_id)
            expect(state_of(job) not in {"FAILED", "STOPPED"}, f"job {job_id} ended: {job.get('reason', '')}")
            return int(job.get("step", 0)) >= step

        self.wait_for(there, seconds, f"step {step} of {job_id}", poll_seconds=0.05)

    def job_log(self, job_id):
        return self.run_motley("logs", job_id).stdout[-2000:]

    def event_messages(self, kind, job_id=None):
        return [e.get("message", "") for e in self.events(job_id) if e["kind"] == kind]


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)   # JSON's escapes are TOML's
    return repr(value)


def job_sections(cluster, model="gpt2", **changes):
    """A tiny job; changes are given as section__key=value."""
    sections = {
        "model": {"name": model, "flavor": "debug"},
        "training": {"steps": 20, "seq_len": 32, "global_batch_size": 12, "max_norm": 1.0, "seed": 7, "dtype": "float32"},
        "optimizer": {"lr": 2e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1},
        "lr_scheduler": {"warmup_steps": 5, "decay_type": "cosine", "min_lr_factor": 0.1},
        "data": {"path": cluster.text, "validation_fraction": 0.05, "validation_samples": 8, "validation_interval": 0},
        "checkpoint": {"folder": cluster.checkpoints(), "interval": 0},
        "metrics": {},
        "planner": {"strategy": "even"},
    }
    for key, value in changes.items():
        section, name = key.split("__")
        sections[section][name] = value
    return sections
