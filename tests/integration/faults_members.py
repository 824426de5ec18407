"""Members of a cluster on a network, while a job trains on them: certificates that expire within half a minute and are renewed, an
authority that changes, a node that is forgotten. None of it may cost a step but the last."""
import time

from harness import expect, state_of
from faults_common import PACED, last_step, newest_checkpoint, paced_job, row, stop_job
from netns import NetworkCluster
from patience import patience

NODES = {"a": [PACED], "b": [PACED], "c": [PACED]}
CERTIFICATE_SECONDS = 36   # the shortest that is taken is 30
REFUSED = 78


def until(cluster):
    """When each member's certificate expires."""
    return {node["name"]: node["certificate_until_unix_ms"] for node in cluster.nodes()}


def wait_for_renewals(cluster, count):
    """Of every member, so many."""
    seen = {name: {time} for name, time in until(cluster).items()}

    def enough():
        for name, expires in until(cluster).items():
            seen[name].add(expires)
        return all(len(times) > count for times in seen.values())

    cluster.wait_for(enough, (count + 1) * CERTIFICATE_SECONDS, f"{count} renewals of each node")


def seconds_until(condition, cluster, seconds, what):
    begin = time.monotonic()
    cluster.wait_for(condition, seconds, what, poll_seconds=0.02)
    return time.monotonic() - begin


def membership(renewals):
    """Rows, and what went wrong in words."""
    with NetworkCluster(NODES) as cluster:
        cluster.start_coordinator(workers={"listen": cluster.workers_address, "certificate_days": CERTIFICATE_SECONDS / 86400})
        for name, devices in NODES.items():
            cluster.start_worker(name, devices)
        cluster.wait_for_nodes(NODES)
        paced_job(cluster, "train", training__steps=1_000_000, checkpoint__interval=20)
        cluster.wait_for_step("train", 3)
        generation = last_step(cluster.job("train"))[0]
        wait_for_renewals(cluster, renewals)
        cluster.motley("node", "rotate-authority")
        changed = seconds_until(lambda: any(e["kind"] == "authority_changed" for e in cluster.events()), cluster, 90, "the new authority")
        wait_for_renewals(cluster, 1)   # by the new one
        steps = [int(r["step"]) for r in cluster.motley("metrics", "train")["steps"]]
        rows = [row(f"{renewals} renewals and a new authority in a running job: generations ended",
                    last_step(cluster.job("train"))[0] - generation, "generations", 0),
                row("steps repeated meanwhile", len(steps) - len(set(steps)), "steps", 0),
                row("until the new authority is the only one", changed, "s", 90)]
        cluster.wait_for(lambda: newest_checkpoint(cluster, "train") > 0, 60, "a checkpoint")
        cluster.run_motley("node", "forget", "c")
        gone = seconds_until(lambda: "c" not in {node["name"] for node in cluster.nodes()}, cluster, 20, "node c to be gone")
        worker = cluster.workers["c"]
        ended = seconds_until(lambda: not worker.alive(), cluster, 20, "c's worker to end")
        expect(worker.process.returncode == REFUSED, f"c's worker ended with {worker.process.returncode}")
        cluster.wait_for(lambda: last_step(cluster.job("train"))[0] > generation, 60, "a generation without c")
        expect(state_of(cluster.job("train")) in {"RUNNING", "REPLANNING"}, f"{cluster.job('train')}")
        again = cluster.start_worker("c", NODES["c"])
        expect(again.process.wait(patience(30)) == REFUSED, "a forgotten node stays out")
        rows.append(row("a forgotten node: until its session and its worker have ended", max(gone, ended), "s", 1))
        stop_job(cluster, "train")
    return rows, []
