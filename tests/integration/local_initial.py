"""Jobs that begin with the weights of another one, which lie on its nodes' disks. docs/inside/local-storage.md"""
import glob
import os

from harness import expect


def begins_with_anothers_weights(cluster):
    """As from the same checkpoint in a folder, to the last bit; with other nodes than those that saved it."""
    from check_local_storage import DEVICE
    folder = cluster.path("alone-raw")
    cluster.motley("export", "alone", "--raw", "--out", folder)
    changes = {"training__steps": 6, "training__seed": 7, "checkpoint__interval": 3}
    cluster.submit_job("from-folder", cluster.sections(checkpoint__initial=folder, **changes))
    cluster.wait_for_state("from-folder", "SUCCEEDED")
    cluster.start_worker("n3", [DEVICE])
    try:
        cluster.wait_for_nodes(["n3"])
        cluster.submit_job("heir", cluster.sections(checkpoint__initial="alone", **changes))
        cluster.wait_for_state("heir", "SUCCEEDED")
        expect("on 3 devices" in cluster.event_messages("plan", "heir")[0], cluster.event_messages("plan", "heir"))
        expect("from the weights of step-" in cluster.event_messages("plan", "heir")[0], cluster.event_messages("plan", "heir"))
        wanted, losses = cluster.losses("from-folder"), cluster.losses("heir")
        expect(len(wanted) == len(losses) == 6, f"{wanted} and {losses}")
        worst = max(abs(a - b) / b for a, b in zip(losses, wanted))
        expect(worst <= 1e-12, f"losses {losses} from the nodes' disks, {wanted} from a folder")
        expect(cluster.job("heir")["newest_checkpoint"].startswith("step-00000006"), cluster.job("heir"))
    finally:
        cluster.workers.pop("n3").stop()


def begins_with_the_one_before_a_damaged_one(cluster):
    """Nobody has the newest whole: its nodes say so when they bring it, and the job begins with the one before."""
    cluster.submit_job("source", cluster.sections(training__steps=10, checkpoint__copies=0))
    cluster.wait_for_state("source", "SUCCEEDED")
    for node in ("n1", "n2"):
        path = glob.glob(os.path.join(glob.escape(cluster.held(node, "source")[-1]), "rank-*.bin"))[0]
        with open(path, "r+b") as file:
            file.seek(100)
            byte = file.read(1)
            file.seek(100)
            file.write(bytes([byte[0] ^ 1]))
    cluster.submit_job("careful", cluster.sections(checkpoint__initial="source", training__steps=4))
    cluster.wait_for_state("careful", "SUCCEEDED", 120)
    plans = cluster.event_messages("plan", "careful")
    expect("from the weights of step-00000005" in plans[-1], plans)
