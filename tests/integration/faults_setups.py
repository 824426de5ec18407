"""A worker that cannot come when a lab first starts: its own log names what is wrong and what helps, the healthy node trains, and it comes
by itself once that is mended. Needs what netns.py and mounts.py need.

The worker is started again as its unit does it: unless it ended with a status that is for good there.
"""
import os
import re
import subprocess
import time

import mounts
import netns
from faults_common import PACED, expect_holds, paced_job, row, stop_job
from faults_first_start import states
from harness import ROOT, expect
from cluster import tail
from netns import CONTROL, DATA, NetworkCluster

NODES = {"n1": [PACED], "n2": [PACED]}
JOB = "first"
SECONDS = 90               # of each wait: longer than any answer, for hosts that are busy
NAMED_SECONDS = 20
RESTART_SECONDS = 1        # 5 in the unit
DAYS_200 = 200 * 24 * 3600
NAME = "hub"               # of the coordinator's machine, where a case calls it so
UNIT = os.path.join(ROOT, "deploy", "systemd", "motley-worker.service.in")


def for_good():
    """The exit statuses after which the unit leaves the worker down."""
    with open(UNIT, encoding="utf-8") as file:
        return {int(code) for code in re.search(r"^RestartPreventExitStatus=(.*)$", file.read(), re.MULTILINE)[1].split()}


class SetupsCluster(NetworkCluster):
    """n2 has a file of hosts and a clock of its own."""

    def __init__(self):
        super().__init__(NODES)
        self.hosts, self.shift = os.path.join(self.top, "hosts"), os.path.join(self.top, "shift")
        self.know()
        self.shift_clock(0)
        source = os.path.join(ROOT, "tests", "integration", "shifted_clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", os.path.join(self.top, "shifted_clock.so"), source, "-ldl"], check=True)

    def know(self, *lines):
        """What n2's /etc/hosts says besides."""
        with open(self.hosts, "w", encoding="utf-8") as file:   # in place: it is mounted
            file.write("\n".join(("127.0.0.1 localhost", *lines, "")))

    def shift_clock(self, seconds):
        """Of n2, from its worker's next start on."""
        with open(self.shift, "w", encoding="utf-8") as file:
            file.write(str(seconds))

    def placed(self, name, command):
        if name == "worker-n2":
            # By a folder to search: blanks part the names in LD_PRELOAD, and folders may have them.
            command = ["env", f"SHIFTED_CLOCK={self.shift}", f"LD_LIBRARY_PATH={self.top}", "LD_PRELOAD=shifted_clock.so", *command]
            command = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', self.hosts, *command]
        return super().placed(name, command)

    def drop_port(self, host, port, sender):
        """A firewall before one port: what `sender` sends there is lost."""
        netns.run([*self.network.inside(host), "nft", f"add rule inet cut arriving ip saddr {self.network.address(sender, CONTROL)} "
                   f"tcp dport {port} drop"])


class Case:
    """`settings`: of worker.*, as they are set wrongly. `break_it` and `mend` are called with the cluster and may be None."""

    def __init__(self, words, settings=None, break_it=None, mend=None):
        self.words, self.settings = words, settings or {}
        self.break_it, self.mend = break_it or (lambda cluster: None), mend or (lambda cluster: cluster.network.heal())


NO_CARD = ["cannot listen on worker.data_address {address}", "no card of this machine has it", "`ip -brief address`"]
JOIN = "join again: motley-worker --join TOKEN"
BY_NAME = {"coordinator": NAME + ":{port}"}

CASES = {
    "a closed workers' port": Case(["coordinator at {coordinator}: no answer for 3 s", "let TCP port {port} through"],
                                   break_it=lambda cluster: cluster.drop_port("coordinator", cluster.workers_port, "n2")),
    "what the coordinator sends to a node is lost": Case(["coordinator at {coordinator}: no answer for 3 s", "a firewall"],
                                                         break_it=lambda cluster: cluster.network.cut("coordinator", "n2", CONTROL)),
    "a data address of no card": Case(NO_CARD, {"data_address": "10.77.1.99"}),
    "the other node's data address": Case(NO_CARD, {"data_address": "{other}"}),
    "a name for a data address": Case(["worker.data_address must be a numeric address of this node (`ip -brief address` lists them), got 'n2'"],
                                      {"data_address": "n2"}, break_it=lambda cluster: cluster.know("127.0.1.1 n2")),
    "a coordinator's name that nobody knows": Case(["the name hub is not known here", "/etc/hosts"], BY_NAME,
                                                   mend=lambda cluster: cluster.know(f"{cluster.host} {NAME}")),
    # n1's address is nearer to n2's and is tried first.
    "a coordinator's name that stands for a dead address, too": Case(
        ["in session with the coordinator at hub:"], BY_NAME,
        break_it=lambda cluster: (cluster.network.cut("n2", "n1", CONTROL),
                                  cluster.know(f"{cluster.network.address('n1', CONTROL)} {NAME}", f"{cluster.host} {NAME}"))),
    "a clock that is ahead": Case(["certificate expired on", "set the clock where it is ahead, else " + JOIN],
                                  break_it=lambda cluster: cluster.shift_clock(DAYS_200), mend=lambda cluster: cluster.shift_clock(0)),
    "a clock that is behind": Case(["certificate is valid from", "set the clock where it is behind, else " + JOIN],
                                   break_it=lambda cluster: cluster.shift_clock(-DAYS_200), mend=lambda cluster: cluster.shift_clock(0)),
}
DAILY = ("a closed workers' port",)
STAYS_WRONG = {"coordinator"}   # of the settings: right once the machine is mended


class Unit:
    """n2's worker, as systemd keeps it."""

    def __init__(self, cluster, settings):
        self.cluster, self.settings, self.ended_for_good = cluster, settings, False
        self.start()

    def start(self):
        self.ended_for_good = False
        self.cluster.start_worker("n2", NODES["n2"], **self.settings)

    def turn(self):
        """To be called from time to time."""
        status = self.cluster.workers["n2"].process.poll()
        if status is None or self.ended_for_good:
            return
        self.ended_for_good = status in for_good()
        if not self.ended_for_good:
            time.sleep(RESTART_SECONDS)
            self.start()


def log_of(cluster, offset):
    with open(cluster.path("worker-n2.log"), "rb") as file:
        file.seek(offset)
        return file.read().decode(errors="replace")


def log_bytes(cluster):
    path = cluster.path("worker-n2.log")
    return os.path.getsize(path) if os.path.exists(path) else 0


def step_of(cluster):
    return int(cluster.job(JOB).get("step", 0))


def comes_late(cluster, name, case):
    """One case, beside the job of n1. n2 is gone again afterwards."""
    known = {"coordinator": cluster.workers_address, "port": cluster.workers_port, "other": cluster.network.address("n1", DATA)}
    settings = {key: value.format(**known) for key, value in case.settings.items()}
    words = [word.format(address=settings.get("data_address"), **known) for word in case.words]
    case.break_it(cluster)
    offset, begin = log_bytes(cluster), time.monotonic()
    unit = Unit(cluster, settings)
    try:
        def is_named():
            unit.turn()
            return all(word in log_of(cluster, offset) for word in words)

        cluster.wait_for(is_named, SECONDS, f"n2's log to say {words}")
        seconds = time.monotonic() - begin
        if "in session" not in words[0]:
            cluster.wait_for_step(JOB, step_of(cluster) + 3, SECONDS)
            expect(states(cluster)["n1"] == "training" and states(cluster).get("n2") != "training", f"{states(cluster)}")
        case.mend(cluster)
        for key in list(settings):
            if key not in STAYS_WRONG:
                del settings[key]
        if unit.ended_for_good:
            unit.start()   # by whoever has mended the file

        def both_train():
            unit.turn()
            return states(cluster) == {"n1": "training", "n2": "training"}

        cluster.wait_for(both_train, 2 * SECONDS, f"both nodes to train; n2's log ends with\n{tail(cluster.path('worker-n2.log'))}")
        cluster.wait_for_step(JOB, step_of(cluster) + 3, SECONDS)   # one that goes in the swap waits longer the next time
        expect(not cluster.event_messages("rank_hung", JOB), "a rank was taken for hung")
    finally:
        cluster.workers["n2"].stop()
        cluster.network.heal()
        cluster.know()
        cluster.shift_clock(0)
    print(f"    {name}: named after {seconds:.1f} s", flush=True)
    expect_holds([row(f"{name}: named", seconds, "s", NAMED_SECONDS)], [])


def late_nodes(results, names):
    """All in one cluster, in which n1 trains."""
    asked = [name for name in names if results.is_asked(f"first start: {name}")]
    left_out = netns.why_not() or mounts.why_not()
    if left_out or not asked:
        for name in asked:
            results.skip(f"first start: {name}", left_out)
        return
    with SetupsCluster() as cluster:
        cluster.start({"n1": NODES["n1"]})
        cluster.identity("n2")
        paced_job(cluster, JOB, training__steps=1_000_000, checkpoint__interval=10)
        cluster.wait_for_step(JOB, 3, SECONDS)
        for name in asked:
            results.prepare(f"first start: {name}", comes_late, cluster, name, CASES[name])
        stop_job(cluster, JOB)


# ---- what needs a cluster of its own ----
def cut_at_submit(sender, receiver):
    """The control plane, one way, when both are ready and the job has just been submitted."""
    with SetupsCluster() as cluster:
        cluster.start(NODES)
        cluster.network.cut(sender, receiver, CONTROL)
        offset, begin = log_bytes(cluster), time.monotonic()
        paced_job(cluster, JOB, training__steps=1_000_000, checkpoint__interval=10)

        def is_named():
            node = next(node for node in cluster.nodes() if node["name"] == "n2")
            return node["state"] == "lost" and node["reason"] and "the way from it closed?" in log_of(cluster, offset)

        cluster.wait_for(is_named, SECONDS, "n2 to be lost and to say why")
        named = time.monotonic() - begin
        cluster.wait_for_step(JOB, 3, SECONDS)
        trains = time.monotonic() - begin
        expect(states(cluster)["n1"] == "training", f"{states(cluster)}")
        cluster.network.heal()
        cluster.wait_for(lambda: states(cluster) == {"n1": "training", "n2": "training"}, 2 * SECONDS, "both nodes to train")
        stop_job(cluster, JOB)
    print(f"    named after {named:.1f} s, n1 has made 3 steps after {trains:.1f} s", flush=True)
    expect_holds([row("named", named, "s", NAMED_SECONDS), row("trains", trains, "s", 2 * NAMED_SECONDS)], [])


BRIDGE = "172.17.0.1"   # that Docker gives to every machine


def one_address_twice():
    """Both tell the address of a bridge that both have."""
    with NetworkCluster(NODES) as cluster:
        for node in NODES:
            inside = cluster.network.inside(node)
            netns.run([*inside, "ip", "link", "add", "docker0", "type", "bridge"])
            netns.run([*inside, "ip", "address", "add", f"{BRIDGE}/16", "dev", "docker0"])
            netns.run([*inside, "ip", "link", "set", "docker0", "up"])
        cluster.start_coordinator()
        for node in NODES:
            cluster.start_worker(node, NODES[node], data_address=BRIDGE)
        cluster.wait_for_nodes(NODES)
        begin = time.monotonic()
        paced_job(cluster, JOB, training__steps=1_000_000, checkpoint__interval=10)
        said = cluster.wait_for(lambda: cluster.event_messages("device_left_out", JOB), SECONDS, "somebody to be left out")[0]
        seconds = time.monotonic() - begin
        for words in (f"its data address {BRIDGE} is also that of node n", "set worker.data_address"):
            expect(words in said, f"{words} is not in: {said}")
        cluster.wait_for_step(JOB, 3, SECONDS)
        expect(sorted(states(cluster).values()) == ["refused", "training"], f"{states(cluster)}")
        for node in NODES:
            cluster.workers[node].stop()
            cluster.start_worker(node, NODES[node])
        cluster.wait_for(lambda: states(cluster) == {"n1": "training", "n2": "training"}, 2 * SECONDS, "both nodes to train")
        stop_job(cluster, JOB)
    print(f"    named after {seconds:.1f} s", flush=True)
    expect_holds([row("named", seconds, "s", NAMED_SECONDS)], [])


class HubCluster(SetupsCluster):
    """The coordinator's machine has a name, which its own /etc/hosts gives to loopback, as Debian's installer writes it."""

    def placed(self, name, command):
        if name == "coordinator":
            path = os.path.join(self.top, "hosts-of-hub")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"127.0.0.1 localhost\n127.0.1.1 {NAME}\n")
            command = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', path, *command]
        return super().placed(name, command)


def coordinator_by_its_own_name():
    with HubCluster() as cluster:
        cluster.start_coordinator()
        cluster.identity("n2")
        cluster.coordinator.stop()
        number, cluster.host = cluster.host, NAME
        begin = time.monotonic()
        cluster.start_coordinator()
        cluster.know(f"{number} {NAME}")
        offset = log_bytes(cluster)
        cluster.start_worker("n2", NODES["n2"])
        cluster.wait_for(lambda: f"{number}:{cluster.workers_port}: Connection refused" in log_of(cluster, offset) and
                         "is that the address of its workers.listen" in log_of(cluster, offset), SECONDS, "n2's log to say so")
        seconds = time.monotonic() - begin
        with open(cluster.path("coordinator.log"), encoding="utf-8") as file:
            expect("that name stands for 127.0.1.1 on this machine (/etc/hosts)" in file.read(), "the coordinator does not say it")
        cluster.coordinator.stop()
        cluster.host = number
        cluster.start_coordinator()
        cluster.wait_for_nodes(["n2"], SECONDS)
    print(f"    named after {seconds:.1f} s", flush=True)
    expect_holds([row("named", seconds, "s", NAMED_SECONDS)], [])


def setups(results):
    late_nodes(results, DAILY)


def setups_at_length(results):
    def run(name, test, *arguments):
        results.run(f"first start: {name}", lambda: netns.why_not() or mounts.why_not() or test(*arguments))

    late_nodes(results, [name for name in CASES if name not in DAILY])
    run("a control plane cut to a node at the submit", cut_at_submit, "coordinator", "n2")
    run("a control plane cut from a node at the submit", cut_at_submit, "n2", "coordinator")
    run("one data address told by two nodes", one_address_twice)
    run("a coordinator that listens by its own name", coordinator_by_its_own_name)
