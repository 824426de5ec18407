#!/usr/bin/env python3
"""Faults at length: kills, partitions, a node that comes and goes, newcomers of every bad kind, strangers, corruptions; what was
lost, and how soon training goes on. docs/use/faults.md

usage: faults_bench.py --bin FOLDER [--json FILE] [--minutes N] [--seed S] [--only PART,PART] [--without-folder]

At most --minutes (60) long: the numbers of kills, cuts and newcomers shrink with it. Partitions need root, nft and ip, and are left
out by name elsewhere.
"""
import argparse
import json
import os
import random
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

FULL_MINUTES = 60


def kills_part(share, seed):
    from faults_kills import kills
    # Three clusters at once: 67 kills each, twenty seconds apart, are 25 minutes.
    return kills(max(3, round(200 * share)), seed)


def partitions_part(share, _seed):
    import netns
    from faults_partitions import CASES, partitions
    reason = netns.why_not()
    if reason:
        print(f"left out: partitions: {reason}", flush=True)
        return [], []
    return partitions(max(12, 60 * share), CASES)


def flapping_part(share, _seed):
    from faults_flapping import flapping
    return flapping(max(15, 60 * share))


def newcomers_part(share, _seed):
    import netns
    from faults_newcomers import newcomers
    reason = netns.why_not()
    if reason:
        print(f"left out: newcomers: {reason}", flush=True)
        return [], []
    return newcomers(max(2, round(50 * share)))


def members_part(share, _seed):
    import netns
    from faults_members import membership
    reason = netns.why_not()
    if reason:
        print(f"left out: members: {reason}", flush=True)
        return [], []
    return membership(max(1, round(10 * share)))


def take_overs_part(share, seed):
    import netns
    from faults_take_over import take_overs
    reason = netns.why_not()
    if reason:
        print(f"left out: take-overs: {reason}", flush=True)
        return [], []
    rows, problems = take_overs(max(2, round(200 * share)), 2, seed)
    more, wrong = take_overs(max(2, round(10 * share)), 60, seed)
    return rows + more, problems + wrong


def strangers_part(share, _seed):
    import netns
    from faults_dials import dials
    from faults_joiners import joiners
    from faults_strangers import strangers
    seconds = max(30, 300 * share)
    rows, problems = strangers(seconds)
    if netns.why_not():
        print(f"left out: strangers that join: {netns.why_not()}", flush=True)
        return rows, problems
    for others in (joiners, dials):
        more, wrong = others(seconds)
        rows, problems = rows + more, problems + wrong
    return rows, problems


def corruptions_part(share, seed):
    from faults_corruptions import corruptions
    return corruptions(10_000 * share, seed)


def curve_part(share, _seed):
    from faults_curve import curve
    if os.geteuid() != 0:
        print("left out: curve: mounts need root", flush=True)
        return [], []
    return curve(share)


def figures_part(_share, _seed):
    from faults_figures import figures
    return figures()


PARTS = {"kills": kills_part, "partitions": partitions_part, "flapping": flapping_part, "newcomers": newcomers_part,
         "members": members_part, "take-overs": take_overs_part, "strangers": strangers_part,
         "corruptions": corruptions_part, "curve": curve_part, "figures": figures_part}


BY_NAME_ONLY = {"take-overs"}   # an hour of its own
WITHOUT_FOLDER = ("kills", "partitions", "flapping", "newcomers", "members", "take-overs")   # the others have no job, or are about its folder


def as_text(row):
    value = "none" if row["value"] is None else f"{row['value']:g}" if isinstance(row["value"], int) else f"{row['value']:.2f}"
    goal = "" if row["goal"] is None else f" goal {row['goal']:g} {'met' if row['met'] else 'NOT MET'}"
    return f"{row['name']:<78} {value:>8} {row['unit']:<10}{goal}"


def main():
    parser = argparse.ArgumentParser(description="faults at length")
    for name in ("bin", "cache", "work"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--json", help="file for the rows")
    parser.add_argument("--minutes", type=float, default=FULL_MINUTES)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", default=",".join(name for name in PARTS if name not in BY_NAME_ONLY), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--without-folder", action="store_true", help=f"checkpoints on the nodes' disks: of {', '.join(WITHOUT_FOLDER)}")
    arguments = parser.parse_args()
    if arguments.bin:
        os.environ["MOTLEY_BIN"] = arguments.bin   # read by the harness, imported by the parts
    if arguments.without_folder:
        import faults_common
        faults_common.COMMON_FOLDER = False
    seed = random.SystemRandom().randrange(1 << 30) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    rows, problems = [], []
    for name in arguments.only.split(","):
        if arguments.without_folder and name not in WITHOUT_FOLDER:
            continue
        begin = time.monotonic()
        more, wrong = PARTS[name](min(1.0, arguments.minutes / FULL_MINUTES), seed)
        for one in more:
            print(as_text(one), flush=True)
        for problem in wrong:
            print(f"    {problem}", flush=True)
        print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
        rows, problems = rows + more, problems + wrong
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"seed": seed, "rows": rows, "problems": problems}, file, indent=2)
            file.write("\n")
    return 0 if all(one["met"] in (None, True) for one in rows) and not problems else 1


if __name__ == "__main__":
    sys.exit(main())
