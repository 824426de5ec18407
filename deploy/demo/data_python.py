"""The Python of `motley data`, and what runs in it: one that has transformers is taken, else `motley data setup` makes one."""
import glob
import os
import subprocess

from cluster import ClusterError
from demo import say

NEEDED = "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(name) is None for name in ('tokenizers', 'transformers', 'jinja2')))"
SETUP = "34 wheels, a download of 50 MB, 200 MB on disk"   # docs/use/data-command.md
READY = " is ready"


def has_transformers(python):
    try:
        return subprocess.run([python, "-c", NEEDED], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


class DataPython:
    """`python` runs scripts; prepare() is `motley data prepare` in it."""

    def __init__(self, cluster, cache):
        self.motley, self.environment = cluster.program("motley"), {**os.environ, "MOTLEY_CACHE": cache}
        self.python = self._found(cache) or self._made(cache)
        self.environment["MOTLEY_DATA_PYTHON"] = self.python

    @staticmethod
    def _found(cache):
        named = os.environ.get("MOTLEY_DATA_PYTHON")
        if named:
            return named   # what it lacks `motley data` says
        own = sorted(glob.glob(os.path.join(cache, "data-*", "bin", "python")))
        tests = sorted(glob.glob(os.path.join(cache, "oracle-*", "bin", "python")))   # of ./run test
        found = next((python for python in reversed(own + tests) if has_transformers(python)), None)
        if found:
            say(f"tokens are made with {found}")
        return found

    def _made(self, cache):
        say(f"no Python with transformers is in {cache}: motley data setup makes one, once ({SETUP})")
        done = self.run(self.motley, "data", "setup")
        return next(line.removesuffix(READY) for line in done.splitlines() if line.endswith(READY))

    def run(self, *command):
        """What it printed; an error with its complaint otherwise."""
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.environment, check=False)
        if done.returncode != 0:
            raise ClusterError(f"{' '.join(command[:3])}: status {done.returncode}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def script(self, name, *arguments):
        """One that lies beside this file."""
        return self.run(self.python, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), name), *arguments)

    def prepare(self, tokenizer, source, out, *options):
        """The folder of tokens, and says what it holds."""
        for line in self.run(self.motley, "data", "prepare", "--tokenizer", tokenizer, *options, "--out", out, source).splitlines():
            say(f"| {line}")
        return out
