"""A run that does not come to its end leaves nothing that looks whole: killed, stopped, with a full disk, beside another."""
import errno
import os
import signal
import subprocess
import sys
import time

from harness import expect
from refusals import refuse
from token_folder import PROGRAM, TokenFolder, prepare, run, start
from tokenizers_made import english, make

PATIENCE = 120   # seconds; a condition that never comes


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        expect(time.monotonic() < end, f"no {what} within {PATIENCE} s")
        time.sleep(0.02)


class HalfRead:
    """A run that has read a part of its input and waits for the rest, which does not come."""

    def __init__(self, top, tokenizer, name, *words):
        self.out, self.partial = os.path.join(top, name), os.path.join(top, f".{name}.preparing")
        fifo = os.path.join(top, name + ".txt")
        os.mkfifo(fifo)
        self.process = start("prepare", "--tokenizer", tokenizer, "--out", self.out, *words, fifo)
        self.input = open(fifo, "w", encoding="utf-8")   # waits for the program to open it
        self.input.write(english(50_000) * 50)   # of a block of 1 MiB each it takes two
        self.input.flush()
        self.tokens = os.path.join(self.partial, "tokens.bin")
        wait_for(lambda: os.path.exists(self.tokens), "tokens.bin")

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="utf-8") as file:
            return [int(pid) for pid in file.read().split()]

    def end(self, number):
        """(exit code, what it said)"""
        self.process.send_signal(number)
        err = self.process.communicate(timeout=PATIENCE)[1]
        try:
            self.input.close()
        except BrokenPipeError:
            pass
        return self.process.returncode, err


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def killed(top, tokenizer):
    """Its processes go with it; the next run clears away what it left."""
    half = HalfRead(top, tokenizer, "killed", "--processes", 2)
    wait_for(lambda: len(half.children()) >= 2, "processes of its own")
    children = half.children()
    expect(half.end(signal.SIGKILL)[0] == -signal.SIGKILL, "killed")
    expect(not os.path.exists(half.out) and not os.path.exists(os.path.join(half.partial, "tokens.json")), "looks whole")
    expect(run("show", half.partial)[0] == 66, "what is left is shown")
    wait_for(lambda: not any(is_running(pid) for pid in children), "end of its processes")
    path = os.path.join(top, "after.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("one")
    expect(len(prepare(tokenizer, half.out, path).lengths) == 1 and not os.path.exists(half.partial), "the next run")


def stopped(top, tokenizer):
    half = HalfRead(top, tokenizer, "stopped")
    code, err = half.end(signal.SIGTERM)
    expect(code == 128 + signal.SIGTERM and "stopped; nothing was written" in err, f"{code}: {err}")
    expect(not os.path.exists(half.out) and not os.path.exists(half.partial), "something is left")


def two_into_one(top, tokenizer):
    from motley_data.out_folder import OutFolder
    out = OutFolder(os.path.join(top, "refused"))
    path = os.path.join(top, "after.txt")
    code, _, err = run("prepare", "--tokenizer", tokenizer, "--out", os.path.join(top, "refused"), path)
    expect(code == 75 and "another motley data prepare writes" in err and os.path.isdir(out.partial), f"{code}: {err}")
    out.abandon()
    prepare(tokenizer, os.path.join(top, "there"), path)
    code, _, err = run("prepare", "--tokenizer", tokenizer, "--out", os.path.join(top, "there"), path)
    expect(code == 73 and "is there already" in err, f"{code}: {err}")
    TokenFolder(os.path.join(top, "there"))
    prepare(tokenizer, os.path.join(top, "absent", "too", "out"), path)
    TokenFolder(os.path.join(top, "absent", "too", "out"))
    code, _, err = run("prepare", "--tokenizer", tokenizer, "--out", os.path.join(path, "out"), path)
    expect(code == 73 and "Not a directory" in err, f"{code}: {err}")


def full_disks(top, tokenizer):
    from motley_data.token_files import PartedFile
    path = os.path.join(top, "after.txt")
    write = PartedFile.write
    for number, code, said in ((errno.ENOSPC, 74, "the disk is full; free some space"), (errno.EIO, 74, "Input/output error"), (errno.EROFS, 77, "Read-only")):
        def fail(self, data, number=number):
            raise OSError(number, os.strerror(number), "tokens.bin")

        PartedFile.write = fail
        try:
            refuse(top, tokenizer, code, said, path)
        finally:
            PartedFile.write = write
    limited = f"ulimit -f 8; exec {sys.executable} -B {PROGRAM} prepare --tokenizer {tokenizer} --out {top}/limited {top}/large.txt"
    with open(os.path.join(top, "large.txt"), "w", encoding="utf-8") as file:
        file.write(english(200_000))
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False)
    expect(done.returncode == 74 and "ulimit -f" in done.stderr and not os.path.exists(os.path.join(top, "limited")), done.stderr)


def setup_without_wheels(top):
    """As without a network: pip finds nothing, and the message says how to come by the wheels."""
    venv, wheels = os.path.join(top, "cache", "data-0"), os.path.join(top, "no-wheels")
    os.makedirs(wheels)
    code, _, err = run("setup", "--venv", venv, "--wheels", wheels)
    expect(code == 69 and "pip download --require-hashes" in err and "--wheels FOLDER" in err, f"{code}: {err}")
    expect(os.listdir(os.path.join(top, "cache")) == ["data-0.lock"], os.listdir(os.path.join(top, "cache")))
    expect(run("setup", "--venv", venv, "--wheels", os.path.join(top, "wheels-elsewhere"))[0] == 66, "a folder that is not there")


def run_all(results, top):
    tokenizer = make("gpt2", os.path.join(top, "interrupted"))
    results.prepare("killed", killed, top, tokenizer)
    for test in (stopped, two_into_one, full_disks):
        results.run(test.__name__.replace("_", " "), test, top, tokenizer)
    results.run("setup without wheels", setup_without_wheels, top)
