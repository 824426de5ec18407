#!/usr/bin/env python3
"""Data from the machine that submits, and the model back, over links of one rate: bytes and seconds. docs/inside/inputs.md

usage: inputs_bench.py --bin FOLDER [--mib N] [--mbit N] [--uploads N] [--only PART] [--json FILE]

Two emulated nodes and a third host with coordinator and command line, each in a network namespace of its own whose link has --mbit
(1000) a second. The same job trains once with the data in place on all, once with data that the third host alone has, and once
more with the same data. Bytes are those of the links' counters, in parts of the least that must move (part `links`). Then --uploads
(4) jobs on one machine send as much each at once (part `uploads`): by how much the coordinator grows, and how long `motley list` takes.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

NODES = ["n1", "n2"]


def make_data(path, mib):
    line = ("%06d the quick brown fox jumps over the lazy dog, and the lazy dog sleeps on beside the river\n" * 100)
    with open(path, "w", encoding="ascii") as file:
        written, number = 0, 0
        while written < mib << 20:
            text = line % tuple(range(number, number + 100))
            file.write(text)
            written, number = written + len(text), number + 100
    return os.path.getsize(path)


def limit(cluster, mbit):
    for host in ["coordinator", *NODES]:
        subprocess.run([*cluster.network.inside(host), "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{mbit}mbit",
                        "burst", "512kb", "latency", "100ms"], check=True)


def bytes_of(cluster):
    """By host: what it has sent."""
    def counter(host):
        done = subprocess.run([*cluster.network.inside(host), "cat", "/proc/net/dev"], capture_output=True, text=True, check=True)
        return next(int(row.split()[9]) for row in done.stdout.splitlines() if row.strip().startswith("eth0:"))

    return {host: counter(host) for host in ["coordinator", *NODES]}


def train(cluster, job_id, data):
    """Seconds from the command to the first step, and what each host sent meanwhile."""
    from harness import job_sections
    sections = job_sections(cluster, data__path=data, training__steps=3, checkpoint__interval=0)
    del sections["checkpoint"]["folder"]
    sections["checkpoint"]["copies"] = 0
    path = cluster.job_file(job_id, sections)
    before, begin = bytes_of(cluster), time.monotonic()
    sending = subprocess.Popen(cluster.placed("motley", [cluster.program("motley"), "--coordinator", cluster.address, "submit", path, "--id", job_id]),
                               stdout=subprocess.DEVNULL)
    while True:
        try:
            if int(cluster.job(job_id).get("step", 0)) >= 1:
                break
        except Exception:  # it is not submitted yet
            pass
        time.sleep(0.05)
    seconds = time.monotonic() - begin
    sent = {host: after - before[host] for host, after in bytes_of(cluster).items()}
    sending.wait()
    cluster.wait_for_state(job_id, "SUCCEEDED", 300)
    return seconds, sent


def measure(mib, mbit):
    from check_local_storage import DEVICE
    from netns import NetworkCluster
    with NetworkCluster(NODES) as cluster:
        laptop = tempfile.mkdtemp(prefix="motley laptop ")
        try:
            data = os.path.join(laptop, "words.txt")
            size = make_data(data, mib)
            placed = os.path.join(cluster.top, "words.txt")   # beneath every node's roots
            shutil.copy(data, placed)
            cluster.start({node: [DEVICE] for node in NODES})
            limit(cluster, mbit)
            train(cluster, "measured", placed)   # profiles are made once
            in_place, sent_in_place = train(cluster, "placed", placed)
            sent_first, bytes_first = train(cluster, "sent", f"here:{data}")
            sent_again, bytes_again = train(cluster, "again", f"here:{data}")
            before, begin = bytes_of(cluster), time.monotonic()
            done = cluster.run_motley("export", "sent", "--out", os.path.join(laptop, "model"))
            export_seconds = time.monotonic() - begin
            if done.returncode != 0:
                raise SystemExit(done.stderr)
            exported = sum(bytes_of(cluster).values()) - sum(before.values())
            parameters = os.path.getsize(os.path.join(laptop, "model", "model.safetensors"))
        finally:
            shutil.rmtree(laptop, ignore_errors=True)
    training = sum(sent_in_place.values())
    return {"bytes": size, "mbit": mbit, "in_place_seconds": in_place, "sent_seconds": sent_first, "again_seconds": sent_again,
            "wire_seconds": size * 8 / (mbit * 1e6),
            "bytes_over_least": (sum(bytes_first.values()) - training) / (2 * size),
            "coordinator_over_least": bytes_first["coordinator"] / size,
            "again_bytes": sum(bytes_again.values()) - training, "export_seconds": export_seconds,
            "export_bytes": exported, "model_bytes": parameters}


def memory_of(pid):
    """Bytes, and the most there ever were."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    return tuple(int(fields[name].split()[0]) << 10 for name in ("VmRSS", "VmHWM"))


def uploads_at_once(count, mib):
    from check_local_storage import DEVICE
    from harness import TestCluster, job_sections
    with TestCluster() as cluster:
        laptop = tempfile.mkdtemp(prefix="motley laptop ")
        try:
            cluster.start({node: [DEVICE] for node in NODES})
            jobs = []
            for number in range(count):
                data = os.path.join(laptop, f"words-{number}.txt")
                make_data(data, mib)
                with open(data, "a", encoding="ascii") as file:
                    file.write(f"{number}\n")   # other contents
                sections = job_sections(cluster, data__path=f"here:{data}", training__steps=1, checkpoint__interval=0)
                jobs.append(cluster.job_file(f"job-{number}", sections))
            pid = cluster.coordinator.process.pid
            before = memory_of(pid)[0]
            begin, lists = time.monotonic(), []
            sending = [subprocess.Popen([cluster.program("motley"), "--coordinator", cluster.address, "submit", job, "--id", f"job-{number}"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for number, job in enumerate(jobs)]
            while any(process.poll() is None for process in sending):
                asked = time.monotonic()
                cluster.motley("list")
                lists.append(time.monotonic() - asked)
                time.sleep(0.02)
            seconds = time.monotonic() - begin
            if any(process.returncode for process in sending):
                raise SystemExit("an upload failed")
            most = memory_of(pid)[1]
        finally:
            shutil.rmtree(laptop, ignore_errors=True)
    return {"uploads": count, "mib": mib, "seconds": seconds, "coordinator_grew_bytes": most - before,
            "list_median_seconds": sorted(lists)[len(lists) // 2], "list_longest_seconds": max(lists)}


def links_part(arguments):
    import netns
    if reason := netns.why_not():
        raise SystemExit(f"inputs_bench: {reason}")
    r = measure(arguments.mib, arguments.mbit)
    later = r["sent_seconds"] - r["in_place_seconds"]
    print(f"{r['bytes'] >> 20} MiB at {r['mbit']} Mbit/s, {r['wire_seconds']:.1f} s on the wire: first step {later:.1f} s later than with the data in "
          f"place ({later / r['wire_seconds']:.2f} of the wire's); bytes {r['bytes_over_least']:.3f} of the least; a second job "
          f"{r['again_bytes']} bytes more than in place; export {r['export_bytes'] / r['model_bytes']:.2f} of the model's bytes in "
          f"{r['export_seconds']:.1f} s")
    return r


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cache", help="not needed here")
    parser.add_argument("--work", default=tempfile.gettempdir(), help="not needed here")
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--mbit", type=int, default=1000)
    parser.add_argument("--uploads", type=int, default=4)
    parser.add_argument("--only", choices=["links", "uploads"])
    parser.add_argument("--json")
    arguments = parser.parse_args()
    os.environ["MOTLEY_BIN"] = arguments.bin
    results = {}
    if arguments.only != "uploads":
        results.update(links_part(arguments))
    if arguments.only != "links":
        results["at_once"] = u = uploads_at_once(arguments.uploads, arguments.mib)
        print(f"{u['uploads']} uploads of {u['mib']} MiB at once in {u['seconds']:.1f} s: the coordinator grew by "
              f"{u['coordinator_grew_bytes'] >> 20} MiB; motley list took {1000 * u['list_median_seconds']:.0f} ms in the median, "
              f"{1000 * u['list_longest_seconds']:.0f} ms at most")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
