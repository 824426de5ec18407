"""Data that a client sends, while one of those that send, pass on or take it is killed: bytes sent again, and wrong ones."""
import base64
import filecmp
import glob
import os
import random
import shutil
import subprocess
import tempfile
import time

from check_local_storage import DEVICE
from files_common import LinkedCluster, file_carriers, kill, median, network_refusal, say

NODES = ("n1", "n2")
HOSTS = ("coordinator", *NODES)
MBIT = 400               # so that 48 MiB are a second on each of their two ways
MOST_AGAIN = 8 << 20
VICTIMS = ("client", "coordinator", "worker", "process")   # the worker of the node that takes it; a process that carries bytes
WAIT_SECONDS = 120
KILLS_OF_A_CLUSTER = 8   # a node that was lost more than twice in ten minutes is not used for a minute and longer


def make_data(path, mib, draw):
    """Text of which no two blocks are equal."""
    with open(path, "wb") as file:
        for _ in range(mib):
            file.write(base64.encodebytes(draw.randbytes(776_000))[:1 << 20].ljust(1 << 20, b"\n"))
    return os.path.getsize(path)


class Sending:
    """One input on its way to both nodes."""

    def __init__(self, cluster, number, mib, draw):
        self.cluster, self.job, self.draw, self.client = cluster, f"sent-{number}", draw, None
        self.data = os.path.join(cluster.laptop, f"words-{number}.txt")
        self.size = make_data(self.data, mib, draw)
        sections = cluster.sections(data__path=f"here:{self.data}", training__steps=1_000_000, checkpoint__interval=0,
                                    checkpoint__copies=0)
        self.file = cluster.job_file(self.job, sections)
        self.before = self.bytes_out()

    def bytes_out(self):
        """What all hosts have sent so far: from the client's to one node, and from there to the other."""
        total = 0
        for host in HOSTS:
            with open(f"/proc/{self.cluster.network.holders[host].pid}/net/dev", encoding="ascii") as file:
                total += next(int(row.split()[9]) for row in file if row.strip().startswith("eth0:"))
        return total

    def moved(self):
        return self.bytes_out() - self.before

    def begin(self):
        """The same command whenever it is given."""
        command = [self.cluster.program("motley"), "--coordinator", self.cluster.address, "submit", self.file, "--id", self.job]
        with open(self.cluster.path("client.log"), "ab") as log:
            self.client = subprocess.Popen(self.cluster.placed("motley", command), stdout=log, stderr=log)

    def held(self, node, pattern):
        return glob.glob(os.path.join(glob.escape(self.cluster.disk(node)), "inputs", pattern))

    def is_whole(self):
        return all(self.held(node, "*/" + os.path.basename(self.data)) and not self.held(node, "*.part") for node in NODES)

    def kill(self, victim):
        """And what was killed is started again; what it was."""
        taker = next((node for node in NODES if self.held(node, "*.part")), NODES[0])
        if victim == "client":
            kill([self.client.pid])
            self.client.wait()
            time.sleep(self.draw.random())
            self.begin()
        elif victim == "coordinator":
            self.cluster.coordinator.kill()
            self.cluster.coordinator.process.wait()
            time.sleep(self.draw.random())
            self.cluster.start_coordinator()
        elif victim == "worker":
            self.cluster.workers[taker].kill()
            self.cluster.workers[taker].process.wait()
            time.sleep(self.draw.random())
            self.cluster.start_worker(taker, [DEVICE])
        else:
            # One that takes from the client, or those of which one gives and one brings.
            kill([self.draw.choice(file_carriers(self.cluster, NODES, ["carry-child"]) or file_carriers(self.cluster, NODES))])

    def end(self):
        """Once both nodes have it: bytes that moved, nodes whose file is another one. It is gone then."""
        self.cluster.wait_for(self.is_whole, WAIT_SECONDS, f"the data of {self.job} to be on both nodes", poll_seconds=0.02)
        moved = self.moved()
        if self.client.wait(WAIT_SECONDS) != 0:
            raise SystemExit(f"the client of {self.job} ended with {self.client.returncode}: {self.cluster.path('client.log')}")
        wrong = [node for node in NODES
                 if not filecmp.cmp(self.held(node, "*/" + os.path.basename(self.data))[0], self.data, shallow=False)]
        self.cluster.run_motley("stop", self.job)
        self.cluster.wait_for_state(self.job, {"STOPPED", "SUCCEEDED"}, WAIT_SECONDS)
        for node in NODES:
            for path in self.held(node, "*"):
                (shutil.rmtree if os.path.isdir(path) else os.remove)(path)
        os.remove(self.data)
        return moved, wrong


def undisturbed(cluster, number, mib, draw):
    sending = Sending(cluster, number, mib, draw)
    sending.begin()
    return sending.end()[0]


def killed_once(cluster, number, mib, draw, usual, victim):
    sending = Sending(cluster, number, mib, draw)
    # A client has ended when one node has all; the others work until both have.
    at = draw.uniform(0.03, 0.95 if victim == "client" else 1.95) * sending.size
    begin = time.monotonic()
    sending.begin()
    cluster.wait_for(lambda: sending.moved() >= at, WAIT_SECONDS, f"{at:.0f} bytes of {sending.job} to move", poll_seconds=0.002)
    sending.kill(victim)
    moved, wrong = sending.end()
    return say(kill=number, victim=victim, at=round(at / sending.size, 2), mb_again=round(max(0, moved - usual) / 1e6, 2),
               wrong_files=len(wrong), seconds=round(time.monotonic() - begin, 1)), max(0, moved - usual)


def of_one_cluster(first, kills, mib, draw):
    """Rows, (victim, bytes that were sent again) of each, and what is sent when nothing is killed."""
    with LinkedCluster(NODES) as cluster:
        cluster.laptop = tempfile.mkdtemp(prefix="motley laptop ")
        try:
            cluster.start({node: [DEVICE] for node in NODES})
            cluster.limit(MBIT)
            # Beside the first one devices and links are measured.
            usual = [undisturbed(cluster, f"usual-{number}", mib, draw) for number in range(2)][-1]
            rows, again = [], []
            for number in range(first, first + kills):
                victim = VICTIMS[number % len(VICTIMS)]
                row, more = killed_once(cluster, number, mib, draw, usual, victim)
                rows.append(row)
                again.append((victim, more))
            return rows, again, usual
        finally:
            shutil.rmtree(cluster.laptop, ignore_errors=True)


def measure(count, mib, draw):
    """Rows, by victim the bytes that were sent again, and the bytes of data sent when nothing is killed."""
    rows, again, usual = [], {victim: [] for victim in VICTIMS}, 0
    while len(rows) < count:
        more_rows, more, usual = of_one_cluster(len(rows), min(KILLS_OF_A_CLUSTER, count - len(rows)), mib, draw)
        rows += more_rows
        for victim, value in more:
            again[victim].append(value)
    return rows, again, usual


def sent_part(arguments):
    if reason := network_refusal():
        print(f"left out: sent: {reason}", flush=True)
        return {"left_out": reason, "correct": True}
    rows, again, usual = measure(arguments.count or 100, arguments.mib, random.Random(arguments.seed))
    wrong, most = sum(row["wrong_files"] for row in rows), max(max(of, default=0) for of in again.values())
    print(f"sent: {arguments.mib} MiB to two nodes at {MBIT} Mbit/s, {len(rows)} kills while bytes moved: "
          f"{most / (1 << 20):.2f} MiB sent again for one at most (goal {MOST_AGAIN >> 20}), {wrong} files with wrong "
          f"bytes (goal 0)", flush=True)
    seconds = {victim: max((row["seconds"] for row in rows if row["victim"] == victim), default=0) for victim in VICTIMS}
    print("  in the median, at most, and the longest until both nodes had it: " + "; ".join(
        f"{victim} {median(of) / (1 << 20):.2f}, {max(of) / (1 << 20):.2f} MiB, {seconds[victim]:.0f} s"
        for victim, of in again.items() if of), flush=True)
    return {"kills": len(rows), "data_bytes": arguments.mib << 20, "undisturbed_bytes": usual, "most_bytes_again": most,
            "goal_bytes_again": MOST_AGAIN, "wrong_files": wrong,
            "seconds_most": seconds,
            "bytes_again": {victim: {"median": median(of), "most": max(of)} for victim, of in again.items() if of}, "rows": rows,
            "correct": wrong == 0 and most <= MOST_AGAIN}
