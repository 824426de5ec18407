#!/usr/bin/env python3
"""Jobs whose data lies on the machine that submits alone: it is sent once, and every node has it before it trains.

docs/inside/inputs.md. Prints a line for each check."""
import glob
import os
import shutil
import tempfile

from harness import Results, TestCluster, expect, job_sections, make_text

DEVICE = {"kind": "emulated", "model": "brisk", "flops_per_second": 2e9, "memory_bytes": 1 << 30, "link_bytes_per_second": 1e9}
NODES = {"n1": [DEVICE], "n2": [DEVICE]}
EX_DATAERR, EX_NOINPUT = 65, 66


class InputsCluster(TestCluster):
    """The laptop's folder lies beneath no node's roots."""

    def __init__(self):
        super().__init__()
        self.laptop = tempfile.mkdtemp(prefix="motley laptop ")
        make_text(os.path.join(self.laptop, "words.txt"))

    def __exit__(self, *error):
        super().__exit__(*error)
        shutil.rmtree(self.laptop, ignore_errors=True)

    def sections(self, data, **changes):
        sections = job_sections(self, data__path=data, **{"training__dtype": "float64", "checkpoint__interval": 5,
                                                          "checkpoint__interval_minutes": 0, **changes})
        del sections["checkpoint"]["folder"]
        return sections

    def own(self, name):
        return os.path.join(self.laptop, name)

    def submit(self, job_id, data, **changes):
        return self.run_motley("submit", self.job_file(job_id, self.sections(data, **changes)), "--id", job_id)

    def inputs(self, node):
        return sorted(glob.glob(os.path.join(glob.escape(self.path(f"files-{node}")), "inputs", "*")))

    def losses(self, job_id):
        return [record["loss"] for record in self.steps(job_id)]


def submitted(cluster, job_id, data, **changes):
    done = cluster.submit(job_id, data, **changes)
    expect(done.returncode == 0, f"{done.returncode}: {done.stdout} {done.stderr}")
    return done.stdout


def comes_to_all_nodes(cluster):
    """It trains as with the same text in place."""
    said = submitted(cluster, "sent", "here:" + cluster.own("words.txt"))
    expect("words.txt, " in said and "is on the cluster" in said, said)
    cluster.wait_for_state("sent", "SUCCEEDED")
    submitted(cluster, "placed", cluster.text)
    cluster.wait_for_state("placed", "SUCCEEDED")
    expect(cluster.losses("sent") == cluster.losses("placed"), "the loss curves differ")
    for node in NODES:
        names = [os.path.basename(path) for path in cluster.inputs(node)]
        expect(len(names) == 2 and names[1] == names[0] + ".json", f"{node} has {names}")
        held = os.path.join(cluster.inputs(node)[0], "words.txt")
        with open(held, "rb") as here, open(cluster.own("words.txt"), "rb") as there:
            expect(here.read() == there.read(), f"{held} has other contents")
    path = cluster.motley("status", "sent")["spec"]["data"]["path"]
    expect(path == f"input:{os.path.basename(cluster.inputs('n1')[0])}/words.txt", path)


def is_not_sent_twice(cluster):
    """Another job with the same contents, whatever the file is called above."""
    before = cluster.inputs("n1"), cluster.inputs("n2")
    os.mkdir(cluster.own("copy"))
    shutil.copy(cluster.own("words.txt"), cluster.own("copy"))
    submitted(cluster, "again", "here:" + cluster.own("copy/words.txt"))
    cluster.wait_for_state("again", "SUCCEEDED")
    expect((cluster.inputs("n1"), cluster.inputs("n2")) == before, f"{cluster.inputs('n1')}")
    expect(cluster.losses("again") == cluster.losses("sent"), "the loss curves differ")


def folders_too(cluster):
    """With what lies in them, and validation data of their own."""
    os.makedirs(cluster.own("books/part"))
    for name in ("a.txt", "part/b.txt"):
        make_text(cluster.own(os.path.join("books", name)), 500)
    submitted(cluster, "folder", "here:" + cluster.own("books"), data__validation_path="here:" + cluster.own("words.txt"),
              data__validation_interval=5)
    job = cluster.wait_for_state("folder", "SUCCEEDED")
    expect(job["last_step"]["validation_loss"] > 0, job["last_step"])


def newcomer_and_lost_disk(cluster):
    """A node that comes brings it from the others before it trains; so does one whose disk was emptied."""
    submitted(cluster, "grows", "here:" + cluster.own("words.txt"), training__steps=4000, checkpoint__interval=100)
    cluster.wait_for_step("grows", 2)
    cluster.start_worker("n3", [DEVICE])
    cluster.wait_for(lambda: any("on 3 devices" in message for message in cluster.event_messages("plan", "grows")), 60, "n3 to train")
    expect(any(path.endswith(".json") for path in cluster.inputs("n3")), f"n3 has {cluster.inputs('n3')}")
    cluster.motley("stop", "grows")
    cluster.wait_for_state("grows", "STOPPED")
    cluster.workers.pop("n3").stop()
    cluster.workers["n2"].stop()
    shutil.rmtree(os.path.join(cluster.path("files-n2"), "inputs"))
    cluster.start_worker("n2", NODES["n2"])
    cluster.wait_for_nodes(NODES)
    plans = len(cluster.event_messages("plan", "grows"))
    cluster.motley("resume", "grows")
    cluster.wait_for(lambda: len(cluster.event_messages("plan", "grows")) > plans, 60, "another plan")
    expect("on 2 devices" in cluster.event_messages("plan", "grows")[plans], cluster.event_messages("plan", "grows"))
    cluster.motley("stop", "grows")
    cluster.wait_for_state("grows", "STOPPED")


def bad_paths(cluster):
    """Each is named, and nothing is submitted."""
    os.symlink(cluster.own("words.txt"), cluster.own("books/link.txt"))
    os.mkdir(cluster.own("empty"))
    for data, code, word in (("nowhere.txt", EX_NOINPUT, "nowhere.txt"), ("books", EX_DATAERR, "link.txt is a symbolic link"),
                             ("empty", EX_DATAERR, "holds no file")):
        done = cluster.submit("wrong", "here:" + cluster.own(data))
        expect(done.returncode == code and word in done.stderr and "data.path" in done.stderr, f"{data}: {done.returncode} {done.stderr}")
    for initial in (cluster.own("part"), "part"):   # which without "here:" would be a job's id
        os.makedirs(os.path.join(cluster.top, "part"), exist_ok=True)   # a job file's paths are of its folder
        os.makedirs(cluster.own("part"), exist_ok=True)
        done = cluster.submit("wrong", cluster.text, checkpoint__initial="here:" + initial)
        expect(done.returncode == EX_DATAERR and "checkpoint.initial" in done.stderr and "holds no weights" in done.stderr,
               f"{done.returncode} {done.stderr}")
    expect(all(job["id"] != "wrong" for job in cluster.motley("list")["jobs"]), "it was submitted")


def plain_path(cluster):
    """Which no node has, so that it is this machine's; and one that all have, of which nobody sends anything."""
    with open(cluster.own("words.txt"), encoding="utf-8") as file:
        text = file.read()
    with open(cluster.own("more.txt"), "w", encoding="utf-8") as file:
        file.write(text + text)
    done = cluster.submit("plain", cluster.own("more.txt"))
    expect(done.returncode == 0 and "more.txt is not on nodes n1, n2: it comes from here" in done.stderr and "is on the cluster" in done.stdout,
           f"{done.returncode} {done.stdout} {done.stderr}")
    cluster.wait_for_state("plain", "SUCCEEDED")
    before = cluster.inputs("n1")
    done = cluster.submit("there", cluster.text)
    expect(done.returncode == 0 and "comes from here" not in done.stderr, f"{done.returncode} {done.stderr}")
    cluster.wait_for_state("there", "SUCCEEDED")
    expect(cluster.inputs("n1") == before and cluster.motley("status", "there")["spec"]["data"]["path"] == cluster.text, cluster.inputs("n1"))


def weights_too(cluster):
    """A model of this machine is what the job begins with, as it is with that model in place."""
    for out in (cluster.own("model"), os.path.join(cluster.top, "model")):
        done = cluster.run_motley("export", "sent", "--out", out)
        expect(done.returncode == 0, f"{done.returncode} {done.stderr}")
    with open(os.path.join(cluster.own("model"), "onnx.bin"), "wb") as file:
        file.write(b"nobody trains from it")
    submitted(cluster, "tuned", cluster.text, checkpoint__initial="here:" + cluster.own("model"))
    cluster.wait_for_state("tuned", "SUCCEEDED")
    submitted(cluster, "beside", cluster.text, checkpoint__initial=os.path.join(cluster.top, "model"))
    cluster.wait_for_state("beside", "SUCCEEDED")
    expect(cluster.losses("tuned") == cluster.losses("beside"), "the loss curves differ")
    held = [path for path in cluster.inputs("n2") if os.path.exists(os.path.join(path, "model", "model.safetensors"))]
    expect(len(held) == 1 and not os.path.exists(os.path.join(held[0], "model", "onnx.bin")), cluster.inputs("n2"))
    done = cluster.run_motley("export", "tuned", "--out", cluster.own("tuned"))
    expect(done.returncode == 0 and "tokenizer.json" in os.listdir(cluster.own("tuned")), f"{done.returncode} {done.stderr}")


def files_of(cluster, *arguments):
    """(node, job's id, name) of all that is listed."""
    listing = cluster.motley("files", *arguments)
    return {(node["node"], file["job_id"], file["name"]) for node in listing["nodes"] for file in node["files"]}


def files_and_their_end(cluster):
    """What lies where, also of a deleted job; a node that is away deletes it when it is back."""
    done = cluster.run_motley("files")
    expect(done.returncode == 0 and "words.txt" in done.stdout and "sent" in done.stdout, f"{done.returncode} {done.stdout} {done.stderr}")
    of_sent = files_of(cluster, "sent")
    expect({node for node, job, name in of_sent if job == "sent" and name.startswith("step-")} == set(NODES), of_sent)
    expect({node for node, job, name in of_sent if not job and name == "words.txt"} == set(NODES), of_sent)
    expect(cluster.run_motley("delete", "sent").returncode == 0, "it cannot be deleted")
    done = cluster.run_motley("files", "sent")
    expect("of no known job: motley delete sent --files" in done.stdout, done.stdout)
    cluster.workers["n2"].stop()
    done = cluster.run_motley("delete", "sent", "--files")
    expect(done.returncode == 0 and "told when they are: n2" in done.stdout, f"{done.returncode} {done.stdout} {done.stderr}")
    cluster.wait_for(lambda: not files_of(cluster, "sent"), 30, "n1 to have deleted them")
    left = glob.glob(os.path.join(glob.escape(cluster.path("files-n2")), "jobs", "sent.*"))
    expect(len(left) == 1, left)
    cluster.start_worker("n2", NODES["n2"])
    cluster.wait_for_nodes(NODES)
    cluster.wait_for(lambda: not os.path.exists(left[0]), 30, "n2 to have deleted them")
    cluster.wait_for(lambda: not [row for row in cluster.motley("files")["unwanted"] if row["node"] == "n2"], 30, "n2 to have said so")


def others_pass_it(cluster):
    """A job whose data is nowhere waits by name and lets the next one train."""
    submitted(cluster, "gone", "here:" + cluster.own("words.txt"), training__steps=4000)
    cluster.wait_for_step("gone", 1)
    cluster.motley("stop", "gone")
    cluster.wait_for_state("gone", "STOPPED")
    for node in NODES:
        cluster.workers[node].stop()
        shutil.rmtree(os.path.join(cluster.path(f"files-{node}"), "inputs"))
        cluster.start_worker(node, NODES[node])
    cluster.wait_for_nodes(NODES)
    cluster.motley("resume", "gone")
    cluster.wait_for(lambda: "words.txt lies on no node that is here" in cluster.job("gone")["reason"], 30, "what lacks to be named")
    submitted(cluster, "next", cluster.text)
    cluster.wait_for_state("next", "SUCCEEDED")
    said = cluster.submit("gone", "here:" + cluster.own("words.txt"), training__steps=4000)
    expect(said.returncode == 0 and "is on the cluster" in said.stdout, f"{said.returncode} {said.stdout} {said.stderr}")
    cluster.wait_for_state("gone", "RUNNING")
    cluster.motley("stop", "gone")
    cluster.wait_for_state("gone", "STOPPED")


def main():
    results = Results("inputs")
    with InputsCluster() as cluster:
        results.prepare("a cluster of two nodes, and a laptop", cluster.start, NODES)
        results.prepare("data of the laptop comes to all nodes", comes_to_all_nodes, cluster)
        results.run("what is there is not sent again", is_not_sent_twice, cluster)
        results.run("folders, and data for validations", folders_too, cluster)
        results.run("paths that cannot be sent are named", bad_paths, cluster)
        results.run("newcomers and emptied disks bring it from others", newcomer_and_lost_disk, cluster)
        results.run("a path that no node has is of this machine", plain_path, cluster)
        results.run("weights of this machine", weights_too, cluster)
        results.run("what lies where, and how it goes", files_and_their_end, cluster)
        results.run("others pass a job whose data is nowhere", others_pass_it, cluster)
    results.exit()


if __name__ == "__main__":
    main()
