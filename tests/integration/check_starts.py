#!/usr/bin/env python3
"""Fresh clusters, several at once: each comes up, no two daemons share an address, and a restarted coordinator keeps its own.

usage: check_starts.py [COUNT [AT_ONCE]]
"""
import argparse
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from harness import CPU_DEVICE, Results, TestCluster, expect
from cluster import samples

CANNOT_CREATE = 73
NODES = {f"n{i}": [CPU_DEVICE] for i in range(1, 4)}


class Living:
    """The addresses of all clusters that live now."""

    def __init__(self):
        self.lock, self.addresses = threading.Lock(), set()

    def enter(self, cluster):
        taken = [cluster.address, cluster.workers_address, cluster.metrics_address]
        taken += [cluster.worker_metrics(node) for node in NODES]
        with self.lock:
            expect(len(set(taken)) == len(taken), f"daemons of one cluster share an address: {taken}")
            expect(not self.addresses & set(taken), f"two clusters share an address: {self.addresses & set(taken)}")
            expect(not any(address.endswith(":0") for address in taken), f"an address was not said: {taken}")
            self.addresses |= set(taken)
            return set(taken)

    def leave(self, taken):
        with self.lock:
            self.addresses -= taken


def start_and_end(living):
    with TestCluster() as cluster:
        cluster.start(NODES)
        taken = living.enter(cluster)
        try:
            for address in taken:
                host, port = address.split(":")
                socket.create_connection((host, int(port)), 10).close()
        finally:
            living.leave(taken)


def many_at_once(count, at_once):
    living = Living()
    with ThreadPoolExecutor(at_once) as starters:
        for start in [starters.submit(start_and_end, living) for _ in range(count)]:
            start.result()


def restarted_coordinator():
    with TestCluster() as cluster:
        cluster.start(NODES)
        before = (cluster.address, cluster.workers_address, cluster.metrics_address)
        cluster.coordinator.kill()
        cluster.coordinator.process.wait()
        cluster.start_coordinator()
        expect(before == (cluster.address, cluster.workers_address, cluster.metrics_address), "it took other addresses")
        cluster.wait_for_nodes(NODES)


def proxy_of_the_site():
    """As on many campus machines: a proxy stands in the environment, and it does not know this machine."""
    variables = dict.fromkeys(("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    with TestCluster() as cluster, mock.patch.dict(os.environ, variables):
        cluster.start({"n1": [CPU_DEVICE]})
        expect(samples(cluster.metrics_address, "motley_nodes"), "the metrics were asked of the proxy")


def folder_that_is_not_there():
    with TestCluster() as cluster:
        cluster.start({"n1": [CPU_DEVICE]})
        path = cluster.path("nowhere", "addresses.json")
        coordinator = [cluster.program("motley-coordinator"), "--socket", "", "--listen", "127.0.0.1:0",
                       "--workers", "127.0.0.1:0", "--no-metrics", "--state-dir", cluster.path("other-state")]
        worker = [cluster.program("motley-worker"), "--config", cluster.path("worker-n1.toml"), "--node", "n2"]
        for command in (coordinator, worker):
            done = subprocess.run([*command, "--addresses", path], capture_output=True, text=True, timeout=60, check=False)
            expect(done.returncode == CANNOT_CREATE and path in done.stderr,
                   f"{command}: status {done.returncode}: {done.stderr[-300:]!r}")


def main():
    parser = argparse.ArgumentParser(description="fresh clusters, several at once")
    parser.add_argument("count", nargs="?", type=int, default=10)
    parser.add_argument("at_once", nargs="?", type=int, default=5)
    arguments = parser.parse_args()
    results = Results("starts")
    count, at_once = arguments.count, arguments.at_once
    results.run(f"{count} fresh clusters, {at_once} at once", many_at_once, count, at_once)
    results.run("a restarted coordinator keeps its addresses", restarted_coordinator)
    results.run("a proxy in the environment is not asked", proxy_of_the_site)
    results.run("an addresses file in a folder that is not there", folder_that_is_not_there)
    results.exit()


if __name__ == "__main__":
    sys.exit(main())
