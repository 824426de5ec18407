"""Two clusters that know nothing of each other, one share, one job id: each trains its own job, and neither deletes what the other
saved."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

from harness import TestCluster, expect, job_sections, published_checkpoints, state_of
from faults_common import rank_of

# A step of two takes a tenth of a second on any host, so that there is a middle of a job to act in.
DEVICE = {"kind": "emulated", "model": "brisk", "flops_per_second": 2e9, "memory_bytes": 1 << 30, "link_bytes_per_second": 1e9}
NODES = {"n1": [DEVICE], "n2": [DEVICE]}
INTERVAL, KEPT = 3, 2
# Layouts round their sums otherwise, and hundreds of steps at a high learning rate make more of it than this.
SAME = 1e-12
KINDS = ("rank", "worker")


class SharingCluster(TestCluster):
    """Its jobs "shared" keep their checkpoints in a folder that is another cluster's, too."""

    def __init__(self, share, rate):
        super().__init__()
        self.share, self.rate = share, rate
        self.file_roots.append(share)
        self.random = random.Random(rate)

    def checkpoints(self, job_id=""):
        return os.path.join(self.share if job_id == "shared" else os.path.join(self.top, "checkpoints"), job_id).rstrip("/")

    def sections(self, steps, folder):
        return job_sections(self, training__steps=steps, training__dtype="float64", optimizer__lr=self.rate, lr_scheduler__decay_type="constant",
                            checkpoint__folder=folder, checkpoint__interval=0, checkpoint__interval_minutes=0,
                            checkpoint__keep_latest_k=KEPT)

    def losses(self, job_id):
        return [record["loss"] for record in self.steps(job_id)]

    def kill_one(self):
        """Something of it, at any moment of a save's life."""
        node, kind = self.random.choice(sorted(NODES)), self.random.choice(KINDS)
        if kind == "rank":
            try:
                os.kill(rank_of(self, node), signal.SIGKILL)
            except (AssertionError, ProcessLookupError):
                pass  # it is being started
        else:
            self.workers[node].kill()
            self.workers[node].process.wait()
            self.start_worker(node, NODES[node])

    def saved(self):
        """The folders that it was told of, the newest last."""
        words = [message.split(" saved in ")[1] for message in self.event_messages("checkpoint", "shared")]
        return [word.rsplit(": ", 1)[0] for word in words]


def both(clusters, act):
    for cluster in clusters:
        act(cluster)


def begin(clusters, more):
    """In one empty folder: neither has saved when the other begins. Then each goes on for so many steps; how many these are in all."""
    both(clusters, lambda c: c.start(NODES))
    both(clusters, lambda c: c.submit_job("shared", c.sections(1_000_000, c.share)))
    both(clusters, lambda c: c.wait_for_step("shared", 2))
    both(clusters, lambda c: c.run_motley("stop", "shared"))
    both(clusters, lambda c: c.wait_for_state("shared", "STOPPED", 30))
    steps = max(int(cluster.job("shared")["step"]) for cluster in clusters) + more
    both(clusters, lambda c: c.motley("resume", "shared", "--set", f"checkpoint.interval={INTERVAL}", "--set", f"training.steps={steps}"))
    return steps


def expect_its_own(cluster, steps):
    cluster.wait_for_state("alone", "SUCCEEDED", 60 + steps)
    alone, curve = cluster.losses("alone"), cluster.losses("shared")
    expect(len(curve) == len(alone) == steps, f"{len(curve)} and {len(alone)} of {steps} steps are known")
    worst = max(abs(a - b) / b for a, b in zip(curve, alone))
    expect(worst <= SAME, f"the loss curve differs by {worst:.2e} from that of the same job alone")
    gone = [message for message in cluster.event_messages("checkpoint_skipped", "shared") if "is gone" in message]
    expect(not gone, f"the other one deleted what it saved: {gone}")
    missing = [folder for folder in cluster.saved()[-KEPT:] if not os.path.isfile(os.path.join(folder, "manifest.json"))]
    expect(not missing, f"not there any more: {missing}")


def saved_in(cluster):
    return sorted(name for name in os.listdir(cluster.checkpoints("shared")) if name.startswith("step-"))


def maker(folder):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        return json.load(file)["job_uid"]


def taken_by_its_id(cluster):
    """Who names the job, and not the folder, gets what that job made: not the other's, and not what was renamed to the highest number."""
    folder, uid, own = cluster.checkpoints("shared"), cluster.job("shared")["uid"], cluster.saved()[-1]
    highest = max(generation for generation, _, _ in published_checkpoints(folder)) + 100
    copy = os.path.join(folder, f"{os.path.basename(own).split('-gen-')[0]}-gen-{highest}")
    shutil.copytree(own, copy)
    try:
        out = os.path.join(cluster.top, "exported")
        exported = cluster.motley("export", "shared", "--out", out)
        expect(maker(exported["checkpoint"]) == uid and exported["checkpoint"] != copy, f"{exported} is not of {uid}")
        named = cluster.run_motley("export", "--checkpoint", copy, "--out", out + "-copy")
        expect(named.returncode == 65 and "was renamed" in named.stderr, f"status {named.returncode}: {named.stderr}")
        sections = cluster.sections(1, cluster.checkpoints())
        sections["checkpoint"]["initial"] = "shared"
        cluster.submit_job("heir", sections)
        cluster.wait_for_state("heir", "SUCCEEDED", 60)
        begun = [message.partition("from the weights of ")[2] for message in cluster.event_messages("plan", "heir")]
        places = {place.split("; ")[0] for place in begun if place}
        expect(places and copy not in places and {maker(place) for place in places} == {uid}, f"heir began with {places}, {uid} was named")
    finally:
        shutil.rmtree(copy)


def run_line(text):
    """What a person pastes: the line that writes the file `adopt`."""
    line = re.search(r"echo [0-9a-f ]+ >'[^']*/adopt'", text)
    expect(line, f"no line to paste: {text}")
    subprocess.run(["sh", "-c", line[0]], check=True)


def refused_later(cluster, others_uid, steps):
    """A third job of the id, which has not begun with them, and of which nobody said what it goes on from."""
    uid, adopt = cluster.job("shared")["uid"], os.path.join(cluster.checkpoints("shared"), "adopt")
    deleted = cluster.run_motley("delete", "shared")
    expect(deleted.returncode == 0 and f"echo {uid} >" in deleted.stdout, f"{deleted.stdout} {deleted.stderr}")
    before = saved_in(cluster)
    cluster.submit_job("shared", cluster.sections(1_000_000, cluster.share))
    third = cluster.wait_for_state("shared", "FAILED", 60)
    for part in (f"job 'shared' (uid {uid}), newest step ", f"job 'shared' (uid {others_uid}), newest step ", "`motley delete shared`"):
        expect(part in third["reason"], f"{part!r} is not in {third['reason']!r}")
    expect(saved_in(cluster) == before, f"it changed what is there: {before}, {saved_in(cluster)}")
    refused = cluster.run_motley("export", "shared", "--out", os.path.join(cluster.top, "none"))
    expect(refused.returncode == 65 and others_uid in refused.stderr and "checkpoint.interval" not in refused.stderr, refused.stderr)
    with open(adopt, "w", encoding="utf-8") as file:
        file.write("nobody\n")
    cluster.run_motley("resume", "shared")   # it may hear of the refusal
    cluster.wait_for(lambda: state_of(cluster.job("shared")) == "FAILED" and f"{adopt} holds 'nobody'" in cluster.job("shared")["reason"],
                     60, "that what is in the file is said to be wrong")
    run_line(deleted.stdout)
    cluster.motley("resume", "shared")
    cluster.wait_for(lambda: int(cluster.job("shared")["step"]) > steps, 60, "a step after those that it adopted")
    expect(state_of(cluster.job("shared")) == "RUNNING", cluster.job("shared")["reason"])
    used_up(cluster, adopt, third["uid"], steps)


def used_up(cluster, adopt, uid, steps):
    """By the job that did what it says: it goes on without, though it has not saved yet; the next one of the id does not."""
    cluster.wait_for(lambda: os.path.exists(f"{adopt}.done-{uid}") and not os.path.exists(adopt), 30, f"{adopt} to be put aside")
    generation = int(cluster.job("shared")["generation"])
    os.kill(rank_of(cluster, "n1"), signal.SIGKILL)
    cluster.wait_for(lambda: int(cluster.job("shared")["generation"]) > generation and state_of(cluster.job("shared")) == "RUNNING",
                     60, "the next generation")
    cluster.wait_for(lambda: int(cluster.job("shared")["step"]) > steps, 60, "a step of the next generation")
    begun = cluster.event_messages("plan", "shared")[-1]
    expect(f"; from step {steps} (" in begun and "this one adopts" in begun, begun)
    cluster.run_motley("stop", "shared")
    cluster.wait_for_state("shared", "STOPPED", 30)
    deleted = cluster.run_motley("delete", "shared")
    expect(f"echo {uid} >" in deleted.stdout, f"it has saved one of its own: {deleted.stdout} {deleted.stderr}")
    cluster.submit_job("shared", cluster.sections(1_000_000, cluster.share))
    fourth = cluster.wait_for_state("shared", "FAILED", 60)
    expect(f"(uid {uid}), newest step " in fourth["reason"], fourth["reason"])


def one_folder(kills=1, more=15):
    with TestCluster() as keeper:   # of the folder alone
        share = os.path.join(keeper.top, "share")
        os.makedirs(share)
        with SharingCluster(share, 1e-3) as one, SharingCluster(share, 2e-3) as other:
            clusters = (one, other)
            steps = begin(clusters, more)
            for number in range(kills):
                victim = clusters[number % 2]
                time.sleep(victim.random.uniform(0.2, 1.5))
                if state_of(victim.job("shared")) not in {"SUCCEEDED", "FAILED"}:
                    victim.kill_one()
            both(clusters, lambda c: c.wait_for_state("shared", "SUCCEEDED", 60 + steps))
            both(clusters, lambda c: c.submit_job("alone", c.sections(steps, c.checkpoints())))
            both(clusters, lambda c: expect_its_own(c, steps))
            expect(one.losses("shared") != other.losses("shared"), "the two jobs are one")
            uids = {cluster.job("shared")["uid"] for cluster in clusters}
            expect(len(uids) == 2, f"two jobs have one uid: {uids}")
            both(clusters, taken_by_its_id)
            refused_later(one, other.job("shared")["uid"], steps)
