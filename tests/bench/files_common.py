"""What the parts of ./run bench files share: clusters, what lies on disks, who carries, and how a part says what it found."""
import glob
import json
import os
import random
import signal
import statistics
import subprocess
import time

from cluster import processes
from check_local_storage import DEVICE, LocalCluster
from harness import published_checkpoints
from netns import NetworkCluster

SAME = 1e-12   # of losses in float64
NODES = ("n1", "n2", "n3")
# Steps of a device that is declared so fast take what this machine's cores take.
FAST_DEVICE = {**DEVICE, "flops_per_second": 1e12, "link_bytes_per_second": 1e10}
SHORT = {"training__seq_len": 16, "training__global_batch_size": 3}   # of large models: steps take as little as they can


class LinkedCluster(NetworkCluster, LocalCluster):
    """Without a common folder, each node in a network namespace of its own."""

    def limit(self, mbit):
        for host in self.network.numbers:
            subprocess.run([*self.network.inside(host), "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf",
                            "rate", f"{mbit}mbit", "burst", "512kb", "latency", "100ms"], check=True)


# ---- what a part says ----
def say(**row):
    """A row, as soon as it is there: people watch."""
    print("  " + "  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    return row


def median(values):
    return statistics.median(values) if values else None


def share_of(values, part):
    """The value below which this part of all lies."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))] if values else None


# ---- jobs ----
def model_of(cluster, state_mb):
    """The path of a config.json of GPT-2 whose weights and moments in float32 are about so large."""
    width, vocabulary, positions = 256, 256, 64
    state_bytes_of_layer = 12 * (12 * width * width + 13 * width)
    layers = max(1, round((state_mb * 1e6 - 12 * width * (vocabulary + positions)) / state_bytes_of_layer))
    path = cluster.path(f"model-{state_mb}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"model_type": "gpt2", "vocab_size": vocabulary, "n_positions": positions, "n_embd": width, "n_layer": layers,
                   "n_head": 8}, file)
    return path


def step_of(checkpoint):
    return int(checkpoint.split("-")[1]) if checkpoint else 0


def place_of(checkpoint):
    """(generation, step) of a name: newer ones are larger."""
    words = checkpoint.split("-") if checkpoint else ["", 0, "", 0]
    return int(words[3]), int(words[1])


def event_times(cluster, kind, job_id):
    """(Unix seconds, message) of each."""
    return [(int(event["unix_ms"]) / 1000, event.get("message", "")) for event in cluster.events(job_id) if event["kind"] == kind]


def step_files(cluster, job_id):
    """Every record that any node's disk has of the job's steps, generation by generation: also of steps that were made twice."""
    records = []
    pattern = os.path.join(glob.escape(cluster.folder), "files-*", "jobs", f"{job_id}.*", "checkpoints", "steps", "*.jsonl")
    for path in sorted(glob.glob(pattern), key=os.path.basename):
        with open(path, encoding="utf-8") as file:
            records += [json.loads(line) for line in file if line.endswith("\n")]
    return records


def worst_difference(records, alone):
    """Of records with step and loss, from losses of the same job undisturbed; and how many steps no record is of."""
    pairs = [(record["loss"], alone[record["step"] - 1]) for record in records]
    worst = max((abs(loss - wanted) / abs(wanted) for loss, wanted in pairs), default=0.0)
    return worst, len(alone) - len({record["step"] for record in records})


def seconds_to_generation_above(cluster, job_id, generation, begin, limit_seconds=120):
    """From `begin` to a step of a later generation; None: none came."""
    while time.monotonic() - begin < limit_seconds:
        job = cluster.try_motley("status", job_id) or {}
        if int((job.get("last_step") or {}).get("generation", 0)) > generation:
            return time.monotonic() - begin
        time.sleep(0.05)
    return None


def generation_of(job):
    return int((job.get("last_step") or {}).get("generation", 0))


# ---- disks ----
def checkpoints_folder(cluster, node, job_id):
    """None: it has nothing of the job."""
    found = glob.glob(os.path.join(glob.escape(cluster.disk(node)), "jobs", f"{job_id}.*", "checkpoints"))
    return found[0] if found else None


def manifest_of(folder):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        return json.load(file)


def newest_published(cluster, nodes, job_id):
    """The newest name that any of the disks has with a manifest and a mark; empty: none."""
    names = []
    for node in nodes:
        folder = checkpoints_folder(cluster, node, job_id)
        names += [name for _, _, name in published_checkpoints(folder or "")
                  if os.path.exists(os.path.join(folder, name, "mark"))]
    return max(names, key=place_of, default="")


def digests_of(cluster, nodes, job_id, step):
    """Of every rank's file of the checkpoint of this step, by name; None: no disk has its manifest."""
    for node in nodes:
        folder = checkpoints_folder(cluster, node, job_id)
        for _, at, name in reversed(published_checkpoints(folder or "")):
            if at == step:
                return {entry["name"]: entry["blocks_sha256"] for entry in manifest_of(os.path.join(folder, name))["files"]}
    return None


# ---- processes ----
def children_of(parents):
    """(pid, words of its command) of every process beneath these, however deep."""
    found, known, everyone = [], set(parents), list(processes())
    while True:
        new = [pid for pid, parent, _ in everyone if parent in known and pid not in known]
        if not new:
            return found
        known.update(new)
        for pid in new:
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                    found.append((pid, file.read().split("\0")))
            except OSError:
                pass   # it has ended


def file_carriers(cluster, nodes, kinds=("files-child", "carry-child")):
    """Processes that keep, give, bring or carry files: children of workers that are no ranks."""
    parents = [cluster.workers[node].pid for node in nodes if cluster.workers[node].alive()]
    return [pid for pid, words in children_of(parents) if len(words) > 1 and words[1] in kinds]


def kill_all(cluster, nodes):
    """Coordinator, workers, ranks and what else they started, as if all machines had lost their power at once."""
    daemons = [cluster.coordinator, *(cluster.workers[node] for node in nodes)]
    pids = [daemon.pid for daemon in daemons] + [pid for pid, _ in children_of([daemon.pid for daemon in daemons])]
    random.shuffle(pids)
    kill(pids)
    for daemon in daemons:
        daemon.process.wait()


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass   # it died with another one


def start_all(cluster, nodes, device):
    cluster.start_coordinator()
    for node in nodes:
        cluster.start_worker(node, [device])
    cluster.wait_for_nodes(nodes)


# ---- bytes that files processes send ----
class FilesTraffic:
    """Counts what leaves each node from the port of its files process, packets' headers and TLS included, by a rule of nft in the
    node's namespace. A process that was started again has another port: look() again."""

    def __init__(self, cluster, nodes):
        self.cluster, self.ports = cluster, {node: set() for node in nodes}
        for node in nodes:
            self.nft(node, "add table inet carried; add chain inet carried leaving { type filter hook output priority 0; }")

    def nft(self, node, *words):
        done = subprocess.run([*self.cluster.network.inside(node), "nft", *words], capture_output=True, text=True, check=True)
        return done.stdout

    def look(self):
        """True: every node has a files process whose port is counted."""
        for node, known in self.ports.items():
            for pid in file_carriers(self.cluster, [node]):
                for port in listening_ports(pid) - known:
                    self.nft(node, f"add rule inet carried leaving tcp sport {port} counter")
                    known.add(port)
        return all(self.ports.values())

    def bytes(self):
        """By node: what it has given."""
        said = {node: json.loads(self.nft(node, "-j", "list", "chain", "inet", "carried", "leaving")) for node in self.ports}
        return {node: sum(word["counter"]["bytes"] for entry in rules["nftables"]
                          for word in entry.get("rule", {}).get("expr", []) if "counter" in word) for node, rules in said.items()}

    def total(self):
        return sum(self.bytes().values())


def listening_ports(pid):
    """TCP ports of this process, by its sockets' numbers in the table of its network."""
    rows = []
    try:
        links = [os.readlink(path) for path in glob.glob(f"/proc/{pid}/fd/*")]
        for name in ("tcp", "tcp6"):
            with open(f"/proc/{pid}/net/{name}", encoding="ascii") as file:
                rows += [row.split() for row in file.readlines()[1:]]
    except OSError:
        return set()
    inodes = {link[len("socket:["):-1] for link in links if link.startswith("socket:[")}
    listening = "0A"
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == listening and row[9] in inodes}


def network_refusal():
    import netns
    return netns.why_not()
