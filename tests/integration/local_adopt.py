"""The coordinator's store is lost, and what a job left on its nodes' disks is not: submit --adopt. docs/inside/local-storage.md"""
import os
import shutil
import signal

from harness import expect


def lose_store(cluster):
    """Power is gone, and the disk with the store and its backups; another machine begins with nothing. The nodes come to it."""
    nodes = list(cluster.workers)
    cluster.coordinator.kill(signal.SIGKILL)
    cluster.coordinator.process.wait()
    shutil.rmtree(cluster.path("coordinator-state"))
    cluster.start_coordinator()
    cluster.wait_for_nodes(nodes)


def uid_of_lost(cluster, job_id):
    """As people find it: what `motley files` lists of a job that nobody knows."""
    listed = {file["job_uid"] for node in cluster.motley("files", job_id)["nodes"] for file in node["files"] if file["job_id"] == job_id}
    expect(len(listed) == 1, f"{job_id}: {listed} lie on the nodes")
    return listed.pop()


def adopts_what_a_lost_store_left(cluster):
    """The same file and id, and the uid: it goes on from the newest, with the losses of the undisturbed job."""
    from check_local_storage import SAME, STEPS, wait_until_safe
    alone = cluster.losses("alone")   # as long as the coordinator knows it
    job_file = cluster.job_file("orphan", cluster.sections(training__steps=STEPS))
    cluster.motley("submit", job_file, "--id", "orphan")
    cluster.stop_job("orphan", 8)
    newest = wait_until_safe(cluster, "orphan")
    lose_store(cluster)
    uid = uid_of_lost(cluster, "orphan")
    listing = cluster.run_motley("files").stdout
    expect(f"motley submit FILE --id orphan --adopt {uid}" in listing, listing)
    done = cluster.run_motley("submit", job_file, "--adopt", uid)
    expect(done.returncode == os.EX_USAGE and "--adopt needs --id" in done.stderr, f"{done.returncode}: {done.stderr}")
    cluster.motley("submit", job_file, "--id", "orphan", "--adopt", uid)
    cluster.wait_for_state("orphan", "SUCCEEDED", 120)
    plans = cluster.event_messages("plan", "orphan")
    expect(f"({newest}" in plans[0], f"{plans}, the newest was {newest}")
    curve = {int(record["step"]): record["loss"] for record in cluster.steps("orphan")}
    expect(set(range(int(newest.split("-")[1]) + 1, STEPS + 1)) <= set(curve), f"steps {sorted(curve)} are known")
    worst = max(abs(loss - alone[step - 1]) / alone[step - 1] for step, loss in curve.items())
    expect(worst <= SAME, f"the loss curve differs by {worst:.2e} from that of the undisturbed job")
