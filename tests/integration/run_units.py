#!/usr/bin/env python3
"""Runs GoogleTest programs, a process for each suite of tests, several at once; a line a test: "ok ...", "FAIL ...", "skip ...".

A test that crashes or hangs is named, and those behind it in its suite run in a process of their own.

usage: run_units.py [--jobs N] [--test-seconds S] [--folder FOLDER]... [--filter PATTERN] PROGRAM...

  --folder FOLDER    only tests whose file lies in that folder of the sources, or below
  --filter PATTERN   only tests whose whole name matches, * for anything; several: separated by ':'. With --folder: those besides
"""
import argparse
import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from patience import patience

TEST_SECONDS = 300
LIST_SECONDS = 60
NOT_LOADED, LOADS, LOAD_AGAIN_SECONDS = 127, 3, 1   # the loader's word: short of memory for a moment, or a library that is not there
RUN, OVER = re.compile(r"^\[ RUN      \] (\S+)"), re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?),?(?: where .*)? \(\d+ ms\)$")
PRINTING = threading.Lock()


class Group:
    """Tests of one suite of one program, and how they ended."""

    def __init__(self, program, names, test_seconds):
        self.program, self.left, self.test_seconds, self.failed = program, list(names), test_seconds, False

    def run(self):
        loads = LOADS
        while self.left:
            before = len(self.left)
            status, said = self.run_process()
            if len(self.left) < before:
                loads = LOADS
            elif status == NOT_LOADED and loads > 1:
                loads -= 1
                time.sleep(LOAD_AGAIN_SECONDS)
            else:   # not even the first one began
                self.say_failed(self.left.pop(0), f"it did not begin: {how_it_ended(status)}", said)

    def run_process(self):
        """(how the process ended, what it printed outside of tests)"""
        running, lines = None, []
        process = subprocess.Popen([self.program, "--gtest_color=no", f"--gtest_filter={':'.join(self.left)}"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        watch = Watch(process, self.test_seconds)
        for line in process.stdout:
            began, over = RUN.match(line), OVER.match(line)
            if began:
                running, lines = began[1], []
                self.left.remove(running)
                watch.begin()
            elif over and over[2] == running:
                self.take(over[1], running, lines)
                running, lines = None, []
            else:
                lines.append(line)
        watch.end()
        status = process.wait()
        if running:
            self.say_failed(running, watch.reason or how_it_ended(status), "".join(lines))
        elif status not in (0, 1) and not self.left:
            self.say_failed(f"{os.path.basename(self.program)} after its last test", how_it_ended(status), "".join(lines))
        return status, "".join(lines)

    def take(self, verdict, name, lines):
        if verdict == "OK":
            say(f"ok {name}")
        elif verdict == "SKIPPED":
            where = next((i for i, line in enumerate(lines) if line.rstrip().endswith(": Skipped")), None)
            why = lines[where + 1].strip() if where is not None and where + 1 < len(lines) else "it does not say why"
            say(f"skip {name}: {why}")
        else:
            self.say_failed(name, "failed", "".join(lines))

    def say_failed(self, name, why, output):
        self.failed = True
        said = "".join(f"    {line}\n" for line in output.splitlines())
        say(f"{said}FAIL {name}: {why}")


class Watch:
    """Kills a process whose test does not end."""

    def __init__(self, process, seconds):
        self.process, self.seconds, self.timer, self.reason = process, seconds, None, ""

    def begin(self):
        self.end()
        self.timer = threading.Timer(self.seconds, self.kill)
        self.timer.daemon = True
        self.timer.start()

    def kill(self):
        self.reason = f"no end after {self.seconds:.0f} s"
        os.killpg(self.process.pid, signal.SIGKILL)

    def end(self):
        if self.timer:
            self.timer.cancel()


def how_it_ended(status):
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"the program ended with status {status}"


def say(text):
    with PRINTING:
        print(text, flush=True)


def tests_of(program):
    """[(suite, test, file)] in the program's order; an error with what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tests.json")
        for again in reversed(range(LOADS)):
            done = subprocess.run([program, "--gtest_list_tests", f"--gtest_output=json:{path}"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=patience(LIST_SECONDS), check=False)
            if done.returncode != NOT_LOADED or not again:
                break
            time.sleep(LOAD_AGAIN_SECONDS)
        if done.returncode != 0:
            raise RuntimeError(f"its tests are not known: status {done.returncode}: {done.stdout[-300:]}")
        with open(path, encoding="utf-8") as file:
            suites = json.load(file)["testsuites"]
    return [(suite["name"], test["name"], test["file"]) for suite in suites for test in suite["testsuite"]]


def is_in(path, folders):
    """Whether a file of the sources, or one compiled with others, lies there."""
    return any(f"/{folder.strip('/')}/" in path or path.startswith(f"{folder.strip('/')}/") for folder in folders)


def groups_of(program, arguments):
    names = {}
    for suite, test, file in tests_of(program):
        name = f"{suite}.{test}"
        matches = any(fnmatch.fnmatchcase(name, pattern) for pattern in arguments.filter.split(":")) if arguments.filter else False
        if matches or (is_in(file, arguments.folder) if arguments.folder else not arguments.filter):
            names.setdefault(suite, []).append(name)
    return [Group(program, tests, arguments.test_seconds) for tests in names.values()]


def main():
    parser = argparse.ArgumentParser(description="GoogleTest programs, a process a suite")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--test-seconds", type=float, default=patience(TEST_SECONDS))
    parser.add_argument("--folder", action="append", default=[])
    parser.add_argument("--filter", default="")
    parser.add_argument("programs", nargs="+")
    arguments = parser.parse_args()
    groups, failed = [], False
    for program in arguments.programs:
        try:
            groups += groups_of(program, arguments)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            say(f"FAIL {os.path.basename(program)}: {error}".replace("\n", " | "))
            failed = True
    if not groups and not failed:
        say("FAIL no test is of that name or folder")
        return 1
    with ThreadPoolExecutor(arguments.jobs) as workers:
        for one in [workers.submit(group.run) for group in groups]:
            one.result()
    return 1 if failed or any(group.failed for group in groups) else 0


if __name__ == "__main__":
    sys.exit(main())
