"""Models from checkpoints that lie on the nodes' disks: brought through the coordinator, and equal to those of a common folder."""
import filecmp
import glob
import os
import shutil

from harness import expect

EX_NOINPUT = 66


def merged(cluster, nodes, job_id):
    """The newest checkpoint as a common folder would have it, and what lies beside it."""
    root = cluster.path(f"merged-{job_id}")
    for node in nodes:
        newest = cluster.held(node, job_id)[-1]
        shutil.copytree(newest, os.path.join(root, os.path.basename(newest)), dirs_exist_ok=True)
        for base in glob.glob(os.path.join(glob.escape(os.path.dirname(newest)), "base-*")):
            shutil.copytree(base, os.path.join(root, os.path.basename(base)), dirs_exist_ok=True)
    return root


def export(cluster, *arguments):
    done = cluster.run_motley("export", *arguments)
    expect(done.returncode == 0, f"motley export {arguments}: {done.returncode}: {done.stdout} {done.stderr}")
    return done.stdout


def expect_same_model(cluster, job_id, out, root):
    wanted = cluster.path(f"wanted-{os.path.basename(out)}-of-{os.path.basename(root)}")
    export(cluster, "--checkpoint", root, "--out", wanted)
    names = sorted(os.listdir(wanted))
    expect(sorted(os.listdir(out)) == names and "model.safetensors" in names, f"{out} has {sorted(os.listdir(out))}, not {names}")
    same, other, wrong = filecmp.cmpfiles(wanted, out, [name for name in names if name != "README.md"], shallow=False)
    expect(not other and not wrong, f"{job_id}: {other} {wrong} differ, {same} are the same")


def exports(cluster, nodes):
    """Each node has a part alone; what comes is a model, and the whole checkpoint if that is asked for."""
    out, raw, root = cluster.path("model"), cluster.path("raw"), merged(cluster, nodes, "alone")
    said = export(cluster, "alone", "--out", out)
    expect("step 40 of job alone is in" in said, said)
    expect_same_model(cluster, "alone", out, root)
    refused = cluster.run_motley("export", "alone", "--out", out)
    expect(refused.returncode == 73 and "exists" in refused.stderr, f"over a model: {refused.returncode} {refused.stderr}")
    export(cluster, "alone", "--raw", "--out", raw)
    compared = filecmp.dircmp(raw, root)
    name = compared.common_dirs[0]
    expect(not compared.left_only and not compared.right_only, f"{compared.left_only}, {compared.right_only}")
    same, other, wrong = filecmp.cmpfiles(os.path.join(raw, name), os.path.join(root, name), os.listdir(os.path.join(root, name)), shallow=False)
    expect(not other and not wrong and len(same) == 4, f"of the raw checkpoint {same} are the same, {other} {wrong} not")
    expect_same_model(cluster, "alone", out, raw)


def exports_what_began_from_weights(cluster, nodes):
    """The names, types and tokenizer of the model that the job began from come along."""
    cluster.submit_job("tuned", cluster.sections(training__steps=8, checkpoint__initial=cluster.path("model"), checkpoint__copies=0))
    cluster.wait_for_state("tuned", "SUCCEEDED")
    out = cluster.path("tuned-model")
    export(cluster, "tuned", "--out", out)
    expect("tokenizer.json" in os.listdir(out), os.listdir(out))
    expect_same_model(cluster, "tuned", out, merged(cluster, nodes, "tuned"))


def exports_from_copies(cluster, nodes):
    """A damaged part comes from a copy; so does one whose node is away."""
    cluster.submit_job("spread", cluster.sections(training__steps=8))
    cluster.wait_for_state("spread", "SUCCEEDED")
    cluster.wait_for(lambda: (cluster.job("spread")["safe_checkpoint"] or "").startswith("step-00000008"), 60, "the last checkpoint to be safe")
    root, out = merged(cluster, nodes, "spread"), cluster.path("spread-model")
    path = os.path.join(cluster.held("n1", "spread")[-1], "rank-0.bin")
    with open(path, "r+b") as file:
        byte = file.read(1)
        file.seek(0)
        file.write(bytes([byte[0] ^ 1]))
    export(cluster, "spread", "--out", out)
    expect_same_model(cluster, "spread", out, root)
    cluster.workers["n1"].stop()
    try:
        out = cluster.path("spread-model-again")
        export(cluster, "spread", "--out", out)
        expect_same_model(cluster, "spread", out, root)
        lacking = cluster.run_motley("export", "alone", "--out", cluster.path("lacking"))
        expect(lacking.returncode == EX_NOINPUT and "rank-0.bin of node n1" in lacking.stderr, f"{lacking.returncode} {lacking.stderr}")
    finally:
        cluster.start_worker("n1", nodes["n1"])
        cluster.wait_for_nodes(nodes)
