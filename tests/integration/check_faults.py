#!/usr/bin/env python3
"""Things die, stop, and lie: the first cause is reported, training goes on with the same numbers, and nothing is left behind.

usage: check_faults.py [--long]   # --long: instead the cases that `./run test --long` runs. docs/use/faults.md says which are which
"""
import os
import sys

from harness import Results, TestCluster, expect
from cluster import processes
import mounts
import netns
from faults_altered import altered_messages
from faults_common import expect_holds
from faults_curve import ON_ROWS, curve, flipped_reads
from faults_data import zeroed_mask
from faults_disks import full_disk, lost_share
from faults_first_start import first_starts, first_starts_at_length
from faults_hanging import hanging
from faults_kills import kills
from faults_lending import a_waiting_job_lends
from faults_members import membership
from faults_memory import memory_runs_out
from faults_newcomers import newcomers, silent_in_swap
from faults_one_folder import one_folder
from faults_partitions import BOTH, FROM, partitions
from faults_pipelines import lost_pipeline, struck_and_parted
from faults_processes import processes_of_a_cluster
from faults_roots import swapped_folder
from faults_setups import setups, setups_at_length
from faults_slow import slow_rank
from faults_take_over import take_overs
from faults_upgrade import one_node, upgrade
import faults_strangers
from netns import CONTROL, DATA

CUT_SECONDS = 12   # longer than TCP's patience and a lease


def on_a_network(test):
    """The rows of a test that cuts networks are met, or why there are none."""
    return netns.why_not() or expect_holds(*test())


def misreading_node():
    return mounts.why_not() or expect_holds(*curve(0, [flipped_reads]))


def rows_through_faults():
    return mounts.why_not() or expect_holds(*curve(0, ON_ROWS, on_rows=True))


def nothing_left(cluster):
    cluster.stop()
    left = [(pid, name) for pid, _, name in processes() if name.startswith("motley") and cluster_owns(pid, cluster)]
    expect(not left, f"processes left: {left}")
    temporary = [os.path.join(d, f) for d, folders, files in os.walk(os.path.join(cluster.top, "checkpoints")) for f in folders + files
                 if f.startswith(".tmp")]
    expect(not temporary, f"temporary checkpoints left: {temporary[:3]}")


def cluster_owns(pid, cluster):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read().decode(errors="replace")
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read().decode(errors="replace")
    except OSError:
        return False
    return cluster.top in command or f"MOTLEY_TEST={cluster.top}" in environment


def daily(results):
    """Every promise that only a real cluster can show, once and at its shortest."""
    with TestCluster() as cluster:
        os.environ["MOTLEY_TEST"] = cluster.top   # marks every process of this cluster, orphans included
        cluster.stop_seconds = 20   # a worker that is told to end lets the job save
        processes_of_a_cluster(results, cluster)
        results.run("a checkpoint folder swapped for a link outside", swapped_folder, cluster)
        results.run("full disk", full_disk, cluster)
        results.run("nothing is left", nothing_left, cluster)
    lost_pipeline(results)
    results.run("memory that runs out", memory_runs_out)
    results.run("lost share", lost_share)
    results.run("a node that misreads checkpoints", misreading_node)
    results.run("a node whose mask is all zeros", lambda: mounts.why_not() or zeroed_mask())
    results.run("a control plane cut one way, and healed", on_a_network, lambda: partitions(CUT_SECONDS, [((CONTROL,), FROM)]))
    results.run("another machine takes over, the old coordinator comes back", on_a_network, lambda: take_overs(1, every=2, seed=7))
    first_starts(results)
    results.run("two clusters, one folder, one job id", one_folder)
    results.run("a share and a log that hang", hanging)
    setups(results)
    results.run("one node upgraded", lambda: expect_holds(*one_node()))
    results.run("a newcomer that is silent in the swap", lambda: netns.why_not() or silent_in_swap())


def at_length(results):
    """The starts of ./run bench faults: what their daily cases leave to decisions over invented workers."""
    struck_and_parted(results)
    first_starts_at_length(results)
    setups_at_length(results)
    results.run("a rank that is stopped again and again", slow_rank)
    results.run("a job that waits lends the cluster", a_waiting_job_lends)
    results.run("packed rows through deaths and new plans", rows_through_faults)
    results.run("kills of the coordinator", lambda: expect_holds(*kills(4, 1, interval_seconds=2.0, clusters=1)))
    results.run("messages altered on the way", on_a_network, lambda: altered_messages(5))
    results.run("a data plane cut, and healed", on_a_network, lambda: partitions(CUT_SECONDS, [((DATA,), BOTH)]))
    results.run("members: renewed, a new authority, forgotten", on_a_network, lambda: membership(1))
    results.run("the coordinator's machine lost twice", on_a_network, lambda: take_overs(2, every=2, seed=7))
    results.run("two clusters, one folder, one job id, under kills", one_folder, 50, 250)
    results.run("upgraded node by node", lambda: expect_holds(*upgrade()))
    results.run("bad newcomers", on_a_network, lambda: newcomers(1))
    results.run("strangers that invent numbers", lambda: faults_strangers.why_not() or faults_strangers.nothing_believed())


def main():
    if sys.argv[1:] not in ([], ["--long"]):
        sys.exit(__doc__)
    results = Results("faults")
    (at_length if sys.argv[1:] else daily)(results)
    results.exit()


if __name__ == "__main__":
    main()
