"""Jobs that have a common folder: nothing of what jobs without one need is started, asked or written for them."""
import os
import time

from check_local_storage import DEVICE
from files_common import NODES, FilesTraffic, LinkedCluster, file_carriers, median, network_refusal, say

STEPS, INTERVAL = 8, 2


def files_beneath(cluster, node):
    return sorted(os.path.join(path, name) for path, _, names in os.walk(cluster.disk(node)) for name in names)


def first_step(cluster, job, in_folder):
    """Seconds from the command until a step is done."""
    sections = cluster.sections(training__steps=STEPS, checkpoint__interval=INTERVAL)
    if in_folder:
        sections["checkpoint"]["folder"] = cluster.checkpoints()
    begin = time.monotonic()
    cluster.submit_job(job, sections)
    cluster.wait_for(lambda: int(cluster.job(job).get("step", 0)) >= 1, 120, f"a step of {job}", poll_seconds=0.01)
    seconds = time.monotonic() - begin
    cluster.wait_for_state(job, "SUCCEEDED", 120)
    return seconds


def measure(count):
    """Of two clusters, by turns: seconds of each kind; of the first, whose jobs have a folder, what is there that need not be."""
    with LinkedCluster(NODES) as shared, LinkedCluster(NODES) as local:
        for cluster in (shared, local):
            cluster.start({node: [DEVICE] for node in NODES})
        before = {node: files_beneath(shared, node) for node in NODES}
        traffic, seconds, processes = FilesTraffic(shared, NODES), {"common folder": [], "own disks": []}, 0
        for number in range(count + 1):   # beside the first ones devices and links are measured
            row = {"common folder": first_step(shared, f"shared-{number}", True),
                   "own disks": first_step(local, f"local-{number}", False)}
            processes = max(processes, len(file_carriers(shared, NODES)))
            traffic.look()
            say(job=number, **{kind.replace(" ", "_"): round(value, 2) for kind, value in row.items()}, files_processes=processes)
            for kind, value in row.items() if number else ():
                seconds[kind].append(value)
        new = [path for node in NODES for path in files_beneath(shared, node) if path not in before[node]]
        return seconds, processes, new, traffic.total()


def share_part(arguments):
    if reason := network_refusal():
        print(f"left out: share: {reason}", flush=True)
        return {"left_out": reason, "correct": True}
    seconds, processes, new, carried = measure(arguments.count or 10)
    # A node's answer to what it holds comes from its files process, so that none was asked where there is none.
    of_folder, of_disks = (median(seconds[kind]) for kind in ("common folder", "own disks"))
    print(f"share: {len(seconds['common folder'])} jobs with a common folder: {len(new)} new files beneath [files] local (goal "
          f"0), {carried} bytes carried (goal 0), {processes} files processes and so no questions what nodes hold (goal 0); "
          f"first step {of_folder:.2f} s after the command in the median, {of_disks:.2f} s without a folder", flush=True)
    return {"jobs": len(seconds["common folder"]), "new_files": new, "bytes_carried": carried, "files_processes": processes,
            "first_step_seconds_median": {"common folder": of_folder, "own disks": of_disks}, "first_step_seconds": seconds,
            "correct": not new and carried == 0 and processes == 0}
