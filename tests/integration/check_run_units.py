#!/usr/bin/env python3
"""run_units.py names the test that fails, crashes or hangs, and runs those behind it: tried on a program that only speaks like
GoogleTest's."""
import os
import stat
import subprocess
import sys
import tempfile

from harness import ROOT, Results, expect

PROGRAM = '''#!/usr/bin/env python3
import json, os, signal, sys, time
TESTS = ["good", "bad", "crashes", "skipped", "hangs", "last"]
flags = dict(one.split("=", 1) for one in sys.argv[1:] if "=" in one)
if "--gtest_list_tests" in sys.argv:
    suite = {"name": "Suite", "testsuite": [{"name": name, "file": "tests/folder/some_test.cc"} for name in TESTS]}
    other = {"name": "Other", "testsuite": [{"name": "good", "file": "tests/other/other_test.cc"}]}
    with open(flags["--gtest_output"][5:], "w") as file:
        json.dump({"testsuites": [suite, other]}, file)
    sys.exit(0)
for name in flags["--gtest_filter"].split(":"):
    kind = name.split(".")[1]
    print("[ RUN      ] " + name, flush=True)
    if kind == "bad":
        print("some_test.cc:1: Failure")
    if kind == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == "skipped":
        print("some_test.cc:2: Skipped\\nno card here")
    if kind == "hangs":
        time.sleep(3600)
    word = {"bad": "[  FAILED  ]", "skipped": "[  SKIPPED ]"}.get(kind, "[       OK ]")
    print(word + " " + name + " (0 ms)", flush=True)
sys.exit(1 if "bad" in flags["--gtest_filter"] else 0)
'''


def run(*arguments, program=PROGRAM):
    """(status, lines that count)"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "some_tests")
        with open(path, "w", encoding="utf-8") as file:
            file.write(program)
        os.chmod(path, stat.S_IRWXU)
        script = os.path.join(ROOT, "tests", "integration", "run_units.py")
        done = subprocess.run([sys.executable, script, "--test-seconds", "5", *arguments, path], text=True, capture_output=True, check=False)
        return done.returncode, sorted(line for line in done.stdout.splitlines() if line.split(" ")[0] in ("ok", "FAIL", "skip"))


def all_of_a_program():
    status, lines = run()
    wanted = ["FAIL Suite.bad: failed", "FAIL Suite.crashes: killed by SIGSEGV", "FAIL Suite.hangs: no end after 5 s", "ok Other.good",
              "ok Suite.good", "ok Suite.last", "skip Suite.skipped: no card here"]
    expect(status == 1 and lines == wanted, f"status {status}: {lines}")


def by_name_and_folder():
    expect(run("--filter", "*.good") == (0, ["ok Other.good", "ok Suite.good"]), f"{run('--filter', '*.good')}")
    expect(run("--folder", "tests/other") == (0, ["ok Other.good"]), f"{run('--folder', 'tests/other')}")
    both = run("--folder", "tests/other", "--filter", "Suite.last")
    expect(both == (0, ["ok Other.good", "ok Suite.last"]), f"{both}")
    status, lines = run("--filter", "nothing")
    expect(status == 1 and lines == ["FAIL no test is of that name or folder"], f"status {status}: {lines}")


def a_program_that_does_not_start():
    status, lines = run(program="#!/bin/sh\necho no library; exit 127\n")
    expect(status == 1 and len(lines) == 1 and "status 127: no library" in lines[0], f"status {status}: {lines}")


def a_loader_short_of_memory_for_a_moment():
    # The loader fails at the list, and at the first start of each of two suites; the third start of each works.
    fails = """#!/usr/bin/env python3
import os, sys
count = sys.argv[0] + "".join(filter(str.isalnum, "".join(sys.argv[1:])))[-60:]
with open(count, "a+") as file:
    file.write("x")
    file.seek(0)
    starts = len(file.read())
if starts < 3:
    print("cannot apply additional memory protection after relocation")
    sys.exit(127)
"""
    status, lines = run("--filter", "*.good", program=fails + PROGRAM.split("\n", 1)[1])
    expect((status, lines) == (0, ["ok Other.good", "ok Suite.good"]), f"status {status}: {lines}")


def main():
    results = Results("run units")
    results.run("what fails, crashes or hangs is named, what follows runs", all_of_a_program)
    results.run("only what is asked for", by_name_and_folder)
    results.run("a program that does not start", a_program_that_does_not_start)
    results.run("a loader that is short of memory for a moment", a_loader_short_of_memory_for_a_moment)
    results.exit()


if __name__ == "__main__":
    main()
