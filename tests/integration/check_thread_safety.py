#!/usr/bin/env python3
"""Clang's thread-safety analysis on every file of the daemons that uses a mutex: GCC, which builds Motley, ignores the annotations.

Takes the compile commands of a configured build folder (argument; default build/release), of each file by itself where several are
compiled as one. Prints "ok NAME" or "FAIL NAME: why";
leaves everything out without clang++-16.
"""
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ("common/", "coordinator/", "worker/daemon/", "worker/engine/", "worker/records/")
CLANG = "clang++-16"
TOGETHER = re.compile(r'^#include "(.+\.cc)"$', re.M)
KEPT = re.compile(r"^-(I|D|isystem|std=)")  # of the command's flags; GCC's own warnings and optimisation say nothing here


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def commands_by_file(build):
    """(file, compile command) of each source."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    for entry in entries:
        together = TOGETHER.findall(text_of(entry["file"])) if "/Unity/" in entry["file"] else [entry["file"]]
        for path in together:
            yield {**entry, "file": path}


def guarded(path):
    """The file or its header locks something."""
    header = os.path.splitext(path)[0] + ".h"
    return any("Mutex" in text_of(p) for p in (path, header) if os.path.exists(p))


def flags(command):
    kept, words = [], shlex.split(command)
    for number, word in enumerate(words):
        if word == "-isystem":
            kept += [word, words[number + 1]]
        elif KEPT.match(word) and word != "-isystem":
            kept.append(word)
    return kept


def analyse(entry):
    done = subprocess.run([CLANG, *flags(entry["command"]), "-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety",
                           entry["file"]], cwd=entry["directory"], capture_output=True, text=True)
    errors = [line for line in done.stderr.splitlines() if " error: " in line]
    return os.path.relpath(entry["file"], ROOT), errors or ([done.stderr.strip()[:500]] if done.returncode else [])


def main():
    if not shutil.which(CLANG):
        print(f"skip thread safety: no {CLANG} (apt-get install clang-16)")
        return
    build = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "release")
    entries = [entry for entry in commands_by_file(build)
               if os.path.relpath(entry["file"], ROOT).startswith(FOLDERS) and guarded(entry["file"])]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, errors in pool.map(analyse, entries):
            failed += bool(errors)
            print(f"FAIL thread safety: {name}: {' | '.join(errors)}" if errors else f"ok thread safety: {name}", flush=True)
    if not entries:
        print("FAIL thread safety: no file was looked at")
    sys.exit(1 if failed or not entries else 0)


if __name__ == "__main__":
    main()
