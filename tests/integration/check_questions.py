#!/usr/bin/env python3
"""Pages as they stand: docs/use/how-do-i-ask.md, its cluster file and each numbered question's commands, one after the other in one
folder; the job file of docs/use/first-own-job.md; and what README.md and docs/use/first-hour.md say that plans come to."""
import json
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


def planned(cluster, *arguments, model="llama3.2-1b"):
    """The answer of README's command."""
    command = [os.path.join(BIN, "motley"), "plan", "--cluster", cluster, "--model", model, "--global-batch", "64", "--seq-len", "1024",
               "--dtype", "bf16", "--runnable", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def two_servers(folder):
    """README's table: tokens/s of two strategies on one server and on both."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        said = {row[0]: [int(re.sub(r"\D", "", cell.split(":")[0])) for cell in row[1:]]
                for row in (line.strip("| \n").split(" | ") for line in file if re.match(r"\| .*\(`(fsdp|auto)`\) \|", line))}
    fast = os.path.join(ROOT, "deploy", "examples", "clusters", "two-servers.toml")
    slow = os.path.join(folder, "slow.toml")
    with open(fast, encoding="utf-8") as file, open(slow, "w", encoding="utf-8") as out:
        out.write(file.read().replace("nic_gbit_per_second = 10", "nic_gbit_per_second = 1"))
    for name, cells in said.items():
        strategy = re.search(r"`(\w+)`", name).group(1)
        found = [round(json.loads(planned(*where, "--strategy", strategy, "-o", "json"))["predicted"]["tokens_per_second"])
                 for where in ((fast, "--exclude", "n2"), (fast,), (slow,))]
        expect(all(abs(a - b) <= 0.001 * b for a, b in zip(cells, found)), f"{strategy}: README has {cells}, motley plan says {found}")
    expect(len(said) == 2, f"README has {said}")


def worth_of_cards(folder):
    """The first hour's: what each machine adds."""
    page = read("first-hour.md")
    path = os.path.join(folder, "mine.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(textwrap.dedent(page[page.index("    [defaults]"):page.index("    $ motley plan --cluster mine.toml")]))
    answer = planned(path, "--explain")
    lines = [line.strip() for line in page.splitlines() if re.match(r"      (without \w+|best single machine): ", line)]
    missing = [line for line in [*lines, "what would help most, found by planning again: one more RTX-4090"] if line not in answer]
    expect(len(lines) == 4 and not missing, f"not said any more: {missing}")


def main():
    results = Results("questions")
    page = read("how-do-i-ask.md")
    with tempfile.TemporaryDirectory() as folder:
        results.run("the job file of the first own job", first_own_job, folder)
        results.run("what README says of two servers", two_servers, folder)
        results.run("what the first hour says of four cards", worth_of_cards, folder)
        write_toml(page, os.path.join(folder, "lab.toml"))
        found = questions(page)
        results.check(f"{QUESTIONS} questions", len(found) == QUESTIONS, f"{len(found)} on the page")
        for name, commands in found.items():
            if commands:
                results.run(name, answered, folder, commands)
    results.exit()


if __name__ == "__main__":
    main()
