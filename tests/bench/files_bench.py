#!/usr/bin/env python3
"""Jobs whose checkpoints lie on their nodes' disks: what is lost, what is carried, what it costs. docs/inside/local-storage.md

usage: files_bench.py --bin FOLDER [--only PART]... [--count N] [--losses N] [--seed S] [--json FILE]

Parts, all of them without --only, each with a size of its own without --count:
  losses   nodes that are lost with their disks (--losses)         killed   all processes killed at once
  sent     data that a client sends, while something is killed     altered  bytes that change where they lie, and forgeries
  plans    what another plan brings                                fast     saves that come faster than copies
  copies   how long a save takes, and what copies move (--state-mb)
  links    copies beside a job that is bound by its links (--mbit)
  curve    one job through one fault after another                 share    jobs that have a common folder
  coordinators   taken over by a backup, or begun empty and the job adopted
Parts that count bytes need root, nft, tc and ip. Status 1: something was lost, altered or left over; a time never makes it.
"""
import argparse
import importlib
import json
import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "integration"), os.path.join(ROOT, "deploy", "demo")]

# Where each part is: function NAME_part(arguments) of files_MODULE.py. Its results have `correct`.
PARTS = {"losses": "losses", "killed": "killed", "sent": "sent", "altered": "altered", "plans": "plans", "fast": "fast",
         "copies": "copies", "links": "links", "curve": "curve", "share": "share",
         "coordinators": "coordinators"}


def part(name):
    return getattr(importlib.import_module(f"files_{PARTS[name]}"), f"{name}_part")


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cache", help="not needed here")
    parser.add_argument("--work", default=tempfile.gettempdir(), help="not needed here")
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be given again")
    parser.add_argument("--count", type=int, help="of kills, saves, plans, faults ... of each part that runs, but losses")
    parser.add_argument("--losses", type=int, default=20)
    parser.add_argument("--state-mb", type=int, default=60, help="of copies: the state of the model")
    parser.add_argument("--mbit", type=int, default=200, help="of links: what each has a second")
    parser.add_argument("--mib", type=int, default=48, help="of sent: the data")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    os.environ["MOTLEY_BIN"] = arguments.bin   # before the parts are imported, which ask for it
    results = {}
    for name in arguments.only or PARTS:
        print(f"{name}:", flush=True)
        begin = time.monotonic()
        results[name] = part(name)(arguments)
        results[name]["part_seconds"] = round(time.monotonic() - begin, 1)
        if arguments.json:   # after each part: a later one may not end
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=1)
    broken = [name for name, result in results.items() if not result["correct"]]
    if broken:
        print(f"not as it should be: {', '.join(broken)}", flush=True)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
