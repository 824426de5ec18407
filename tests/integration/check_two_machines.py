#!/usr/bin/env python3
"""docs/use/two-machines.md, as it stands: its configuration files and its way to join on two hosts of a network of namespaces, what
`motley doctor` says of them, and a job on both."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from harness import BIN, ROOT, Results, expect, make_text
from cluster import Daemon
import netns
from patience import patience

PAGE = os.path.join(ROOT, "docs", "use", "two-machines.md")
HOSTS = ["a", "b"]
STEPS = os.environ.get("MOTLEY_STEPS", "5")   # of the job that is listened to; 600 are ten thousand frames


def files_of_page():
    """The indented TOML after the line that names each file."""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    found = dict(re.findall(r"^`/etc/motley/(\w+)\.toml`[^\n]*:\n\n((?:    [^\n]*\n|\n)+)", text, re.MULTILINE))
    expect(set(found) == {"coordinator", "worker"}, f"{PAGE} names {sorted(found)}")
    join = re.findall(r"^    motley-worker (--join TOKEN .*)$", text, re.MULTILINE)
    expect(len(join) == 1, f"{PAGE} joins {len(join)} times")
    roots = re.findall(r"^      \[files\]\n      (roots = .*)$", text, re.MULTILINE)
    expect(len(roots) == 1, f"{PAGE} says the roots {len(roots)} times")
    job = re.findall(r"^On A, .*`job.toml`.*:\n\n((?:    [^\n]*\n|\n)+)", text, re.MULTILINE)
    commands = re.findall(r"^    motley ((?:submit job|export first|files first).*)$", text, re.MULTILINE)
    expect(len(job) == 1 and len(commands) == 3, f"{PAGE} has {len(job)} jobs and {commands}")
    return {"join": join[0], "roots": roots[0], "job": re.sub(r"^    ", "", job[0], flags=re.MULTILINE), "commands": commands,
            **{name: re.sub(r"^    ", "", body, flags=re.MULTILINE) for name, body in found.items()}}


# Every frame that a host sends or receives, each behind its length; at the end, how many there was no room for.
LISTEN = """import signal, socket, struct, sys
SO_RCVBUFFORCE, SOL_PACKET, PACKET_STATISTICS = 33, 263, 6
line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
line.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 512 << 20)
line.settimeout(0.2)
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
with open(sys.argv[1], "wb") as file:
    print("listening", flush=True)
    while True:
        try:
            frame = line.recv(1 << 16)
        except TimeoutError:
            if ended: break
            continue
        file.write(struct.pack("<I", len(frame)) + frame)
print(struct.unpack("II", line.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1])
"""


def frames_of(path):
    with open(path, "rb") as file:
        while len(size := file.read(4)) == 4:
            yield file.read(struct.unpack("<I", size)[0])


def is_of_port(frame, port):
    """Of TCP over IPv4 over Ethernet."""
    if frame[12:14] != b"\x08\x00" or frame[23] != 6:
        return False
    tcp = 14 + 4 * (frame[14] & 15)
    return port in struct.unpack("!HH", frame[tcp:tcp + 4])


class Eavesdropper:
    """On one host's line, until it is asked."""

    def __init__(self, machines, host):
        self.path = os.path.join(machines.top, "frames")
        self.process = subprocess.Popen([*machines.network.inside(host), sys.executable, "-c", LISTEN, self.path], stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def heard(self):
        """Every frame until the line is silent for a moment."""
        self.process.terminate()
        lost = self.process.communicate(timeout=patience(60))[0]
        expect(self.process.returncode == 0, "the listener failed")
        if int(lost):
            print(f"    {int(lost)} frames were lost", flush=True)
        return list(frames_of(self.path))


class TwoMachines:
    def __init__(self, top):
        self.token = ""
        self.top, self.network, self.daemons, self.pages = top, netns.Network(HOSTS), [], files_of_page()
        self.socket, self.workers_socket = os.path.join(top, "c.sock"), os.path.join(top, "w.sock")
        os.makedirs(os.path.join(top, "motley", "checkpoints"))
        make_text(os.path.join(top, "motley", "text"))

    def here(self, text):
        """With this network's addresses and this test's folder in place of the page's."""
        for theirs, ours in (("10.0.0.1", self.network.address("a", netns.CONTROL)), ("/srv/motley", os.path.join(self.top, "motley")),
                             ("/run/motley/workers.sock", self.workers_socket)):
            text = text.replace(theirs, ours)
        return text

    def config(self, page):
        path = os.path.join(self.top, f"{page}.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.here(self.pages[page]))
        return path

    def with_roots(self, host):
        """The worker's configuration, and what the page adds to it for a shared folder."""
        path = os.path.join(self.top, f"worker-{host}.toml") if host != "a" else self.config("worker")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        roots = self.here(self.pages["roots"])
        written = re.sub(r"^roots = .*$", roots, text, flags=re.MULTILINE)
        with open(path, "w", encoding="utf-8") as file:
            file.write(written if written != text else f"{text}\n[files]\n{roots}\n")
        return path

    def restart_with_roots(self):
        for daemon in [daemon for daemon in self.daemons if daemon.name.startswith("motley-worker")]:
            daemon.stop()
            self.daemons.remove(daemon)
        for host in HOSTS:
            self.start(host, "motley-worker", self.with_roots(host))
        self.wait_for_ready(2)

    def join(self, host):
        """By the page's command; the worker's configuration that it wrote."""
        self.token, path = self.motley("node", "token").stdout.strip(), os.path.join(self.top, f"worker-{host}.toml")
        words = self.here(self.pages["join"]).replace("TOKEN", self.token).split()
        command = [*self.network.inside(host), os.path.join(BIN, "motley-worker"), *words, "--node", host, "--config", path,
                   "--identity", os.path.join(self.top, f"identity-{host}")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience(60))
        expect(done.returncode == 0 and f"start it: motley-worker --config {path}" in done.stdout, f"{done.stdout} {done.stderr}")
        return path

    def start(self, host, program, config, *flags):
        command = [*self.network.inside(host), os.path.join(BIN, program), "--config", config, *flags]
        self.daemons.append(Daemon(f"{program} on {host}", command, os.path.join(self.top, f"{program}-{host}.log"), detached=False).start())

    def motley(self, *arguments):
        return subprocess.run([*self.network.inside("a"), os.path.join(BIN, "motley"), "--coordinator", f"unix:{self.socket}", *arguments],
                              capture_output=True, text=True, check=False, timeout=patience(600))

    def wait_for_ready(self, nodes):
        deadline = time.monotonic() + patience(30)
        while self.motley("nodes").stdout.count("ready") < nodes:
            expect(time.monotonic() < deadline, f"{self.motley('nodes')}; {dict(self.logs())}")
            time.sleep(0.2)

    def end(self):
        for daemon in reversed(self.daemons):
            daemon.kill()
            daemon.process.wait()
        self.network.end()

    def logs(self):
        for daemon in self.daemons:
            with open(daemon.log_path, encoding="utf-8", errors="replace") as file:
                yield daemon.name, file.read()


def doctor(machines, shared):
    paths = ("--data", f"{shared}/text", "--folder", f"{shared}/checkpoints")
    well = machines.motley("doctor", *paths)
    expect(well.returncode == 0, f"{well.stdout} {well.stderr}; {dict(machines.logs())}")
    for words in ("every node reaches every other", "2 ways measured", "the same on 2 nodes", "all 2 nodes write it"):
        expect(words in well.stdout, f"{words}: {well.stdout}")
    expect(not [name for name in os.listdir(f"{shared}/checkpoints") if "token" not in name], "nothing but tokens is written")
    machines.network.refuse_connections("b")
    refused = machines.motley("doctor", "-o", "json")
    report = json.loads(refused.stdout)
    expect(refused.returncode == 65 and report["state"] == "wrong", f"{refused.stdout} {refused.stderr}")
    texts = [finding["text"] for finding in report["findings"] if finding["state"] == "wrong"]
    expect(len(texts) == 1 and "tried from a: node b is not reached at" in texts[0] and "ip_local_port_range" in texts[0], f"{texts}")
    rates = {(link["from"], link["to"]): link["bytes_per_second"] for link in report["links"]}
    expect(rates["a", "b"] is None and rates["b", "a"] > 0, f"{rates}")
    outside = machines.motley("doctor", "--folder", "/elsewhere")
    expect(outside.returncode == 65 and "roots in [files]" in outside.stdout, f"{outside.stdout} {outside.stderr}")
    machines.network.heal()
    again = machines.motley("doctor")
    expect(again.returncode == 0, f"{again.stdout} {again.stderr}")
    deadline = time.monotonic() + patience(10)
    while os.listdir(f"{shared}/checkpoints"):
        expect(time.monotonic() < deadline, f"the tokens are removed: {os.listdir(f'{shared}/checkpoints')}")
        time.sleep(0.1)


def in_clear(frames, machines, shared):
    """Nothing of what the sessions say: neither the token, nor of the job whose text goes to b."""
    sessions = [frame for frame in frames if is_of_port(frame, 7073)]
    expect(len(sessions) > 100 and len(frames) > len(sessions), f"{len(frames)} frames, {len(sessions)} of sessions")
    print(f"    {len(frames)} frames were listened to, {len(sessions)} of them at the workers' port", flush=True)
    # What is in clear by design: the name that is dialed, and the ranks' data. So it was listened to.
    expect(any(b"coordinator.motley" in frame for frame in sessions), "no TLS begins")
    expect(any(b"MOTLEY-h" in frame for frame in frames), "no ranks meet")
    secret = machines.token.rpartition(".")[2].encode()
    expect(not any(secret in frame for frame in frames), "the token's secret was heard")
    for words in (b"checkpoints", f"{shared}/text".encode(), b"forward", b"cpu0", b"embedding"):
        expect(not any(words in frame for frame in sessions), f"{words} was heard")


def without_a_share(machines, top):
    """The page's job and commands: its data is on no node, one node comes by a Unix socket, the other one by TLS."""
    laptop = os.path.join(top, "laptop")
    os.makedirs(laptop)
    make_text(os.path.join(laptop, "words.txt"))
    with open(os.path.join(laptop, "job.toml"), "w", encoding="utf-8") as file:
        file.write(machines.pages["job"])
    submit, export, files = (command.replace("job.toml", os.path.join(laptop, "job.toml")).replace("--out model", f"--out {laptop}/model").split()
                             for command in machines.pages["commands"])
    done = machines.motley(*submit, "--set", f"training.steps={STEPS}")
    expect(done.returncode == 0 and "words.txt, " in done.stdout, f"{done.stdout[-1000:]} {done.stderr[-1000:]}; {dict(machines.logs())}")
    expect("words.txt is not on nodes a, b: it comes from here" in done.stderr, done.stderr)
    plan = machines.motley("plan", "first").stdout
    expect("a/" in plan and "b/" in plan, f"both machines train: {plan}")
    exported = machines.motley(*export)
    expect(exported.returncode == 0 and "model.safetensors" in os.listdir(os.path.join(laptop, "model")), f"{exported.stdout} {exported.stderr}")
    listed = machines.motley(*files)
    expect(listed.returncode == 0 and "words.txt" in listed.stdout and f"step-{int(STEPS):08}" in listed.stdout, f"{listed.stdout} {listed.stderr}")


def with_a_share(machines, top):
    shared = os.path.join(top, "motley")
    machines.restart_with_roots()
    doctor(machines, shared)
    done = machines.motley("submit", os.path.join(ROOT, "deploy", "examples", "gpt-text.toml"), "--wait", "--id", "two",
                           "--set", f"data.path={shared}/text", "--set", f"checkpoint.folder={shared}/checkpoints",
                           "--set", f"training.steps={STEPS}", "--set", "model.flavor=debug", "--set", "training.seq_len=32")
    expect(done.returncode == 0, f"{done.stdout[-1000:]} {done.stderr[-1000:]}; {dict(machines.logs())}")
    plan = machines.motley("plan", "two").stdout
    expect("a/" in plan and "b/" in plan, f"both machines train: {plan}")


def as_the_page_says(top):
    machines, line = TwoMachines(top), None
    try:
        machines.start("a", "motley-coordinator", machines.config("coordinator"), "--socket", machines.socket,
                       "--workers-socket", machines.workers_socket, "--state-dir", os.path.join(top, "state"))
        machines.start("a", "motley-worker", machines.config("worker"))
        machines.wait_for_ready(1)
        line = Eavesdropper(machines, "a")
        machines.start("b", "motley-worker", machines.join("b"))
        machines.wait_for_ready(2)
        without_a_share(machines, top)
        with_a_share(machines, top)
        in_clear(line.heard(), machines, os.path.join(top, "motley"))
    finally:
        if line is not None:
            line.process.kill()
        machines.end()


def main():
    results = Results("two machines")
    reason = netns.why_not()
    if reason:
        results.skip("the page's files on two hosts", reason)
        results.exit()
    top = tempfile.mkdtemp(prefix="motley-two-machines-")
    try:
        results.run("the page's files on two hosts", as_the_page_says, top)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    results.exit()


if __name__ == "__main__":
    sys.exit(main())
