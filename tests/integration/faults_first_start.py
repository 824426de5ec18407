"""A first start over two hosts that are set up wrongly: the way is named, the healthy node is kept, and both train once it is mended.

Each case has a cluster of its own. Needs what netns.py needs.
"""
import json
import subprocess
import time

import netns
from faults_common import PACED, paced_job, stop_job
from harness import expect
from netns import DATA, NetworkCluster

NODES = {"n1": [PACED], "n2": [PACED]}
JOB = "first"
SECONDS = 90            # of each wait: longer than any answer, for hosts that are busy
SLOW_BYTES = 200_000    # of what may leave by the wrong card: the reach check's own and what the kernel says there


def data_address(cluster, node):
    return cluster.network.address(node, DATA)


def close_ports(cluster):
    cluster.network.refuse_connections("n2")


def drop_large_packets(cluster):
    """A tunnel on the way: small packets pass, large ones are lost without a word."""
    for node in NODES:
        netns.run([*cluster.network.inside(node), "nft", f"add rule inet cut arriving ip daddr {data_address(cluster, node)} meta length > 1400 drop"])


def cut_one_way(cluster):
    """No connection comes about in either direction, and neither node is better than the other."""
    cluster.network.cut("n2", "n1", DATA)


def loopback(cluster):
    """worker.data_address left at its default."""
    cluster.start_worker("n2", NODES["n2"], data_address="127.0.0.1")


def restart_with_address(cluster):
    cluster.workers["n2"].stop()
    cluster.start_worker("n2", NODES["n2"])


def heal(cluster):
    cluster.network.heal()


# What is wrong, how it is mended, and what the reason names of it. The loopback one is wrong from the worker's start on.
CASES = {"closed ports": (close_ports, heal, ["n1 does not reach n2 at {n2}:", "ip_local_port_range"]),
         "large packets that are lost": (drop_large_packets, heal, ["does not reach", "large packets"]),
         "a cut in one direction": (cut_one_way, heal, ["n1 does not reach n2 at {n2}:"]),
         "a data address of loopback": (loopback, restart_with_address, ["n1 does not reach n2 at 127.0.0.1:", "worker.data_address"])}


def node_of(cluster, name):
    return next((node for node in cluster.nodes() if node["name"] == name), {})


def is_refused(node, why):
    return node.get("state") == "refused" and why in node.get("reason", "")


def states(cluster):
    """Of each node's one device."""
    return {device["id"].partition("/")[0]: device["state"] for device in cluster.devices()}


def one_case(break_it, mend_it, words):
    with NetworkCluster(NODES) as cluster:
        cluster.start({"n1": NODES["n1"]} if break_it is loopback else NODES)
        break_it(cluster)
        cluster.wait_for(lambda: node_of(cluster, "n2").get("state") == "ready", SECONDS, "n2")
        wanted = [text.format(n2=data_address(cluster, "n2")) for text in words]
        begin = time.monotonic()
        paced_job(cluster, JOB, training__steps=1_000_000, checkpoint__interval=10)
        said = cluster.wait_for(lambda: cluster.event_messages("device_left_out", JOB), SECONDS, "somebody to be left out")[0]
        print(f"    named after {time.monotonic() - begin:.1f} s", flush=True)
        expect(all(text in said for text in wanted), f"{wanted} are not all in: {said}")
        out = "n2" if "without node n2" in said else "n1"
        kept = "n1" if out == "n2" else "n2"
        # Not at the first look: a session that breaks on a host that stands still makes the job look once more, with the same end.
        cluster.wait_for(lambda: is_refused(node_of(cluster, out), wanted[0]), SECONDS, f"{out} to be refused for that")
        cluster.wait_for_step(JOB, 3, SECONDS)
        cluster.wait_for(lambda: states(cluster)[kept] == "training", SECONDS, f"{kept} to train")
        reason = cluster.job(JOB)["reason"]
        expect(wanted[0] in reason, f"the job's reason is: {reason}")
        expect(not cluster.event_messages("rank_hung", JOB), "a rank was taken for hung")
        mend_it(cluster)
        cluster.wait_for(lambda: set(states(cluster).values()) == {"training"}, 2 * SECONDS, "both nodes to train")
        stop_job(cluster, JOB)


def sent_bytes(cluster, node, card):
    done = subprocess.run([*cluster.network.inside(node), "ip", "-s", "-j", "link", "show", card], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)[0]["stats64"]["tx"]["bytes"]


def second_card(cluster):
    """A cable of its own between the two, in the subnet of the data addresses, which the kernel prefers."""
    holders = {node: str(cluster.network.holders[node].pid) for node in NODES}
    netns.run([*cluster.network.inside("n1"), "ip", "link", "add", "other0", "type", "veth", "peer", "name", "other0", "netns", holders["n2"]])
    for node in NODES:
        inside, address = cluster.network.inside(node), data_address(cluster, node)
        subnet, last = address.rpartition(".")[::2]
        netns.run([*inside, "ip", "address", "add", f"{subnet}.{100 + int(last)}/24", "dev", "other0"])
        netns.run([*inside, "ip", "link", "set", "other0", "up"])
        netns.run([*inside, "ip", "route", "del", f"{subnet}.0/24", "dev", "eth0"])
        netns.run([*inside, "ip", "route", "add", f"{subnet}.0/24", "dev", "eth0", "src", address, "metric", "100"])


def two_cards_in_one_subnet():
    """What ranks send leaves by the data address's card, whatever card the kernel prefers."""
    with NetworkCluster(NODES) as cluster:
        cluster.start(NODES)
        second_card(cluster)
        before = {node: sent_bytes(cluster, node, "eth0") for node in NODES}
        paced_job(cluster, JOB, training__steps=1_000_000, checkpoint__interval=0)
        cluster.wait_for_step(JOB, 20, SECONDS)
        stop_job(cluster, JOB)
        for node in NODES:
            data, other = sent_bytes(cluster, node, "eth0") - before[node], sent_bytes(cluster, node, "other0")
            expect(data > 10 * SLOW_BYTES and other < SLOW_BYTES, f"{node} sent {data} bytes by the data address's card and {other} by the other")


DAILY = ("closed ports", "a data address of loopback")


def first_starts(results):
    for name in DAILY:
        results.run(f"first start: {name}", lambda name=name: netns.why_not() or one_case(*CASES[name]))
    results.run("first start: two cards in one subnet", lambda: netns.why_not() or two_cards_in_one_subnet())


def first_starts_at_length(results):
    for name in sorted(CASES.keys() - set(DAILY)):
        results.run(f"first start: {name}", lambda name=name: netns.why_not() or one_case(*CASES[name]))
