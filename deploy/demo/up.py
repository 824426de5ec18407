#!/usr/bin/env python3
"""Leaves the demo's cluster running (up), ends it (down). The cluster's folder holds cluster.json: addresses and process ids.

Ending it removes what `up` and the daemons made, by name. What else lies in the folder is the user's, checkpoints above all.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import setting
from cluster import PATIENCE_SECONDS as START_SECONDS
from cluster import SOCKET, Cluster, ClusterError, Daemon, closed_to_others
from job_files import checkpoints_in, delete_checkpoints, size
from scraping import prometheus_config
from text import extract_text

PATIENCE_SECONDS = 20   # a coordinator that is told to end saves the running job first


def program_of(pid):
    try:
        return os.path.realpath(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        return ""


def ours(entry):
    """The process still is the daemon that was started (ids are reused)."""
    return program_of(entry["pid"]) == entry["program"]


def read_state(work):
    """What cluster.json says; None without one, or when it came with a copy of another clone: its daemons are not ours to end."""
    path = os.path.join(work, "cluster.json")
    try:
        with open(path, encoding="utf-8") as file:
            state = json.load(file)
    except FileNotFoundError:
        return None
    if os.path.exists(state["folder"]) and os.path.samefile(state["folder"], work):
        return state
    print(f"  {path} is of a cluster in {state['folder']}, which is left alone")
    os.remove(path)
    return None


def write_state(state, work):
    """What the cluster is, and where its metrics are; for `down`, for the next `up`, and for Prometheus."""
    texts = {"prometheus.yml": prometheus_config(state["metrics"], list(state["worker_metrics"].values())),
             "cluster.json": json.dumps(state, indent=2)}
    for name, text in texts.items():
        with open(os.path.join(work, name), "w", encoding="utf-8", opener=closed_to_others) as file:
            file.write(text)


def page_of(state):
    """With its key, which stays out of the state."""
    done = subprocess.run([state["motley"], "--coordinator", state["address"], "open", "--print"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip()


def print_addresses(state):
    data = "".join(f"\n  your data     {folder}" for folder in state.get("data", []))
    print(f"""  coordinator   {state['address']}
  page          {page_of(state)}
  metrics       http://{state['metrics']}/metrics  and, by node: {', '.join(state['worker_metrics'].values())}
  prometheus    prometheus --config.file "{state['folder']}/prometheus.yml"
  text          {state['text']}{data}
  folder        {state['folder']}/checkpoints   (or another one below {state['folder']})
  job           {state['job_file']}
  try           {state['motley']} --coordinator {state['address']} submit "{state['job_file']}" --wait
  end it        ./run down""")


def metrics_of(daemon):
    """Where a worker that was just started serves its metrics; one that does not start has none."""
    deadline = time.monotonic() + START_SECONDS
    while daemon.alive() and time.monotonic() < deadline:
        said = daemon.addresses()
        if said is not None:
            return said["metrics"]
        time.sleep(0.1)
    raise ClusterError(f"{daemon.name} did not start; the end of {daemon.log_path} says why")


def revive(state, work):
    """Starts the daemons that died, as they were: whatever the others do goes on."""
    dead = [name for name, entry in state["processes"].items() if not ours(entry)]
    if "coordinator" in dead:
        print("up: the coordinator of this cluster is dead and some of its workers live; `./run down`, then `./run up`", file=sys.stderr)
        return 70
    daemons = {}
    for name in dead:
        program, addresses = state["processes"][name]["program"], os.path.join(work, f"{name}.addresses.json")
        command = [program, "--config", os.path.join(work, f"{name}.toml"), "--addresses", addresses]
        daemons[name] = Daemon(name, command, os.path.join(work, f"{name}.log"), detached=True, addresses_path=addresses).start()
        state["processes"][name]["pid"] = daemons[name].pid
    write_state(state, work)   # should this be interrupted: their process ids
    for name, daemon in daemons.items():
        state["worker_metrics"][name.removeprefix("worker-")] = metrics_of(daemon)   # they drew new ports
    write_state(state, work)
    print(f"  the demo cluster is up; started again: {', '.join(dead)}")
    print_addresses(state)
    return 0


def up(arguments):
    data = [os.path.realpath(folder) for folder in arguments.data]
    for folder in data:
        if not os.path.isdir(folder):
            print(f"up: --data {folder} is no folder", file=sys.stderr)
            return 66
    state = read_state(arguments.work)
    living = state is not None and any(ours(entry) for entry in state["processes"].values())
    if living and not set(data) <= set(state.get("data", [])):
        print("up: the cluster is up without this --data; `./run down`, then `./run up --data FOLDER`", file=sys.stderr)
        return 64
    if living and all(ours(entry) for entry in state["processes"].values()):
        print("  the demo cluster is already up:")
        print_addresses(state)
        return 0
    if living:
        return revive(state, arguments.work)
    if state:
        end(state, arguments.work)
    text_path = extract_text(arguments.cache)
    cluster = Cluster(arguments.bin, arguments.work, detached=True, file_roots=[arguments.cache, *data])
    cluster.stop_seconds = 10   # somebody may have a job running when it ends
    try:
        cluster.start_coordinator()
        for node, cards in setting.CARDS.items():
            cluster.start_worker(node, setting.devices(cards), setting.EMULATION)
        cluster.wait_for_nodes(setting.CARDS)
        worker_metrics = {node: cluster.worker_metrics(node) for node in cluster.workers}
    except (ClusterError, KeyboardInterrupt):
        cluster.stop()
        raise
    job_path = cluster.path("demo.toml")
    with open(job_path, "w", encoding="utf-8", opener=closed_to_others) as file:
        file.write(setting.job_file(text_path, cluster.path("checkpoints"), "cephalo", 200, 20))
    state = {"folder": os.path.realpath(arguments.work), "address": cluster.address, "metrics": cluster.metrics_address,
             "worker_metrics": worker_metrics,
             "text": text_path, "data": data, "job_file": job_path, "motley": cluster.program("motley"),
             "processes": {d.name: {"pid": d.pid, "program": os.path.realpath(d.command[0])} for d in cluster.daemons()}}
    write_state(state, arguments.work)
    print("  the demo cluster is up:")
    print_addresses(state)
    return 0


def end(state, work):
    """Ends the daemons and removes what they and `up` made. Returns how many lived."""
    living = [entry for entry in state["processes"].values() if ours(entry)]
    # The coordinator has the running job saved before it goes, and needs the workers for that.
    first = [entry for name, entry in state["processes"].items() if name == "coordinator" and ours(entry)]
    for entries in (first, [entry for entry in living if entry not in first]):
        for entry in entries:
            os.kill(entry["pid"], signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(ours(entry) for entry in entries) and time.monotonic() < deadline:
            time.sleep(0.1)
    for entry in state["processes"].values():
        if ours(entry):
            os.kill(entry["pid"], signal.SIGKILL)
    for folder in ("coordinator-state", os.path.dirname(SOCKET)):
        shutil.rmtree(os.path.join(work, folder), ignore_errors=True)
    made = [f"{name}{ending}" for name in state["processes"] for ending in (".toml", ".log", ".addresses.json")]
    for name in [*made, os.path.basename(state["job_file"]), "prometheus.yml", "cluster.json"]:
        if os.path.lexists(os.path.join(work, name)):
            os.remove(os.path.join(work, name))
    return len(living)


def say_what_stays(work):
    """Removes the folder when nothing of the user's is in it."""
    jobs = sorted({os.path.dirname(path) for path in checkpoints_in(work)})
    if jobs:
        print(f"  checkpoints stay ({size(work)}; ./run down --delete-checkpoints deletes them):")
        for job in jobs:
            print(f"    {job}")
        print("  the cluster's list of jobs is gone; a new job of one of these names says how it goes on from its checkpoints")
    elif os.path.isdir(work):
        for folder, _, _ in os.walk(work, topdown=False):
            if not os.listdir(folder):
                os.rmdir(folder)
        if os.path.isdir(work):
            print(f"  what you put into {work} stays: {', '.join(sorted(os.listdir(work)))}")


def down(arguments):
    state = read_state(arguments.work)
    print("  no demo cluster is running here" if state is None else f"  ended {end(state, arguments.work)} daemons")
    if arguments.delete_checkpoints and os.path.isdir(arguments.work):
        delete_checkpoints(arguments.work)
    say_what_stays(arguments.work)
    return 0


def main():
    parser = argparse.ArgumentParser(description="the demo's cluster, left running")
    parser.add_argument("action", choices=["up", "down"])
    for name in ("bin", "cache", "work"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--delete-checkpoints", action="store_true", help="down: remove what jobs wrote in the cluster's folder")
    parser.add_argument("--data", action="append", default=[], help="up: a folder of the user's, whose files jobs may use")
    arguments = parser.parse_args()
    try:
        return {"up": up, "down": down}[arguments.action](arguments)
    except ClusterError as error:
        print(f"{arguments.action}: {error}", file=sys.stderr)
        return 70
    except KeyboardInterrupt:
        print(f"{arguments.action}: interrupted; run it again", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
