"""Damage to the coordinator's store and to checkpoints, in process: the unit tests that look for other content without a word, with other seeds."""
import os
import re
import subprocess

from harness import BIN
from faults_common import Progress, row

# (what, program, test, damages that one run makes)
TESTS = [("a store", "coordinator_tests", "DamageTest.NoFlippedBitGivesOtherContentWithoutAWord", 2400),
         ("a checkpoint", "common_tests", "CheckpointDamageTest.NothingThatIsDoneToItIsReadAsSomethingElse", 2600)]


def corruptions(count, seed):
    """Rows, and what went wrong in words."""
    rows, problems = [], []
    for what, program, test, flips in TESTS:
        path = os.path.join(BIN, program)
        if not os.path.exists(path):
            print(f"left out: corruptions of {what}: no {path}", flush=True)
            continue
        runs, wrong, said = max(1, round(count / len(TESTS) / flips)), 0, 0
        progress = Progress(f"corruptions of {what}", runs)
        for i in range(runs):
            done = subprocess.run([path, f"--gtest_filter={test}"], capture_output=True, text=True, check=False,
                                  env={**os.environ, "MOTLEY_SEED": str(seed % (1 << 30) + i)})
            found = re.search(r"(\d+) said", done.stdout)
            if done.returncode != 0 or not found:
                wrong += 1
                problems.append(f"corruptions of {what}, seed {seed + i}: {done.stdout[-600:]}")
            progress.add()
            said += int(found.group(1)) if found else 0
        rows += [row(f"corruptions of {what}", runs * flips, "corruptions", None, met=True),
                 row(f"corruptions of {what} that were said, others read as written", said, "corruptions", None, met=said > 0),
                 row(f"corruptions of {what}: runs with other content, or less, without a word", wrong, "runs", 0)]
    return rows, problems
