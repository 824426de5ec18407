#!/usr/bin/env python3
"""Floors: a file includes files of its own folder and of folders of its tree that stand before it in this list.

docs/inside/design.md says what each folder is; check_includes.sh holds the rules between the trees. Prints "ok NAME" or "FAIL NAME: why"
for each folder; `--arrows` prints who includes whom.
"""
import collections
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLOORS = {
    "common": ["base", "tls", "data", "device", "model", "program", "weights", "checkpoint", "job", "inputs", "session", "metrics", "rpc", "wire"],
    "planner": ["util", "cluster", "plan", "simulator", "costs", "setting", "view", "scheduling", "lowering", "memory", "graph", "split", "groups", "pricing",
                "search", "published", "strategies", "strategies/megatron", "strategies/hexiscale", "strategies/poplar", "strategies/baton",
                "strategies/zorse", "strategies/auto", "answers", "live"],
    "coordinator": ["page/web", "client", "state", "store", "core", "epoch", "members", "periodic", "rpc", "page", "."],
    "worker": ["records", "engine/base", "engine/kernels", "engine/lanes", "engine/nccl", "engine/operators", "engine/transport", "engine/device", "engine/model",
               "engine/profiler", "engine", "kernel_compiler", "files", "daemon",
               "rank"],
}
# Folders that nobody of their tree includes, wherever they stand: programs of their own.
APART = {"coordinator": {"client"}}


def arrows(tree):
    """{folder: {folder that it includes: one file that does}}; every folder with sources is a key."""
    include = re.compile(rf'^\s*#\s*include\s+"{tree}/([^"]+)"', re.MULTILINE)
    found = collections.defaultdict(dict)
    for top, _, names in os.walk(os.path.join(ROOT, tree)):
        folder = os.path.relpath(top, os.path.join(ROOT, tree)).replace(os.sep, "/")
        for name in sorted(names):
            if not name.endswith((".h", ".cc")):
                continue
            includes = found[folder]
            with open(os.path.join(top, name), encoding="utf-8") as file:
                for path in include.findall(file.read()):
                    target = os.path.dirname(path) or "."
                    if target != folder:
                        includes.setdefault(target, f"{os.path.normpath(f'{tree}/{folder}/{name}')} includes {tree}/{path}")
    return found


def check(tree):
    """Whether all is well; prints a line for each folder."""
    failed = False
    floors, found = FLOORS[tree], arrows(tree)
    for folder in sorted(found):
        if folder not in floors:
            wrong = [f"the folder is not in the list of {os.path.relpath(__file__, ROOT)}"]
        else:
            allowed = set(floors[:floors.index(folder)]) - APART.get(tree, set())
            wrong = [where for target, where in sorted(found[folder].items()) if target not in allowed]
        failed |= bool(wrong)
        name = os.path.normpath(f"{tree}/{folder}")
        print(f"FAIL floors: {name}: {'; '.join(wrong)}" if wrong else f"ok floors: {name}")
    for folder in sorted(set(floors) - set(found)):
        failed = True
        print(f"FAIL floors: {tree}/{folder}: there is no such folder any more")
    return not failed


def check_road():
    """The road of docs/inside/planner.md names folders of the planner in their order here."""
    with open(os.path.join(ROOT, "docs/inside/planner.md"), encoding="utf-8") as file:
        road = next((line.strip().split(" ─> ") for line in file if line.startswith("    plan ─> ")), [])
    floors = FLOORS["planner"]
    wrong = [room for room in road if room not in floors]
    right = len(road) > 5 and not wrong and road == sorted(road, key=floors.index)
    print("ok floors: the road of planner.md" if right else f"FAIL floors: the road of planner.md: {' '.join(road)} is not in the order of {' '.join(floors)}")
    return right


def main():
    if "--arrows" in sys.argv[1:]:
        for tree, floors in FLOORS.items():
            found = arrows(tree)
            for folder in sorted(found, key=floors.index):
                print(f"{os.path.normpath(f'{tree}/{folder}')}: {' '.join(sorted(found[folder], key=floors.index))}")
            print(f"{tree}: {sum(map(len, found.values()))} arrows")
        return
    sys.exit(0 if all([*(check(tree) for tree in FLOORS), check_road()]) else 1)


if __name__ == "__main__":
    main()
