#!/usr/bin/env python3
"""Jobs whose checkpoints lie on the disks of their nodes: each worker has a folder of its own, and nothing is common to them but the text.

docs/inside/local-storage.md. Prints a line for each check."""
import glob
import json
import os
import re
import shlex
import shutil

import local_mounts
from harness import Results, TestCluster, expect, job_sections, published_checkpoints
from local_adopt import adopts_what_a_lost_store_left
from local_exports import exports, exports_from_copies, exports_what_began_from_weights
from local_initial import begins_with_anothers_weights, begins_with_the_one_before_a_damaged_one

# A step takes a tenth of a second on any host, so that there is a middle of a job to act in.
DEVICE = {"kind": "emulated", "model": "brisk", "flops_per_second": 2e9, "memory_bytes": 1 << 30, "link_bytes_per_second": 1e9}
NODES = {"n1": [DEVICE], "n2": [DEVICE]}
STEPS = 40     # four seconds: time to act in
SAME = 1e-12   # of losses in float64: layouts round their sums otherwise


class LocalCluster(TestCluster):
    fstab = {}   # by node: a file that is /etc/fstab for its worker

    def placed(self, name, command):
        fstab = self.fstab.get(name.removeprefix("worker-"))
        if fstab is None:
            return super().placed(name, command)
        mounted = shlex.join(["mount", "--bind", fstab, "/etc/fstab"])
        return super().placed(name, ["unshare", "--mount", "sh", "-c", f"{mounted} && exec {shlex.join(command)}"])

    def disk(self, node):
        """[files] local of its worker."""
        return self.path(f"files-{node}")

    def held(self, node, job_id):
        """The checkpoint folders of the job on the node's disk, the newest last."""
        found = glob.glob(os.path.join(glob.escape(self.disk(node)), "jobs", f"{job_id}.*", "checkpoints"))
        expect(len(found) == 1, f"{job_id} on {node}: {found}")
        return [os.path.join(found[0], name) for _, _, name in published_checkpoints(found[0])]

    def sections(self, **changes):
        sections = job_sections(self, **{"training__dtype": "float64", "checkpoint__interval": 5, "checkpoint__interval_minutes": 0,
                                         **changes})
        del sections["checkpoint"]["folder"]   # that is all that a job says of it
        return sections

    def losses(self, job_id):
        return [record["loss"] for record in self.steps(job_id)]

    def stop_job(self, job_id, at_step):
        self.wait_for_step(job_id, at_step)
        self.motley("stop", job_id)
        return self.wait_for_state(job_id, "STOPPED", 60)

    def resumed_from(self, job_id):
        return self.event_messages("plan", job_id)[-1]


def saves_on_both(cluster):
    """Without copies: what each node writes is all that it has."""
    cluster.submit_job("alone", cluster.sections(training__steps=STEPS, checkpoint__copies=0))
    job = cluster.wait_for_state("alone", "SUCCEEDED")
    of = {node: cluster.held(node, "alone")[-1] for node in NODES}
    expect({os.path.basename(path) for path in of.values()} == {job["newest_checkpoint"]}, f"{of}, the job's newest is {job['newest_checkpoint']}")
    manifests, marks = set(), set()
    for node, path in of.items():
        with open(os.path.join(path, "manifest.json"), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(path, "mark"), encoding="utf-8") as file:
            marks.add(file.read())
        manifests.add(text)
        own = {file["name"] for file in json.loads(text)["files"] if file["node"] == node}
        there = {name for name in os.listdir(path) if name.endswith(".bin")}
        expect(own == there and len(own) == 1, f"{node} holds {there}, its own are {own}")
    expect(len(manifests) == 1 and len(marks) == 1, "manifests or marks differ")


def same_plan_again(cluster):
    cluster.submit_job("same", cluster.sections(training__steps=STEPS))
    stopped = cluster.stop_job("same", 8)
    cluster.motley("resume", "same")
    cluster.wait_for_state("same", "SUCCEEDED")
    expect(f"from step {stopped['step']}" in cluster.resumed_from("same"), cluster.resumed_from("same"))
    expect_same(cluster, "same")


def expect_same(cluster, job_id, as_job="alone"):
    alone, curve = cluster.losses(as_job), cluster.losses(job_id)
    expect(len(curve) == len(alone), f"{len(curve)} of {len(alone)} steps are known")
    worst = max(abs(a - b) / b for a, b in zip(curve, alone))
    expect(worst <= SAME, f"the loss curve differs by {worst:.2e} from that of the undisturbed job")


def another_plan(cluster):
    """Each node reads a part of what the other wrote."""
    cluster.submit_job("other", cluster.sections(training__steps=STEPS))
    cluster.stop_job("other", 8)
    cluster.motley("resume", "other", "--set", "planner.strategy=cephalo")
    cluster.wait_for_state("other", "SUCCEEDED")
    expect("cephalo" in cluster.resumed_from("other"), cluster.resumed_from("other"))
    expect_same(cluster, "other")


def newcomer(cluster):
    """It has nothing of the job, not even the manifest."""
    cluster.submit_job("grown", cluster.sections(training__steps=STEPS))
    cluster.stop_job("grown", 8)
    cluster.start_worker("n3", [DEVICE])
    try:
        cluster.wait_for_nodes(["n3"])
        cluster.motley("resume", "grown")
        cluster.wait_for_state("grown", "SUCCEEDED")
        expect("on 3 devices" in cluster.resumed_from("grown"), cluster.resumed_from("grown"))
        expect_same(cluster, "grown")
    finally:
        cluster.workers.pop("n3").stop()


def node_away(cluster):
    """Nobody else has its part: the job waits, says what lacks, and goes on when it is back."""
    cluster.submit_job("away", cluster.sections(training__steps=STEPS, checkpoint__copies=0))
    cluster.stop_job("away", 8)
    cluster.workers["n2"].stop()
    cluster.motley("resume", "away")
    wanted = "which lack rank-1.bin of node n2"
    said = set()

    def is_said():
        said.add(cluster.job("away").get("reason", ""))
        return any(wanted in reason for reason in said)

    try:
        cluster.wait_for(is_said, 30, "the missing part to be named")
    except Exception as error:
        raise AssertionError(f"{wanted} was not said, but {sorted(said)}") from error
    cluster.start_worker("n2", NODES["n2"])
    cluster.wait_for_state("away", "SUCCEEDED", 120)
    expect_same(cluster, "away")


def step_before(cluster, job_id):
    """Of the checkpoint before the newest."""
    return int(os.path.basename(cluster.held("n1", job_id)[-2]).split("-")[1])


def damaged(cluster):
    """A byte of the newest is flipped on the one disk that has it: whoever needs it finds it, its own rank or another node's."""
    for job, changes in (("flipped", []), ("flipped-moved", ["--set", "planner.strategy=cephalo"])):
        cluster.submit_job(job, cluster.sections(training__steps=STEPS, checkpoint__copies=0))
        cluster.stop_job(job, 8)
        before = step_before(cluster, job)
        for node in NODES:
            path = glob.glob(os.path.join(glob.escape(cluster.held(node, job)[-1]), "rank-*.bin"))[0]
            with open(path, "r+b") as file:
                file.seek(100)
                byte = file.read(1)
                file.seek(100)
                file.write(bytes([byte[0] ^ 1]))
        cluster.motley("resume", job, *changes)
        cluster.wait_for_state(job, "SUCCEEDED", 120)
        expect(f"from step {before} " in cluster.resumed_from(job), f"{job}: {cluster.resumed_from(job)}, not from {before}")
        skipped = cluster.event_messages("checkpoint_skipped", job)
        expect(skipped, f"{job}: nobody said that a checkpoint was skipped")
        expect_same(cluster, job)


def wait_until_safe(cluster, job_id):
    def safe():
        job = cluster.job(job_id)
        return job["safe_checkpoint"] if job["safe_checkpoint"] == job["newest_checkpoint"] else None

    return cluster.wait_for(safe, 60, f"{job_id}'s newest checkpoint to be safe")


def expect_full(cluster, job_id, nodes, name):
    for node in nodes:
        path = os.path.join(os.path.dirname(cluster.held(node, job_id)[-1]), name)
        with open(os.path.join(path, "manifest.json"), encoding="utf-8") as file:
            wanted = {entry["name"]: entry["bytes"] for entry in json.loads(file.read())["files"]}
        there = {entry: os.path.getsize(os.path.join(path, entry)) for entry in os.listdir(path) if entry.endswith(".bin")}
        expect(there == wanted, f"{node} has {there} of {wanted}")


def lose_disk(cluster, node):
    """The machine is gone with its disk; another one of its name comes."""
    cluster.workers[node].kill()
    cluster.workers[node].process.wait()

    def gone():
        shutil.rmtree(cluster.disk(node), ignore_errors=True)   # its ranks may die a moment later
        return not os.path.exists(cluster.disk(node))

    cluster.wait_for(gone, 30, f"the disk of {node} to be empty")


def copies(cluster):
    """Of two nodes each has all; old checkpoints go, and what is copied is what was written."""
    cluster.submit_job("copied", cluster.sections(training__steps=STEPS))
    cluster.wait_for_state("copied", "SUCCEEDED")
    name = wait_until_safe(cluster, "copied")
    expect_full(cluster, "copied", NODES, name)
    for node in NODES:
        cluster.wait_for(lambda node=node: len(cluster.held(node, "copied")) <= 2, 30, "old checkpoints to be deleted")
    said = cluster.run_motley("status", "copied").stdout
    expect(f"{name}, safe" in said, said)
    expect_same(cluster, "copied")


def disk_lost(cluster):
    """A node is killed with its disk: nothing that was safe is lost, and the new disk is given its copies again."""
    cluster.submit_job("lost", cluster.sections(training__steps=STEPS))
    stopped = cluster.stop_job("lost", 8)
    safe = wait_until_safe(cluster, "lost")
    lose_disk(cluster, "n2")
    cluster.start_worker("n2", NODES["n2"])
    cluster.wait_for_nodes(NODES)
    cluster.motley("resume", "lost")
    cluster.wait_for_state("lost", "SUCCEEDED", 120)
    expect(f"from step {stopped['step']}" in cluster.resumed_from("lost"), f"{cluster.resumed_from('lost')}, safe was {safe}")
    expect_same(cluster, "lost")
    expect_full(cluster, "lost", NODES, wait_until_safe(cluster, "lost"))


def disk_lost_while_it_trains(cluster):
    """It goes on from what is safe, or newer, on the node that is left, and takes the other one in when it is back."""
    steps = {"training__steps": 120, "checkpoint__interval": 4}
    cluster.submit_job("lasting", cluster.sections(**steps))
    cluster.wait_for_state("lasting", "SUCCEEDED")
    cluster.submit_job("lost-in-it", cluster.sections(**steps))
    cluster.wait_for_step("lost-in-it", 12)
    safe = cluster.wait_for(lambda: cluster.job("lost-in-it")["safe_checkpoint"], 60, "a checkpoint to be safe")
    lose_disk(cluster, "n2")
    cluster.start_worker("n2", NODES["n2"])
    cluster.wait_for_state("lost-in-it", "SUCCEEDED", 120)
    plans = cluster.event_messages("plan", "lost-in-it")
    first = next((message for message in plans[1:] if "from step" in message), None)
    expect(first, f"it was not planned again: {plans}")
    step = int(re.search(r"from step (\d+)", first).group(1))
    expect(step >= int(safe.split("-")[1]), f"{first}, safe was {safe}")
    expect_same(cluster, "lost-in-it", "lasting")


def mended_from_copies(cluster):
    """Damage on one disk costs nothing where a copy is whole, and the damaged file is replaced."""
    cluster.submit_job("mended", cluster.sections(training__steps=STEPS))
    stopped = cluster.stop_job("mended", 8)
    name = wait_until_safe(cluster, "mended")
    path = os.path.join(cluster.held("n1", "mended")[-1], "rank-0.bin")
    with open(path, "r+b") as file:
        whole = file.read()
        file.seek(100)
        file.write(bytes([whole[100] ^ 1]))
    expect(os.path.basename(os.path.dirname(path)) == name, f"{path} is not of {name}")
    cluster.motley("resume", "mended", "--set", "checkpoint.interval=0")

    def is_mended():
        with open(path, "rb") as file:
            return file.read() == whole

    cluster.wait_for(is_mended, 60, "the damaged file to be replaced")
    cluster.wait_for_state("mended", "SUCCEEDED", 120)
    expect(f"from step {stopped['step']}" in cluster.resumed_from("mended"), cluster.resumed_from("mended"))
    expect(not cluster.event_messages("checkpoint_skipped", "mended"), "a checkpoint was skipped")
    expect_same(cluster, "mended")


def goes_back(cluster):
    """Both disks lose the newest: it waits, says what is to be done, and does it."""
    cluster.submit_job("back", cluster.sections(training__steps=STEPS, checkpoint__copies=0))
    cluster.stop_job("back", 13)
    newest = wait_until_safe(cluster, "back")
    before = step_before(cluster, "back")
    for node in NODES:
        shutil.rmtree(os.path.join(os.path.dirname(cluster.held(node, "back")[-1]), newest))
    cluster.motley("resume", "back")
    cluster.wait_for(lambda: f"motley resume back --from {before}" in cluster.job("back").get("reason", ""), 30, "the way out to be named")
    cluster.motley("stop", "back")
    cluster.wait_for_state("back", "STOPPED")
    cluster.motley("resume", "back", "--from", str(before))
    cluster.wait_for_state("back", "SUCCEEDED", 120)
    expect(f"from step {before} " in cluster.resumed_from("back"), cluster.resumed_from("back"))
    expect_same(cluster, "back")


def forged(cluster):
    """What lies there without this store's mark is not gone on from, whatever its name says."""
    cluster.submit_job("forged", cluster.sections(training__steps=STEPS, checkpoint__copies=0))
    cluster.stop_job("forged", 8)
    wait_until_safe(cluster, "forged")
    before = step_before(cluster, "forged")
    for node in NODES:
        newest = cluster.held(node, "forged")[-1]
        with open(os.path.join(newest, "mark"), "w", encoding="utf-8") as file:
            file.write("0" * 32 + "\n")
    cluster.motley("resume", "forged")
    cluster.wait_for(lambda: "which was safe" in cluster.job("forged").get("reason", ""), 30, "it to be missed")
    cluster.motley("stop", "forged")
    cluster.wait_for_state("forged", "STOPPED")
    cluster.motley("resume", "forged", "--from", str(before))
    cluster.wait_for_state("forged", "SUCCEEDED", 120)
    expect(f"from step {before} " in cluster.resumed_from("forged"), cluster.resumed_from("forged"))
    expect_same(cluster, "forged")


def gives_what_only_it_has(cluster):
    """A worker that is told to end waits until others have what only its disk has, and what only one node has is enough then."""
    cluster.submit_job("given", cluster.sections(training__steps=STEPS, checkpoint__copies=0))
    stopped = cluster.stop_job("given", 8)
    own = {node: {name for name in os.listdir(cluster.held(node, "given")[-1]) if name.endswith(".bin")} for node in NODES}
    expect(all(len(names) == 1 for names in own.values()), own)
    cluster.workers["n2"].stop()
    cluster.stop_seconds = 60
    cluster.start_worker("n2", [DEVICE])
    cluster.wait_for_nodes(NODES)
    cluster.motley("files")   # a worker that was never asked for its disk does not wait
    cluster.workers["n2"].stop()
    there = {name for name in os.listdir(cluster.held("n1", "given")[-1]) if name.endswith(".bin")}
    expect(there == own["n1"] | own["n2"], f"n1 has {there}")
    cluster.motley("resume", "given")
    cluster.wait_for_state("given", "SUCCEEDED")
    expect("on 1 device" in cluster.resumed_from("given") and f"from step {stopped['step']}" in cluster.resumed_from("given"),
           cluster.resumed_from("given"))
    expect_same(cluster, "given")
    cluster.stop_seconds = 0
    cluster.start_worker("n2", [DEVICE])
    cluster.wait_for_nodes(NODES)


def no_room_for_files(cluster):
    """A node that cannot keep checkpoints is named, with what to do."""
    cluster.workers["n2"].stop()
    shutil.rmtree(cluster.disk("n2"), ignore_errors=True)
    with open(cluster.disk("n2"), "w", encoding="utf-8") as file:
        file.write("in the way")
    cluster.start_worker("n2", NODES["n2"])
    cluster.wait_for_nodes(["n2"])
    cluster.submit_job("blocked", cluster.sections(training__steps=4))
    cluster.wait_for(lambda: "checkpoints cannot be kept on the nodes' disks: node n2: " in cluster.job("blocked").get("reason", ""), 60,
                     "the node to be named")
    os.remove(cluster.disk("n2"))
    cluster.wait_for_state("blocked", "SUCCEEDED", 120)


def main():
    results = Results("local storage")
    with LocalCluster() as cluster:
        results.prepare("a cluster of two nodes without a common folder", cluster.start, NODES)
        results.prepare("a checkpoint: each node's part on its own disk", saves_on_both, cluster)
        results.run("a model of it, and all of it, through the coordinator", exports, cluster, NODES)
        results.run("a model that began from weights", exports_what_began_from_weights, cluster, NODES)
        results.run("another job begins with its weights", begins_with_anothers_weights, cluster)
        results.run("not with those that are damaged", begins_with_the_one_before_a_damaged_one, cluster)
        results.run("the same plan goes on from it", same_plan_again, cluster)
        results.run("another plan brings what lacks", another_plan, cluster)
        results.run("a newcomer brings its part", newcomer, cluster)
        results.run("a node that is away is waited for and named", node_away, cluster)
        results.run("a damaged part is found by whoever needs it", damaged, cluster)
        results.run("each node has copies of the other's part, and old checkpoints go", copies, cluster)
        results.run("a model of copies", exports_from_copies, cluster, NODES)
        results.run("what is damaged comes from a copy", mended_from_copies, cluster)
        results.run("what was safe is waited for until people go back", goes_back, cluster)
        results.run("a forged mark counts for nothing", forged, cluster)
        results.run("a node that is told to end gives what only it has", gives_what_only_it_has, cluster)
        results.run("a disk is lost", disk_lost, cluster)
        results.run("a disk is lost while the job trains", disk_lost_while_it_trains, cluster)
        if local_mounts.are_possible():
            results.run("a mount that is missing is named", local_mounts.mount_is_missing, cluster)
        else:
            results.skip("a mount that is missing is named", "mount namespaces need root")
        results.run("what a lost store's job left is adopted", adopts_what_a_lost_store_left, cluster)
        results.run("a node that can keep no checkpoints is named", no_room_for_files, cluster)   # n2 comes and goes too often by then
    results.exit()


if __name__ == "__main__":
    main()
