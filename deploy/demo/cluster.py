"""A Motley cluster on this machine, for the demo and the integration tests: one coordinator, any number of workers.

Everything lives in one folder (configuration, logs, state, process ids). Daemons take any free port of loopback and say in a
file which: a port chosen before it is bound may be another's by then. They die with the process that started them, unless
`detached`.
"""
import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import time
import urllib.request

PATIENCE_SECONDS = 60   # of a start: a busy machine is slow, and a daemon that ended is noticed at once
PR_SET_PDEATHSIG = 1
SOCKET = os.path.join("people", "coordinator.sock")   # a folder of its own: the group comes to it, and to nothing else
LABEL = re.compile(r'(\w+)="([^"]*)"')
LIBC = ctypes.CDLL(None)
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def closed_to_others(path, flags):
    """For open(): a file that the user and the group read."""
    return os.open(path, flags, 0o640)


class ClusterError(Exception):
    """Message says what failed and where its log is."""


def toml_value(value):
    return json.dumps(value) if isinstance(value, (str, bool, list)) else repr(value)


def to_toml(values):
    """Plain keys first, then tables, then arrays of tables: all that the daemons' configuration needs."""
    plain = [f"{k} = {toml_value(v)}" for k, v in values.items() if not isinstance(v, (dict, list))]
    for name, table in values.items():
        if isinstance(table, dict):
            plain += ["", f"[{name}]"] + [f"{k} = {toml_value(v)}" for k, v in table.items()]
    for name, tables in values.items():
        if isinstance(tables, list):
            for table in tables:
                plain += ["", f"[[{name}]]"] + [f"{k} = {toml_value(v)}" for k, v in table.items()]
    return "\n".join(plain) + "\n"


def tail(path, lines=15):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return "".join(f"    {line}" for line in file.readlines()[-lines:])
    except OSError:
        return ""


class Daemon:
    def __init__(self, name, command, log_path, detached, addresses_path=None):
        self.name, self.command, self.log_path, self.detached = name, command, log_path, detached
        self.addresses_path = addresses_path
        self.process = None

    def start(self):
        def die_with_parent():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

        with open(self.log_path, "ab", opener=closed_to_others) as log:
            # A group of its own: Ctrl-C reaches this script alone, which then ends the daemons in order.
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                            start_new_session=True, preexec_fn=None if self.detached else die_with_parent)
        return self

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def addresses(self):
        """The addresses that it took, by name; None until it has said them. A file of an earlier process is not its own."""
        try:
            with open(self.addresses_path, encoding="utf-8") as file:
                said = json.load(file)
        except FileNotFoundError:
            return None
        return said if said["pid"] == self.pid else None

    def kill(self, signal_number=signal.SIGKILL):
        if self.alive():
            self.process.send_signal(signal_number)

    def stop(self, patience_seconds=10):
        """SIGTERM, then SIGKILL; returns the exit status."""
        if self.process is None:
            return None
        self.kill(signal.SIGTERM)
        try:
            return self.process.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.process.wait()


class Cluster:
    def __init__(self, bin_folder, folder, detached=False, file_roots=()):
        """Jobs may use files in `folder` and beneath `file_roots`."""
        self.bin, self.folder, self.detached = os.path.abspath(bin_folder), os.path.abspath(folder), detached
        for made in (self.folder, os.path.dirname(self.path(SOCKET))):
            os.makedirs(made, mode=0o750, exist_ok=True)
        self.host = "127.0.0.1"   # the coordinator's, for its workers
        self.port = self.workers_port = self.metrics_port = 0   # any; a coordinator that is started again takes its own again
        self.file_roots = [self.folder, *map(os.path.abspath, file_roots)]
        self.worker_cores = 1   # of each worker's CPU devices: all workers share this host
        self.stop_seconds = 0   # of workers: the whole cluster ends together, nobody is there to save for
        self.coordinator = None
        self.workers = {}

    @property
    def address(self):
        """For people: on the coordinator's own machine."""
        return f"127.0.0.1:{self.port}"

    @property
    def metrics_address(self):
        return f"127.0.0.1:{self.metrics_port}"

    def worker_metrics(self, name):
        """Where this node's worker serves its metrics."""
        worker = self.workers[name]
        return self.wait_for(worker.addresses, PATIENCE_SECONDS, f"the addresses of {worker.name}", worker)["metrics"]

    # ---- the daemons' metrics ----
    def device_gauges(self, metric):
        """A gauge of all workers' devices, by device; without those of workers that do not answer."""
        values = {}
        for name, worker in self.workers.items():
            said = worker.addresses() if worker.alive() else None
            for labels, value in samples(said["metrics"], metric) if said else []:
                values[f"{name}/{labels['device']}"] = value
        return values

    def job_counter(self, metric, job_id):
        """The coordinator's counter of a job, all its series added up."""
        return sum(value for labels, value in samples(self.metrics_address, metric) if labels["job_id"] == job_id)

    # ---- what a cluster on a network of its own does otherwise ----
    def data_address(self, _node):
        return "127.0.0.1"

    def placed(self, _name, command):
        """The command that runs `command` where the daemon of this name, or the command line ("motley"), has its place."""
        return command

    @property
    def workers_address(self):
        return f"{self.host}:{self.workers_port}"

    @property
    def socket(self):
        path = self.path(SOCKET)
        return path if len(path.encode()) < 108 else ""  # the longest that a Unix socket may have

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def program(self, name):
        return os.path.join(self.bin, name)

    def _daemon(self, name, program, config):
        config_path = self.path(f"{name}.toml")
        with open(config_path, "w", encoding="utf-8", opener=closed_to_others) as file:
            file.write(to_toml(config))
        addresses_path = self.path(f"{name}.addresses.json")
        command = self.placed(name, [self.program(program), "--config", config_path, "--addresses", addresses_path])
        return Daemon(name, command, self.path(f"{name}.log"), self.detached, addresses_path).start()

    def start_coordinator(self, **extra):
        config = {"server": {"socket": self.socket, "listen": self.address, "metrics": self.metrics_address},
                  "workers": {"listen": self.workers_address},
                  "state": {"folder": self.path("coordinator-state")}, **extra}
        self.coordinator = self._daemon("coordinator", "motley-coordinator", config)
        self.wait_for(self._coordinator_answers, PATIENCE_SECONDS, "the coordinator's first answer", self.coordinator)

    def _coordinator_answers(self):
        said = self.coordinator.addresses()
        if said is None:
            return False
        for attribute, name in (("port", "people"), ("workers_port", "workers"), ("metrics_port", "metrics")):
            if name in said:   # workers may have a socket alone
                setattr(self, attribute, int(said[name].rpartition(":")[2]))
        return self.try_motley("nodes") is not None

    def start_worker(self, name, devices, emulation=None, network=None, **extra):
        config = {"worker": {"name": name, "coordinator": self.workers_address, "metrics": "127.0.0.1:0",
                             "data_address": self.data_address(name), "stop_seconds": self.stop_seconds,
                             "cores": self.worker_cores, **extra},
                  "device": devices}
        config["files"] = {"roots": self.file_roots, "local": self.path(f"files-{name}")}
        if emulation:
            config["emulation"] = emulation
        if network:
            config["network"] = network
        self.workers[name] = self._daemon(f"worker-{name}", "motley-worker", config)
        return self.workers[name]

    def wait_for_nodes(self, names, seconds=PATIENCE_SECONDS):
        names = set(names)
        self.wait_for(lambda: names <= {n["name"] for n in self.nodes() if n["state"] == "ready"}, seconds,
                      f"nodes {', '.join(sorted(names))} to be ready")

    def wait_for(self, condition, seconds, what, daemon=None, poll_seconds=0.1):
        """The condition's first true value; an error that names `what` after `seconds`, or when the daemon has ended."""
        deadline = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            if daemon is not None and not daemon.alive():
                raise ClusterError(f"{daemon.name} ended with status {daemon.process.returncode}; the end of {daemon.log_path}:\n"
                                   f"{tail(daemon.log_path)}")
            if time.monotonic() > deadline:
                logs = "".join(f"  end of {d.log_path}:\n{tail(d.log_path)}" for d in self.daemons())
                raise ClusterError(f"waited {seconds} s for {what}\n{logs}")
            time.sleep(poll_seconds)

    # ---- the command line, as a user types it ----
    def run_motley(self, *arguments, timeout=120):
        command = self.placed("motley", [self.program("motley"), "--coordinator", self.address, *arguments])
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False)

    def motley(self, *arguments, timeout=120):
        """Parsed JSON of `motley -o json ...`; an error with what it printed otherwise."""
        done = self.run_motley("-o", "json", *arguments, timeout=timeout)
        if done.returncode != 0:
            raise ClusterError(f"motley {' '.join(arguments)}: status {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def try_motley(self, *arguments):
        try:
            return self.motley(*arguments, timeout=20)
        except (ClusterError, json.JSONDecodeError, subprocess.TimeoutExpired):
            return None

    def nodes(self):
        return self.motley("nodes").get("nodes", [])

    def devices(self):
        return [device for node in self.nodes() for device in node.get("devices", [])]

    def job(self, job_id):
        return self.motley("status", job_id)

    def steps(self, job_id):
        """Step records, oldest first, one for each step (the newest, where a replan repeated some)."""
        newest = {}
        for record in self.motley("metrics", job_id).get("steps", []):
            newest[int(record["step"])] = record
        return [newest[step] for step in sorted(newest)]

    def events(self, job_id=None):
        return self.motley("events", *([job_id] if job_id else [])).get("events", [])

    def submit(self, job_file, job_id, **settings):
        overrides = [part for key, value in settings.items() for part in ("--set", f"{key.replace('__', '.')}={value}")]
        return self.motley("submit", job_file, "--id", job_id, *overrides)

    # ---- the end ----
    def daemons(self):
        return [*self.workers.values(), *([self.coordinator] if self.coordinator else [])]

    def rank_pids(self):
        """Process ids of all ranks of this cluster's workers (found by their parent and program)."""
        parents = {d.pid for d in self.workers.values() if d.process}
        return [pid for pid, parent, program in processes() if program.startswith("motley-rank") and parent in parents]

    def kill_node(self, name):
        """SIGKILL for the node's worker and its ranks, as if its power were gone."""
        worker = self.workers[name]
        ranks = [pid for pid, parent, program in processes() if program.startswith("motley-rank") and parent == worker.pid]
        worker.kill()
        for pid in ranks:
            with contextlib.suppress(ProcessLookupError):   # it may die with its worker
                os.kill(pid, signal.SIGKILL)
        worker.process.wait()

    def stop(self):
        for daemon in self.daemons():
            daemon.kill(signal.SIGTERM)
        for daemon in self.daemons():
            daemon.stop()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()


def fetch(url):
    """What a daemon of ours answers: asked directly, whatever http_proxy says."""
    with DIRECT.open(url, timeout=10) as answer:
        return answer.read().decode()


def samples(address, metric):
    """(labels, value) of every series of this metric at a daemon's metrics address; none when nobody answers."""
    try:
        lines = fetch(f"http://{address}/metrics").splitlines()
    except OSError:
        return []
    return [(dict(LABEL.findall(line)), float(line.rpartition(" ")[2])) for line in lines if line.startswith(metric + "{")]


def processes():
    """(pid, parent, program name) of every process that this user may see."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    text = file.read()
            except OSError:
                continue
            name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
            if rest[0] != "Z":
                yield int(entry), int(rest[1]), name
