#!/usr/bin/env python3
"""Two pages as they stand: docs/use/how-do-i-ask.md, its cluster file and each numbered question's commands, one after the other in
one folder; and the job file of docs/use/first-own-job.md."""
import os
import re
import subprocess
import tempfile
import textwrap

from harness import BIN, ROOT, Results, expect

PAGES = os.path.join(ROOT, "docs", "use")
QUESTIONS = 20
JOB_LINES = 10


def read(name):
    with open(os.path.join(PAGES, name), encoding="utf-8") as file:
        return file.read()


def write_toml(page, path):
    """The first TOML of a page, as a file."""
    text = re.search(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL).group(1)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return text


def questions(page):
    """{number and first words: its commands}"""
    found, name = {}, None
    for line in page.splitlines():
        begin = re.match(r"(\d+)\. \*(.+?[.?*])", line)
        if begin:
            name = f"{begin.group(1)}. {begin.group(2).rstrip('*')}"
            found[name] = ""
        elif line.startswith("#"):
            name = None
        elif name and line.startswith(" " * 7):
            found[name] += line + "\n"
    return {name: textwrap.dedent(commands) for name, commands in found.items()}


def answered(folder, commands):
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=folder, env=environment,
                          capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"status {done.returncode}: {(done.stdout + done.stderr)[-600:]}")
    expect(done.stdout.strip(), "no word")


def first_own_job(folder):
    """What the page says of it is what the command says."""
    page = read("first-own-job.md")
    lines = [line for line in write_toml(page, os.path.join(folder, "my-first.toml")).splitlines() if line]
    expect(len(lines) <= JOB_LINES, f"{len(lines)} lines")
    done = subprocess.run([os.path.join(BIN, "motley"), "config", "check", "my-first.toml"], cwd=folder,
                          capture_output=True, text=True, check=False)
    expect(done.returncode == 0 and done.stdout.strip() in page, f"status {done.returncode}: {done.stdout}{done.stderr}")


def main():
    results = Results("questions")
    page = read("how-do-i-ask.md")
    with tempfile.TemporaryDirectory() as folder:
        results.run("the job file of the first own job", first_own_job, folder)
        write_toml(page, os.path.join(folder, "lab.toml"))
        found = questions(page)
        results.check(f"{QUESTIONS} questions", len(found) == QUESTIONS, f"{len(found)} on the page")
        for name, commands in found.items():
            if commands:
                results.run(name, answered, folder, commands)
    results.exit()


if __name__ == "__main__":
    main()
