"""Jobs that begin with the weights of another one, which lie on its nodes' disks. docs/inside/local-storage.md"""
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
