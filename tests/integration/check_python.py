#!/usr/bin/env python3
"""Every name that a Python file uses is there, and every import is used: pyflakes. A long suite that nobody ran today shows it too late.

MOTLEY_PYFLAKES: the folder that pyflakes was installed to. Prints "ok NAME" or "FAIL NAME: where and what". First it tries itself.
"""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.environ.get("MOTLEY_PYFLAKES", ""))

import pyflakes.api        # noqa: E402: from that folder
import pyflakes.reporter   # noqa: E402

WRONG = "import os\n\ndef later():\n    return undefined_name\n"
RIGHT = "import os\n\ndef later():\n    return os.sep\n"


class Findings(pyflakes.reporter.Reporter):
    def __init__(self):
        self.lines = []

    def unexpectedError(self, filename, msg):
        self.lines.append(f"{filename}: {msg}")

    def syntaxError(self, filename, msg, lineno, offset, text):
        self.lines.append(f"{filename}:{lineno}: {msg}")

    def flake(self, message):
        self.lines.append(str(message))


def findings(text, path):
    found = Findings()
    pyflakes.api.check(text, path, found)
    return [line for line in found.lines if not is_allowed(text, line)]


def is_allowed(text, finding):
    """What the line itself excuses."""
    number = finding.split(":")[1]
    return number.isdigit() and "# noqa" in text.splitlines()[int(number) - 1]


def python_files():
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.split()


def main():
    if len(findings(WRONG, "sample.py")) != 2 or findings(RIGHT, "sample.py"):
        print("FAIL python: an undefined name and an unused import are not found, or something right is")
        return 1
    wrong = []
    for path in python_files():
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            wrong += findings(file.read(), path)
    for line in wrong:
        print(f"FAIL python: {line}")
    if not wrong:
        print(f"ok python: {len(python_files())} files")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
