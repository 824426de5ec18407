#!/usr/bin/env python3
"""The planner's floors: a file includes files of its own folder and of folders that stand above it in this list, none below.

docs/design.md says what each folder is. Prints "ok NAME" or "FAIL NAME: why" for each folder; `--arrows` prints who includes whom.
"""
import collections
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLOORS = ["util", "cluster", "cluster/presets", "plan", "simulator", "costs", "setting", "lowering", "split", "groups", "pricing", "search",
          "strategies", "strategies/megatron", "strategies/hexiscale", "strategies/poplar", "strategies/baton", "strategies/zorse",
          "strategies/auto", "answers",
          "live"]
INCLUDE = re.compile(r'^\s*#\s*include\s+"planner/([^"]+)"', re.MULTILINE)


def arrows():
    """{folder: {folder that it includes: one file that does}}; every folder with sources is a key."""
    found = collections.defaultdict(dict)
    for top, _, names in os.walk(os.path.join(ROOT, "planner")):
        folder = os.path.relpath(top, os.path.join(ROOT, "planner")).replace(os.sep, "/")
        for name in sorted(names):
            if not name.endswith((".h", ".cc")):
                continue
            includes = found[folder]
            with open(os.path.join(top, name), encoding="utf-8") as file:
                for path in INCLUDE.findall(file.read()):
                    if os.path.dirname(path) != folder:
                        includes.setdefault(os.path.dirname(path), f"planner/{folder}/{name} includes planner/{path}")
    return found


def main():
    failed = False
    found = arrows()
    if "--arrows" in sys.argv[1:]:
        for folder in sorted(found, key=FLOORS.index):
            print(f"{folder}: {' '.join(sorted(found[folder], key=FLOORS.index))}")
        print(f"{sum(map(len, found.values()))} arrows")
        return
    for folder in sorted(found):
        if folder not in FLOORS:
            wrong = [f"the folder is not in the list of {os.path.relpath(__file__, ROOT)}"]
        else:
            allowed = set(FLOORS[:FLOORS.index(folder)])
            wrong = [where for target, where in sorted(found[folder].items()) if target not in allowed]
        failed |= bool(wrong)
        print(f"FAIL floors: planner/{folder}: {'; '.join(wrong)}" if wrong else f"ok floors: planner/{folder}")
    for folder in set(FLOORS) - set(found):
        failed = True
        print(f"FAIL floors: planner/{folder}: there is no such folder any more")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
