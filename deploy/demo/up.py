#!/usr/bin/env python3
"""Leaves the demo's cluster running (up), ends it (down). The cluster's folder holds cluster.json: addresses and process ids."""
import argparse
import json
import os
import shutil
import signal
import sys
import time

import setting
from cluster import Cluster, ClusterError
from text import extract_text

PATIENCE_SECONDS = 10


def program_of(pid):
    try:
        return os.path.realpath(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        return ""


def ours(entry):
    """The process still is the daemon that was started (ids are reused)."""
    return program_of(entry["pid"]) == entry["program"]


def read_state(work):
    try:
        with open(os.path.join(work, "cluster.json"), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def print_addresses(state):
    print(f"""  coordinator   {state['address']}
  metrics       http://{state['metrics']}/metrics  and, by node: {', '.join(state['worker_metrics'].values())}
  text          {state['text']}
  job           {state['job_file']}
  try           {state['motley']} --coordinator {state['address']} submit "{state['job_file']}" --wait
  end it        ./run down""")


def up(arguments):
    state = read_state(arguments.work)
    if state and all(ours(entry) for entry in state["processes"].values()):
        print("  the demo cluster is already up:")
        print_addresses(state)
        return 0
    if state:
        down(arguments)
    text_path = extract_text(arguments.cache)
    cluster = Cluster(arguments.bin, arguments.work, detached=True, file_roots=[arguments.cache])
    try:
        cluster.start_coordinator()
        for node, cards in setting.CARDS.items():
            cluster.start_worker(node, setting.devices(cards), setting.EMULATION)
        cluster.wait_for_nodes(setting.CARDS)
        worker_metrics = {node: cluster.worker_metrics(node) for node in cluster.workers}
    except (ClusterError, KeyboardInterrupt) as error:
        cluster.stop()
        print(f"up: {error}", file=sys.stderr)
        return 70
    job_path = cluster.path("demo.toml")
    with open(job_path, "w", encoding="utf-8") as file:
        file.write(setting.job_file(text_path, cluster.path("checkpoints"), "cephalo", 200, 20))
    state = {"address": cluster.address, "metrics": cluster.metrics_address,
             "worker_metrics": worker_metrics,
             "text": text_path, "job_file": job_path, "motley": cluster.program("motley"),
             "processes": {d.name: {"pid": d.pid, "program": os.path.realpath(d.command[0])} for d in cluster.daemons()}}
    with open(cluster.path("cluster.json"), "w", encoding="utf-8") as file:
        json.dump(state, file, indent=2)
    print("  the demo cluster is up:")
    print_addresses(state)
    return 0


def down(arguments):
    state = read_state(arguments.work)
    if state is None:
        print("  no demo cluster is running here")
        return 0
    living = [entry["pid"] for entry in state["processes"].values() if ours(entry)]
    for pid in living:
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(ours(e) for e in state["processes"].values()) and time.monotonic() < deadline:
        time.sleep(0.1)
    for entry in state["processes"].values():
        if ours(entry):
            os.kill(entry["pid"], signal.SIGKILL)
    shutil.rmtree(arguments.work, ignore_errors=True)
    print(f"  ended {len(living)} daemons")
    return 0


def main():
    parser = argparse.ArgumentParser(description="the demo's cluster, left running")
    parser.add_argument("action", choices=["up", "down"])
    for name in ("bin", "cache", "work"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    return {"up": up, "down": down}[arguments.action](arguments)


if __name__ == "__main__":
    sys.exit(main())
