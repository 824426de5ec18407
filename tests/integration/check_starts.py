#!/usr/bin/env python3
"""Fresh clusters, several at once: each comes up, no two daemons share an address, and a restarted coordinator keeps its own.

usage: check_starts.py [COUNT [AT_ONCE]]
"""
import argparse
import os
import pwd
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from faults_common import PACED, last_step, newest_checkpoint, paced_job, rank_of
from harness import CPU_DEVICE, Results, TestCluster, expect, job_sections
from cluster import samples
from patience import patience

CANNOT_CREATE, TRY_AGAIN, NO_PERMISSION, WRONG_CONFIGURATION = 73, 75, 77, 78
NOBODY = NOBODYS_GROUP = 65534
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
            done = subprocess.run([*command, "--addresses", path], capture_output=True, text=True, timeout=patience(60), check=False)
            expect(done.returncode == CANNOT_CREATE and path in done.stderr,
                   f"{command}: status {done.returncode}: {done.stderr[-300:]!r}")


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def comes_to(path, group):
    """Whether another user, of this group alone, connects to the socket."""
    child = os.fork()
    if child == 0:
        refused = 1
        try:
            os.setgroups([])
            os.setgid(group)
            os.setuid(NOBODY)
            socket.socket(socket.AF_UNIX).connect(path)
            refused = 0
        finally:
            os._exit(refused)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def workers_socket(cluster):
    return os.path.join(os.path.dirname(cluster.socket), "workers.sock")


def closed_to_others():
    """State, configuration and logs are the user's and the group's, and the group commands the cluster by the socket."""
    before = os.umask(0o022)   # as accounts of people have it
    try:
        with TestCluster() as cluster:
            cluster.start({"n1": [CPU_DEVICE]})
            for top, folders, files in os.walk(cluster.folder):
                # A worker's files are as its user's umask makes them; it has none here but its addresses.
                names = [*folders, *(name for name in files if name != "worker-n1.addresses.json")]
                opened = [os.path.join(top, name) for name in names if mode_of(os.path.join(top, name)) & 0o007]
                expect(not opened, f"open to every account: {opened}")
            state = cluster.path("coordinator-state")
            # The way to the workers' socket is the group's, as to the people's; the rest is the coordinator's alone.
            workers = workers_socket(cluster)
            expect(mode_of(os.path.dirname(workers)) == 0o750 and mode_of(workers) == 0o660, "the modes of the workers' socket")
            others = [name for name in os.listdir(state) if name != "people"]
            expect(not any(mode_of(os.path.join(state, name)) & 0o077 for name in others), f"state: {others}")
            expect(mode_of(os.path.dirname(cluster.socket)) == 0o750 and mode_of(cluster.socket) == 0o660, "the socket's modes")
            if os.geteuid() != 0:
                return "the group's way to the socket: only root makes another user"
            os.chmod(cluster.top, 0o711)   # the test's own; the cluster's folder stays as it was made
            for group, enters in ((os.stat(cluster.socket).st_gid, True), (NOBODYS_GROUP, False)):
                entered = comes_to(cluster.socket, group)
                expect(entered == enters, f"group {group} {'comes' if entered else 'does not come'} to the socket")
    finally:
        os.umask(before)


def as_account(cluster, uid, group, *arguments, program="motley"):
    """motley, or another program, as another account; it is opened here, whose folder that one may not come to."""
    def become():
        os.setgroups([])
        os.setgid(group)
        os.setuid(uid)

    opened = os.open(cluster.program(program), os.O_RDONLY)
    dialed = cluster.socket if program == "motley" else workers_socket(cluster)
    try:
        return subprocess.run([program, "--coordinator", f"unix:{dialed}", *arguments], executable=f"/proc/self/fd/{opened}",
                              pass_fds=[opened], preexec_fn=become, cwd="/", capture_output=True, text=True, timeout=patience(60), check=False)
    finally:
        os.close(opened)


def jobs_have_owners():
    """Two accounts of the socket's group, the admin, and by TCP."""
    if os.geteuid() != 0:
        return "only root makes other users"
    with TestCluster() as cluster, tempfile.TemporaryDirectory() as open_folder:
        cluster.start_coordinator(server={"socket": cluster.socket, "listen": cluster.address, "metrics": cluster.metrics_address,
                                          "owners": True}, workers={"listen": ""})
        os.chmod(cluster.top, 0o711)
        os.chmod(open_folder, 0o755)
        path = shutil.copy(cluster.job_file("theirs", job_sections(cluster)), open_folder)
        os.chmod(path, 0o644)
        group, one, other = os.stat(cluster.socket).st_gid, NOBODY, NOBODY - 1

        def by(uid, *arguments):
            return as_account(cluster, uid, group, *arguments)

        submitted = by(one, "submit", path, "--id", "theirs")
        expect(submitted.returncode == 0, f"{submitted.stdout} {submitted.stderr}")
        name = pwd.getpwuid(one).pw_name
        listed = by(other, "list")
        expect(listed.returncode == 0 and name in listed.stdout and "OWNER" in listed.stdout, f"{listed.stdout} {listed.stderr}")
        for words, done in (([f"theirs is {name}'s job", "motley-admin"], by(other, "stop", "theirs")),
                            (["that is for members of group motley-admin"], by(one, "node", "token")),
                            (["by TCP is not known and may only look"], cluster.run_motley("stop", "theirs"))):
            expect(done.returncode == NO_PERMISSION and all(word in done.stderr for word in words), f"{done.returncode}: {done.stderr}")
        stopped = by(one, "stop", "theirs")
        expect(stopped.returncode == 0, f"{stopped.stdout} {stopped.stderr}")
        deleted = as_account(cluster, 0, 0, "delete", "theirs")
        expect(deleted.returncode == 0, f"root may: {deleted.stdout} {deleted.stderr}")
        with open(cluster.coordinator.log_path, encoding="utf-8") as file:
            log = file.read()
        expect("audit: root (0) DeleteJob theirs: done" in log, f"no line of the audit: {log[-500:]}")
        # A member of the group is no worker of others' jobs.
        worker = as_account(cluster, one, group, "--node", "alices", "--metrics", "", program="motley-worker")
        words = [f"you are {name} ({one})", "motley-worker", "[workers] accounts = "]
        expect(worker.returncode == WRONG_CONFIGURATION and all(word in worker.stderr for word in words),
               f"{worker.returncode}: {worker.stdout} {worker.stderr}")
        with open(cluster.coordinator.log_path, encoding="utf-8") as file:
            log = file.read()
        expect(f"audit: {name} ({one}) Session at unix:{workers_socket(cluster)}: PERMISSION_DENIED" in log, f"no line of the audit: {log[-500:]}")
        expect(not cluster.nodes(), f"{cluster.nodes()}")
    return None


def hung_up():
    """SIGHUP, as a terminal says it that closes, ends them as SIGTERM does; under nohup, which these tests may run by, it does not."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)   # daemons inherit it
    try:
        with TestCluster() as cluster:
            cluster.start({"n1": [CPU_DEVICE]})
            for daemon, words in ((cluster.workers["n1"], "told to end"), (cluster.coordinator, "stopping; a running job saves")):
                daemon.kill(signal.SIGHUP)
                status = daemon.process.wait(patience(60))
                with open(daemon.log_path, encoding="utf-8") as file:
                    log = file.read()
                expect(status == 0 and words in log, f"{daemon.name}: status {status}: {log[-500:]}")
    finally:
        signal.signal(signal.SIGHUP, before)


def signals_without_meaning():
    """SIGUSR1, SIGUSR2 and SIGALRM, as batch systems send them, end daemons as SIGTERM does; ranks do not hear them."""
    for to_worker, to_coordinator in ((signal.SIGUSR1, signal.SIGUSR2), (signal.SIGALRM, signal.SIGUSR1)):
        with TestCluster() as cluster:
            cluster.stop_seconds = 20
            cluster.start({"n1": [PACED]})
            paced_job(cluster, "long", training__steps=100000)
            cluster.wait_for_step("long", 2)
            generation = cluster.job("long")["generation"]
            os.kill(rank_of(cluster, "n1"), to_worker)
            cluster.wait_for_step("long", last_step(cluster.job("long"))[1] + 2)
            expect(cluster.job("long")["generation"] == generation, f"the rank ended of {to_worker.name}")
            for daemon, number, words in ((cluster.workers["n1"], to_worker, "told to end: ranks train here: they may save first"),
                                          (cluster.coordinator, to_coordinator, "stopping; a running job saves")):
                daemon.kill(number)
                status = daemon.process.wait(patience(60))
                with open(daemon.log_path, encoding="utf-8") as file:
                    log = file.read()
                expect(status == 0 and words in log, f"{daemon.name} after {number.name}: status {status}: {log[-500:]}")
            expect(newest_checkpoint(cluster, "long") > 0, "nothing was saved")


def without_standard_streams():
    """Descriptors 0 to 2 closed: no file and no socket of theirs has such a number, which the log would be written into."""
    def without(name, command):
        return command if name == "motley" else ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command]

    with TestCluster() as cluster:
        cluster.placed = without
        cluster.start({"n1": [CPU_DEVICE]})
        follows = subprocess.Popen(without("follows", [cluster.program("motley"), "--coordinator", cluster.address, "events", "--follow"]))
        try:
            cluster.wait_for(lambda: len(os.listdir(f"/proc/{follows.pid}/fd")) > 3, 20, "the client to connect")
            for name, pid in (("coordinator", cluster.coordinator.pid), ("worker", cluster.workers["n1"].pid), ("motley", follows.pid)):
                held = [os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)]
                expect(held == ["/dev/null"] * 3, f"{name}: {held}")
        finally:
            follows.kill()
            follows.wait()


def files_that_may_not_grow():
    """Under a limit of files (ulimit -f, LimitFSIZE) the coordinator says so and takes jobs again when it is raised."""
    with TestCluster() as cluster:
        cluster.start_coordinator()
        pid, path = cluster.coordinator.pid, cluster.job_file("one", job_sections(cluster))
        soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, hard))
        refused = cluster.run_motley("submit", path, "--id", "one")
        expect(refused.returncode == TRY_AGAIN and "LimitFSIZE" in refused.stderr, f"{refused.returncode}: {refused.stderr}")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
        taken = cluster.run_motley("submit", path, "--id", "one")
        expect(taken.returncode == 0, f"{taken.returncode}: {taken.stderr}")


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
    results.run("files are closed to other accounts, the socket is open to the group", closed_to_others)
    results.run("jobs have owners", jobs_have_owners)
    results.run("a terminal that closes", hung_up)
    results.run("signals without a meaning", signals_without_meaning)
    results.run("no standard streams", without_standard_streams)
    results.run("files that may not grow", files_that_may_not_grow)
    results.exit()


if __name__ == "__main__":
    sys.exit(main())
