"""A network of namespaces that tests can cut, and a cluster that lives on it. Needs root, nft and ip.

Every host has a control address and a data address on one bridge. A cut drops packets where they would arrive, without a word to
the sender, as a firewall or a broken switch does. The namespaces live as long as this process: nothing is left behind.
"""
import os
import shutil
import subprocess
import time

from harness import TestCluster
from cluster import ClusterError, LIBC, PR_SET_PDEATHSIG  # the harness knows where
from patience import patience

CONTROL, DATA = "control", "data"
PLANES = {CONTROL: 0, DATA: 1}
SIGKILL = 9


def why_not():
    """Why this machine can have no such network, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [program for program in ("ip", "nft", "nsenter", "unshare") if not shutil.which(program)]
    if missing:
        return f"no {', '.join(missing)} here"
    if subprocess.run(["unshare", "-n", "nft", "add", "table", "inet", "probe"], capture_output=True, check=False).returncode != 0:
        return "not allowed to make network namespaces here"
    return None


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(command)}: {done.stderr.strip()}")


class Network:
    """Hosts by name, joined by one bridge."""

    def __init__(self, hosts):
        self.holders = {}
        self.numbers = {host: i + 1 for i, host in enumerate(hosts)}
        hub = self._namespace("a bridge")
        run([*hub, "ip", "link", "add", "bridge", "type", "bridge"])
        run([*hub, "ip", "link", "set", "bridge", "up"])
        for host, number in self.numbers.items():
            inside = self._namespace(host)
            run([*hub, "ip", "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", str(self.holders[host].pid)])
            run([*hub, "ip", "link", "set", f"port{number}", "master", "bridge", "up"])
            run([*inside, "ip", "link", "set", "lo", "up"])
            for plane in PLANES:
                run([*inside, "ip", "address", "add", f"{self.address(host, plane)}/24", "dev", "eth0"])
            run([*inside, "ip", "link", "set", "eth0", "up"])
            run([*inside, "nft", "add table inet cut; add chain inet cut arriving { type filter hook input priority 0; }"])

    def _namespace(self, name):
        def die_with_parent():
            LIBC.prctl(PR_SET_PDEATHSIG, SIGKILL)

        holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"], preexec_fn=die_with_parent)
        self.holders[name] = holder
        deadline = time.monotonic() + patience(10)
        while os.readlink(f"/proc/{holder.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            if holder.poll() is not None or time.monotonic() > deadline:
                raise ClusterError("unshare made no network namespace")
            time.sleep(0.01)
        return self.inside(name)

    def inside(self, host):
        """The words before a command that runs on the host."""
        return ["nsenter", f"--net=/proc/{self.holders[host].pid}/ns/net"]

    def address(self, host, plane):
        return f"10.77.{PLANES[plane]}.{self.numbers[host]}"

    def cut(self, sender, receiver, plane):
        """What `sender` sends to `receiver` on this plane is lost, until heal()."""
        run([*self.inside(receiver), "nft", f"add rule inet cut arriving ip saddr {self.address(sender, plane)} "
             f"ip daddr {self.address(receiver, plane)} drop"])

    def refuse_data(self, host):
        """A firewall before the host's data address: nothing reaches it."""
        run([*self.inside(host), "nft", f"add rule inet cut arriving ip daddr {self.address(host, DATA)} "
             f"ip saddr != {self.address(host, DATA)} drop"])

    def refuse_connections(self, host):
        """A firewall before the host: what it dials itself goes on, nobody dials it."""
        run([*self.inside(host), "nft", 'add rule inet cut arriving iifname "eth0" tcp flags & (syn | ack) == syn drop'])

    def alter(self, sender, receiver):
        """A byte of each large packet of what `sender` sends to `receiver` between ranks becomes another one, and TCP's sum with it."""
        run([*self.inside(receiver), "nft", f"add rule inet cut arriving ip saddr {self.address(sender, DATA)} "
             f"ip daddr {self.address(receiver, DATA)} meta length > 1000 @th,800,8 set 0xa5"])

    def heal(self):
        for host in self.numbers:
            run([*self.inside(host), "nft", "flush chain inet cut arriving"])

    def end(self):
        for holder in self.holders.values():
            holder.kill()
            holder.wait()


class NetworkCluster(TestCluster):
    """Coordinator and command line on host "coordinator", each worker on the host of its name."""

    def __init__(self, nodes):
        super().__init__()
        self.network = Network(["coordinator", *nodes])
        self.host = self.network.address("coordinator", CONTROL)

    def placed(self, name, command):
        host = name.removeprefix("worker-")
        return [*self.network.inside("coordinator" if host == "motley" else host), *command]

    def data_address(self, node):
        return self.network.address(node, DATA)

    def identity(self, name):
        """The folder of the node's key and certificate. It joins by a token the first time that it is asked for."""
        folder = self.path(f"identity-{name}")
        if not os.path.exists(os.path.join(folder, "node.crt")):
            token = self.run_motley("node", "token").stdout.strip()
            run(self.placed(f"worker-{name}", [self.program("motley-worker"), "--join", token, "--coordinator", self.workers_address,
                                               "--node", name, "--identity", folder, "--config", self.path(f"joined-{name}.toml")]))
        return folder

    def start_worker(self, name, devices, emulation=None, **extra):
        return super().start_worker(name, devices, emulation, insecure=True, identity=self.identity(name), **extra)

    def __exit__(self, *unused):
        super().__exit__(*unused)
        self.network.end()
