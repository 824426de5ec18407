#!/usr/bin/env python3
"""What the page costs: ./run bench page [--only cost,flood,long,pictures].

cost   the coordinator's CPU and memory with 0, 1 and 200 pages beside a job of about 5 steps a second, by turns; the bytes that a
       page takes in a minute. A page is a script here, which asks as one does.
flood  how long /metrics takes, alone and beside 1,000 clients of a byte a second and 64 that do not read.
pictures   makes docs/page.png anew: the demo's cards train, a node is killed, another joins; wants ./run setup --browser.
long   a job of many steps, the coordinator killed and started again now and then: what its thinned curve has in the end.
"""
import argparse
import asyncio
import json
import math
import os
import resource
import socket
import statistics
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

import harness  # noqa: E402
import page_http  # noqa: E402
from harness import TestCluster, job_sections  # noqa: E402
from cluster import fetch  # noqa: E402

JOB = "watched"
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


class Pages:
    """So many pages in a process of their own, each asking once a second for what is new behind its cursor."""

    def __init__(self, address, key, count):
        self.read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.read)
            try:
                asyncio.run(self.ask_all(address, key, count, write))
            finally:
                os._exit(0)
        os.close(write)

    async def ask_all(self, address, key, count, write):
        self.bytes = self.refused = 0
        host, port = address.split(":")

        async def page(number):
            cursor, life = 0, ""
            await asyncio.sleep(number / max(1, count))
            while True:
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(f"GET /data/job/{JOB}?after={cursor}&life={life} HTTP/1.1\r\nHost: {address}\r\nMotley-Key: {key}\r\n\r\n".encode())
                answer = await reader.read()
                writer.close()
                self.bytes += len(answer)
                document = json.loads(answer.split(b"\r\n\r\n", 1)[1] or b"{}") if answer else {}
                if not answer:
                    self.refused += 1
                if "cursor" in document:
                    cursor, life = document["cursor"], document["life"]
                await asyncio.sleep(0.1 if document.get("again") else 1)

        async def tell():
            while True:
                await asyncio.sleep(0.5)
                os.write(write, f"{self.bytes} {self.refused}\n".encode())

        await asyncio.gather(tell(), *(page(i) for i in range(count)))

    def told(self):
        """(bytes, refused) so far."""
        return tuple(map(int, os.read(self.read, 1 << 20).decode().strip().split("\n")[-1].split()))

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.read)


def start(steps, flops):
    cluster = TestCluster()
    device = {"kind": "emulated", "model": "paced", "flops_per_second": flops, "memory_bytes": 1 << 30, "link_bytes_per_second": 1e9}
    cluster.start({"n1": [device, device], "n2": [device]})
    cluster.submit_job(JOB, job_sections(cluster, training__steps=steps, checkpoint__interval=200))
    cluster.wait_for_step(JOB, 5)
    return cluster


def cost(arguments):
    cluster = start(1_000_000, 5e8)
    with cluster:
        address, key = page_http.opened(cluster)
        pid, rows = cluster.coordinator.pid, {count: [] for count in arguments.pages}
        for turn in range(arguments.turns):
            for count in arguments.pages:
                pages = Pages(address, key, count)
                time.sleep(5)   # all of them have begun
                before, cpu, begin = pages.told(), cpu_seconds(pid), time.monotonic()
                step = int(cluster.job(JOB)["step"])
                time.sleep(arguments.seconds)
                after, seconds = pages.told(), time.monotonic() - begin
                share = (cpu_seconds(pid) - cpu) / seconds
                done = int(cluster.job(JOB)["step"]) - step
                pages.end()
                rows[count].append({"cpu": share, "memory": memory_mib(pid), "step_seconds": seconds / max(1, done),
                                    "kb_minute": (after[0] - before[0]) / max(1, count) / seconds * 60 / 1000, "refused": after[1]})
                print(f"  turn {turn + 1}, {count} pages: {share * 100:.2f} % of a core, {done / seconds:.2f} steps/s", flush=True)
        median = {count: {name: statistics.median(row[name] for row in of) for name in of[0]} for count, of in rows.items()}
        base = median[arguments.pages[0]]
        print("pages   % of a core   more    MiB   more   ms a step   ratio   KB a page and minute   refused")
        for count, row in median.items():
            print(f"{count:5d}   {row['cpu'] * 100:11.2f} {(row['cpu'] - base['cpu']) * 100:6.2f} {row['memory']:6.1f} {row['memory'] - base['memory']:6.1f} "
                  f"{row['step_seconds'] * 1e3:11.2f} {row['step_seconds'] / base['step_seconds']:7.3f} {row['kb_minute']:22.1f} {row['refused']:9.0f}")


def flood(arguments):
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    cluster = start(1_000_000, 5e8)
    with cluster:
        address, key = page_http.opened(cluster)
        host, port = address.split(":")

        def scrapes():
            taken = []
            for _ in range(arguments.scrapes):
                begin = time.monotonic()
                assert "motley_nodes" in fetch(f"http://{address}/metrics")
                taken.append((time.monotonic() - begin) * 1e3)
                time.sleep(0.02)
            return taken

        def connect(words):
            one = socket.create_connection((host, int(port)), timeout=10)
            one.sendall(words)
            return one

        alone, stop = scrapes(), threading.Event()

        def drip():
            held = []
            while not stop.is_set():
                held = [one for one in held if one is not None]
                while len(held) < 1000:
                    held.append(connect(b"G"))
                readers = [connect(f"GET /data/job/{JOB} HTTP/1.1\r\nMotley-Key: {key}\r\n\r\n".encode()) for _ in range(64)]
                for i, one in enumerate(held):
                    try:
                        one.sendall(b"E")
                    except OSError:
                        one.close()
                        held[i] = None
                stop.wait(1)
                for one in readers:
                    one.close()

        dripper = threading.Thread(target=drip)
        dripper.start()
        time.sleep(2)
        beside = scrapes()
        stop.set()
        dripper.join()
        for name, taken in (("alone", alone), ("beside the flood", beside)):
            print(f"/metrics {name}: median {statistics.median(taken):.1f} ms, longest {max(taken):.1f} ms, {len(taken)} of {len(taken)} answered")


def long(arguments):
    cluster = TestCluster()
    with cluster:
        cluster.start({"n1": [{"kind": "cpu", "memory_bytes": 2 << 30}]})
        cluster.submit_job(JOB, job_sections(cluster, training__steps=arguments.steps, training__global_batch_size=1, training__seq_len=8,
                                             checkpoint__interval=max(1, arguments.steps // 40)))
        losses, lost, begin = {}, set(), time.monotonic()
        cluster.wait_for_step(JOB, 20)
        losses.update({int(s["step"]): s["loss"] for s in cluster.steps(JOB)})
        for kill in range(1, arguments.kills + 1):
            cluster.wait_for_step(JOB, arguments.steps * kill // (arguments.kills + 1), 3600)
            losses.update({int(s["step"]): s["loss"] for s in cluster.steps(JOB)})
            cluster.coordinator.kill()
            cluster.coordinator.process.wait()
            lost.update(range(max(losses) - 2000, max(losses) + 1000))   # what it had heard and not stored: two seconds
            cluster.start_coordinator()
            print(f"  killed and started again at step {arguments.steps * kill // (arguments.kills + 1)} ({time.monotonic() - begin:.0f} s)", flush=True)
        cluster.wait_for_state(JOB, "SUCCEEDED", 3600)
        losses.update({int(s["step"]): s["loss"] for s in cluster.steps(JOB)})
        history = page_http.data(cluster, f"job/{JOB}")["history"]
        least, most = (list(map(float, history[name])) for name in ("least_loss", "most_loss"))
        width, empty = int(history["steps_per_bucket"]), sum(math.isnan(v) for v in most)
        lowest, highest = (choose(v for v in of if not math.isnan(v)) for choose, of in ((min, least), (max, most)))
        print(f"{arguments.steps} steps, {arguments.kills} kills: {len(most)} buckets of {width} steps, {empty} without a step")
        results = harness.Results("page at length")
        results.check("the curve ends with the job", int(history["last_step"]) == arguments.steps, str(history["last_step"]))
        results.check("it begins with the first step", 1 in losses and most[0] >= losses[1] * (1 - 1e-6), f"{most[0]} {losses.get(1)}")
        losses = {step: loss for step, loss in losses.items() if step not in lost}
        results.check("it has the loss's extremes", lowest <= min(losses.values()) * (1 + 1e-6) and highest >= max(losses.values()) * (1 - 1e-6),
                      f"{lowest} to {highest}, of {len(losses)} records {min(losses.values())} to {max(losses.values())}")
        results.exit()


def pictures(arguments):
    """The page of a job that has lost a node and won another."""
    import browser
    import setting
    from text import extract_text
    text = extract_text(arguments.cache)
    cluster = TestCluster()
    cluster.file_roots.append(arguments.cache)
    with cluster:
        cluster.start_coordinator()
        for node in ("a", "b", "c"):
            cluster.start_worker(node, setting.devices(setting.CARDS[node]), setting.EMULATION)
        cluster.wait_for_nodes("abc")
        path = cluster.path("job.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(setting.job_file(text, cluster.checkpoints(), "cephalo", 400, 10))
        cluster.submit(path, "bible")
        cluster.wait_for_step("bible", 45, 300)
        cluster.workers["c"].kill()
        cluster.workers.pop("c").process.wait()
        cluster.wait_for_step("bible", 75, 300)
        cluster.start_worker("d", setting.devices(setting.CARDS["c"]), setting.EMULATION)
        cluster.wait_for_step("bible", 130, 300)
        url = cluster.motley("open", "bible")["url"]
        with browser.Browser(1200, 1500) as page:
            page.size(1200, 1500)
            page.open(url)
            page.wait("document.querySelectorAll('section.chart canvas').length >= 5 && document.querySelectorAll('tbody tr').length > 12")
            page.value("[...document.querySelectorAll('button')].find((b) => b.textContent.includes('simulated')).click()")
            page.wait("document.querySelector('#simulated canvas')")
            time.sleep(6)   # until the lanes of the newest steps are there
            page.screenshot(os.path.join(ROOT, "docs", "page.png"))
            print("docs/page.png is made")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--work")
    parser.add_argument("--cache")
    parser.add_argument("--only", default="cost,flood", help="cost, flood, long, pictures; with commas")
    parser.add_argument("--pages", type=lambda text: [int(n) for n in text.split(",")], default=[0, 1, 200])
    parser.add_argument("--seconds", type=float, default=30, help="of each turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--scrapes", type=int, default=200)
    parser.add_argument("--steps", type=int, default=100000)
    parser.add_argument("--kills", type=int, default=10)
    arguments = parser.parse_args()
    harness.BIN = arguments.bin
    for name in arguments.only.split(","):
        print(f"{name}:", flush=True)
        {"cost": cost, "flood": flood, "long": long, "pictures": pictures}[name](arguments)


if __name__ == "__main__":
    sys.exit(main())
