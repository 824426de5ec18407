#!/usr/bin/env python3
"""Under the filter of system calls that a unit asks of systemd, the worker still gets Landlock: the filter is made from the unit's
text as systemd makes it, put on a process, and the three calls are made there.

    check_unit_filter.py UNIT WORKER CONFIG   # the worker's program and a configuration that it takes
"""
import ctypes
import errno
import os
import re
import struct
import subprocess
import sys

from harness import Results, expect
from patience import patience

HEADERS = ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"]
CALLS = ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
RET_ALLOW, RET_ERRNO = 0x7FFF0000, 0x00050000
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
VERSION_FLAG, RULE_PATH_BENEATH, READ_FILE = 1, 1, 4
LIBC = ctypes.CDLL(None, use_errno=True)


def numbers():
    for path in HEADERS:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return {name: int(number) for name, number in re.findall(r"^#define __NR_(\w+) (\d+)$", file.read(), re.MULTILINE)}
    return {}


def members(name):
    """The calls of a set of systemd's, sets in it included; a call is itself."""
    if not name.startswith("@"):
        return {name}
    text = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", name], capture_output=True, text=True, check=True).stdout
    lines = [line.strip() for line in text.splitlines()[1:]]
    return set().union(*(members(line) for line in lines if line and not line.startswith("#")))


def allowed_by(unit):
    """What its SystemCallFilter lines leave, as systemd reads them one after the other."""
    allowed = set()
    with open(unit, encoding="utf-8") as file:
        for value in re.findall(r"^SystemCallFilter=(.*)$", file.read(), re.MULTILINE):
            takes_away = value.startswith("~")
            for name in value.lstrip("~").split():
                allowed = allowed - members(name) if takes_away else allowed | members(name)
    return allowed


def put_on(calls):
    """This process, and what it starts, may make these calls alone; others fail with EPERM, as the unit asks."""
    steps = [(LOAD, 0, 0, 0)]
    for number in calls:
        steps += [(JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, RET_ALLOW)]
    steps.append((RETURN, 0, 0, RET_ERRNO | errno.EPERM))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    if LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) != 0:
        os._exit(9)


def under_filter(calls, act):
    """What `act` returns, a number below 9, in a process of its own under the filter."""
    pid = os.fork()
    if pid == 0:
        put_on(calls)
        os._exit(act())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def restrict(syscalls):
    """0, or the number of the call that fails. Ends with /usr readable and nothing else."""
    number = [syscalls[name] for name in CALLS]
    rights = ctypes.c_uint64(READ_FILE)
    ruleset = LIBC.syscall(number[0], ctypes.byref(rights), 8, 0)
    if ruleset < 0:
        return 1
    rule = ctypes.create_string_buffer(struct.pack("=Qi", READ_FILE, os.open("/usr", os.O_PATH)))
    if LIBC.syscall(number[1], ruleset, RULE_PATH_BENEATH, rule, 0) != 0:
        return 2
    if LIBC.syscall(number[2], ruleset, 0) != 0:
        return 3
    try:
        os.open("/etc/passwd", os.O_RDONLY)
        return 4
    except PermissionError:
        return 0


def restricts(unit, syscalls):
    calls = allowed_by(unit)
    left_out = [name for name in CALLS if name not in calls]
    expect(not left_out, f"SystemCallFilter of {unit} leaves out {', '.join(left_out)}")
    failed = under_filter([syscalls[name] for name in calls if name in syscalls], lambda: restrict(syscalls))
    expect(failed == 0, f"under the filter it ends with {failed}: {CALLS[failed - 1] if 0 < failed < 4 else 'what?'}")
    # The test itself: without the calls it is the first one that fails.
    failed = under_filter([number for name, number in syscalls.items() if name not in CALLS], lambda: restrict(syscalls))
    expect(failed == 1, f"without the three calls it ends with {failed}")


def worker_says(worker, config, calls):
    done = subprocess.run([worker, "--config", config, "--check"], capture_output=True, text=True, check=False, timeout=patience(60),
                          preexec_fn=lambda: put_on(calls))
    lines = [line for line in done.stdout.splitlines() if line.startswith("files: ")]
    expect(done.returncode == 0 and len(lines) == 1, f"{done.returncode}: {done.stdout} {done.stderr}")
    return lines[0]


def worker_sees(unit, worker, config, syscalls):
    held = worker_says(worker, config, [syscalls[name] for name in allowed_by(unit) if name in syscalls])
    expect("held to [files] roots by Landlock" in held, held)
    free = worker_says(worker, config, [number for name, number in syscalls.items() if name not in CALLS])
    expect("does not hold ranks" in free and "SystemCallFilter" in free, free)


def main():
    unit, worker, config = sys.argv[1:]
    results, syscalls = Results("unit filter"), numbers()
    names = ["ranks are held under the unit's filter", "the worker says whether they are"]
    reason = ""
    if not set(CALLS) <= set(syscalls):
        reason = "the kernel's headers here do not number Landlock's calls (apt-get install linux-libc-dev)"
    elif LIBC.syscall(syscalls[CALLS[0]], None, 0, VERSION_FLAG) < 1:
        reason = f"this kernel has no Landlock: {os.strerror(ctypes.get_errno())}"
    if reason:
        for name in names:
            results.skip(name, reason)
        results.exit()
    results.run(names[0], restricts, unit, syscalls)
    results.run(names[1], worker_sees, unit, worker, config, syscalls)
    results.exit()


if __name__ == "__main__":
    main()
