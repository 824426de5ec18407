"""A stopped job's files change where they lie, on one of two disks that have all, and checkpoints are forged: what was used.

One job is stopped and goes on for every trial. At the end its state is compared, digest by digest, with that of the same job
undisturbed: a byte that was used once shows there, however small the number that it was in.
"""
import filecmp
import hashlib
import json
import os
import random
import re
import shutil

from check_local_storage import DEVICE, LocalCluster, wait_until_safe
from files_common import checkpoints_folder, digests_of, manifest_of, place_of, say, step_of
from harness import published_checkpoints, state_of

NODES = ("n1", "n2")
STEPS_OF_A_TRIAL = 4
EXPORTS = 0.4   # of the trials; the others go on with the job


def sections(cluster, trials, **changes):
    # Stopped jobs save; beside that a checkpoint in most trials, so that there is one before the newest.
    return cluster.sections(**{"training__steps": 12 + 8 * trials, "checkpoint__interval": 3, **changes})


def flip(path, draw):
    """A bit of a byte; where."""
    at = draw.randrange(os.path.getsize(path))
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ (1 << draw.randrange(8))]))
    return at


def put_back(kept, path):
    """What was altered and is there still: damage of both disks is another trial. Whether it had been mended or deleted."""
    if not os.path.exists(path):
        return True
    for name in os.listdir(kept):
        if not filecmp.cmp(os.path.join(kept, name), os.path.join(path, name), shallow=False):
            shutil.copy(os.path.join(kept, name), os.path.join(path, name))
            return False
    return True


def sign(manifest):
    """With a digest that fits, as whoever forges one would make it."""
    manifest.pop("manifest_sha256")
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    manifest["manifest_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return manifest


class Trials:
    def __init__(self, cluster, job, draw):
        self.cluster, self.job, self.draw, self.rows = cluster, job, draw, []
        self.stop()

    def folder(self, node):
        return checkpoints_folder(self.cluster, node, self.job)

    def stop(self):
        self.cluster.motley("stop", self.job)
        self.cluster.wait_for_state(self.job, "STOPPED", 60)
        self.name = wait_until_safe(self.cluster, self.job)

    def go_on(self):
        """A few steps, and a stop; the steps from which it went on, and why it ended if it did not get so far."""
        plans, wanted = len(self.cluster.event_messages("plan", self.job)), step_of(self.name) + STEPS_OF_A_TRIAL
        self.cluster.motley("resume", self.job)

        def is_there():
            job = self.cluster.job(self.job)
            return job if int(job.get("step", 0)) >= wanted or state_of(job) == "FAILED" else None

        job = self.cluster.wait_for(is_there, 90, f"step {wanted} of {self.job}", poll_seconds=0.05)
        said = self.cluster.event_messages("plan", self.job)[plans:]
        from_steps = [int(found.group(1)) if (found := re.search(r"from step (\d+)", message)) else 0 for message in said]
        if state_of(job) == "FAILED":
            return from_steps, job["reason"]
        self.stop()
        return from_steps, ""

    def skipped(self):
        return len(self.cluster.event_messages("checkpoint_skipped", self.job))

    def is_exported_whole(self, kept):
        """All of the checkpoint, as it comes through the coordinator, has the bytes from before."""
        out = self.cluster.path("raw")
        done = self.cluster.run_motley("export", self.job, "--raw", "--out", out)
        if done.returncode != 0:
            raise SystemExit(f"export: {done.returncode}: {done.stderr}")
        exported = os.path.join(out, self.name)
        names = [name for name in os.listdir(kept) if name != "mark"]
        same = os.path.isdir(exported) and filecmp.cmpfiles(kept, exported, names, shallow=False)[1:] == ([], [])
        shutil.rmtree(out)
        return same

    def keep(self, node, name):
        """A copy of what one disk has of a checkpoint."""
        kept = self.cluster.path("kept")
        shutil.rmtree(kept, ignore_errors=True)
        return shutil.copytree(os.path.join(self.folder(node), name), kept)

    def altered(self, number):
        """One byte of one file on one disk."""
        newest, node = self.name, self.draw.choice(NODES)
        exports = self.draw.random() < EXPORTS
        # Most of the newest one, which is read; exports read no other.
        name = newest if exports or self.draw.random() < 0.8 else self.draw.choice(
            [of for _, _, of in published_checkpoints(self.folder(node))])
        folder = os.path.join(self.folder(node), name)
        kept = self.keep(node, name)
        names = sorted(os.listdir(folder))
        path = os.path.join(folder, self.draw.choices(names, [3 if file.endswith(".bin") else 1 for file in names])[0])
        at, skipped = flip(path, self.draw), self.skipped()
        if exports:
            well = self.is_exported_whole(kept)
        else:
            from_steps, ended = self.go_on()
            well = set(from_steps) == {step_of(newest)} and not ended
        mended = put_back(kept, folder)
        self.rows.append(say(flip=number + 1, of=f"{node}/{name}/{os.path.basename(path)}", at=at,
                             used_by="export" if exports else "resume", well=well, skipped=self.skipped() - skipped,
                             mended_or_gone=mended))

    def forged(self, number):
        """A checkpoint that says it is newer, or other contents under the newest one's name."""
        how, node = FORGERIES[number % len(FORGERIES)], self.draw.choice(NODES)
        newest, skipped = self.name, self.skipped()
        folder, kept = os.path.join(self.folder(node), newest), self.keep(node, newest)
        made = how(self, folder)
        from_steps, ended = self.go_on()
        for path in made:
            shutil.rmtree(path, ignore_errors=True)
        put_back(kept, folder)
        used = [step for step in from_steps if step != step_of(newest)]
        self.rows.append(say(forgery=number + 1, how=how.__name__, newest=newest, went_on_from=from_steps, used=len(used),
                             skipped=self.skipped() - skipped, ended=ended))
        if ended:
            self.go_on()   # without what was forged


# ---- forgeries, some of them of the newest one's folder on one disk: each returns folders that are to go afterwards ----
def another_name(trials, _folder):
    """The newest one's folder once more, under the name of a later step, on both disks."""
    made = []
    for node in NODES:
        generation, step = place_of(trials.name)
        made.append(os.path.join(trials.folder(node), f"step-{step + 50:08d}-gen-{generation}"))
        shutil.copytree(os.path.join(trials.folder(node), trials.name), made[-1])
    return made


def later_step(trials, folder):
    """That, with a manifest that says the step, and the mark of the one that it was made of, on both disks."""
    made = another_name(trials, folder)
    for path in made:
        rewrite(path, step=step_of(os.path.basename(path)))
    return made


def later_generation(trials, _folder):
    """A manifest of a generation that never was, and a mark made up, on both disks."""
    made = []
    generation, step = place_of(trials.name)
    for node in NODES:
        made.append(os.path.join(trials.folder(node), f"step-{step + 7:08d}-gen-{generation + 5}"))
        shutil.copytree(os.path.join(trials.folder(node), trials.name), made[-1])
        rewrite(made[-1], step=step + 7, epoch=generation + 5)
        write_mark(made[-1], f"{trials.draw.getrandbits(128):032x}")
    return made


def other_contents(trials, path):
    """On one disk the newest one's files change, and its manifest with them, so that the two fit; the mark stays."""
    name = trials.draw.choice([name for name in os.listdir(path) if name.endswith(".bin")])
    flip(os.path.join(path, name), trials.draw)
    block_bytes = 4 << 20
    with open(os.path.join(path, name), "rb") as file:
        digests = "".join(hashlib.sha256(block).hexdigest() for block in iter(lambda: file.read(block_bytes), b""))
    files = manifest_of(path)["files"]
    next(entry for entry in files if entry["name"] == name)["blocks_sha256"] = digests
    rewrite(path, files=files)
    return []


def other_mark(trials, path):
    """On one disk the newest one's mark is another one."""
    write_mark(path, f"{trials.draw.getrandbits(128):032x}")
    return []


FORGERIES = (another_name, later_step, later_generation, other_contents, other_mark)


def rewrite(path, **changes):
    manifest = sign({**manifest_of(path), **changes})
    with open(os.path.join(path, "manifest.json"), "w", encoding="utf-8") as file:
        json.dump(manifest, file, sort_keys=True)


def write_mark(path, mark):
    with open(os.path.join(path, "mark"), "w", encoding="utf-8") as file:
        file.write(mark + "\n")


def measure(count, draw):
    """Rows of flips and of forgeries, and whether the state at the end is that of the job undisturbed."""
    with LocalCluster() as cluster:
        cluster.start({node: [DEVICE] for node in NODES})
        changes = sections(cluster, 2 * count)
        steps = changes["training"]["steps"]
        cluster.submit_job("undisturbed", changes)
        cluster.wait_for_state("undisturbed", "SUCCEEDED", 600)
        wanted = digests_of(cluster, NODES, "undisturbed", steps)
        cluster.submit_job("altered", changes)
        cluster.wait_for_step("altered", 5)
        trials = Trials(cluster, "altered", draw)
        for number in range(count):
            trials.altered(number)
        for number in range(count):
            trials.forged(number)
        cluster.motley("resume", "altered")
        cluster.wait_for_state("altered", "SUCCEEDED", 600)
        return trials.rows, wanted is not None and digests_of(cluster, NODES, "altered", steps) == wanted


def altered_part(arguments):
    count = arguments.count or 50
    rows, same = measure(count, random.Random(arguments.seed))
    flips, forgeries = [row for row in rows if "flip" in row], [row for row in rows if "forgery" in row]
    wrong = sum(not row["well"] for row in flips)
    skipped, used = sum(row["skipped"] for row in rows), sum(row["used"] for row in forgeries)
    ended = sum(bool(row["ended"]) for row in forgeries)
    print(f"altered: {len(flips)} bytes flipped on one of two disks, {wrong} times exported or gone on from otherwise than "
          f"before (goal 0), checkpoints skipped beside a whole copy {skipped} (goal 0); {len(forgeries)} forgeries, {used} used "
          f"(goal 0), {ended} of which ended the job; the state at the end {'equals' if same else 'DIFFERS FROM'} that of the "
          f"job undisturbed, bit by bit", flush=True)
    return {"flips": len(flips), "wrong_uses": wrong, "skipped": skipped, "forgeries": len(forgeries), "forgeries_used": used,
            "forgeries_that_ended_the_job": ended,
            "same_state": same, "rows": rows, "correct": same and not wrong and not skipped and not used}
