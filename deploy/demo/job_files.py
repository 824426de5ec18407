#!/usr/bin/env python3
"""What jobs write in a folder, by its names: checkpoints, whole or begun, and step records. All else there is the user's.

usage: job_files.py list|delete FOLDER
"""
import os
import re
import shutil
import sys

# docs/use/checkpoints.md, docs/use/step-records.md
CHECKPOINT = re.compile(r"step-\d{8,}(-gen-\d+(-job-[0-9a-f]{32})?)?|\.tmp-step-\d+-(gen|epoch)-\d+.*")
RECORDS = re.compile(r"tb/events\.out\.tfevents\.\d+\.motley|steps/generation-\d+\.(csv|jsonl)|.*/\.token-[^/]*")


def size(folder):
    sizes = [os.path.getsize(os.path.join(top, name)) for top, _, names in os.walk(folder) for name in names]
    return f"{sum(sizes) / 1e6:.1f} MB"


def checkpoints_in(folder):
    """Folders of checkpoints, whole or begun. A link to one is the user's."""
    paths = [os.path.join(top, name) for top, folders, _ in os.walk(folder) for name in folders if CHECKPOINT.fullmatch(name)]
    return [path for path in paths if not os.path.islink(path)
            and (os.path.basename(path).startswith(".") or os.path.exists(os.path.join(path, "manifest.json")))]


def delete_checkpoints(folder):
    """Removes what jobs wrote there, and says how many checkpoints that were."""
    held, found = size(folder), checkpoints_in(folder)
    for path in found:
        if os.path.isdir(path):   # not gone with another around it
            shutil.rmtree(path)
    for top, _, files in os.walk(folder):
        for name in files:
            if RECORDS.fullmatch(f"{os.path.basename(top)}/{name}"):
                os.remove(os.path.join(top, name))
    print(f"  deleted {len(found)} checkpoint{'' if len(found) == 1 else 's'} in {folder}: {held} before, {size(folder)} now")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("list", "delete"):
        print(__doc__, file=sys.stderr)
        return 64
    if sys.argv[1] == "delete":
        delete_checkpoints(sys.argv[2])
    else:
        print("\n".join(checkpoints_in(sys.argv[2])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
