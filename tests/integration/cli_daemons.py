"""The command line's cases of daemons: ports, sockets, bad configuration, cards, nodes."""
import os
import shutil
import socket
import subprocess

from cli_common import CONFIG, DATA, UNAVAILABLE, refused
from harness import BIN, CPU_DEVICE, ROOT, expect
from cluster import Daemon
from patience import patience


def port_taken(cluster):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        second = cluster._daemon("second-coordinator", "motley-coordinator",
                                 {"server": {"socket": "", "listen": address, "metrics": ""}, "workers": {"listen": "127.0.0.1:0"},
                                  "state": {"folder": cluster.path("second-state")}})
        status = second.process.wait(patience(20))
    with open(second.log_path, encoding="utf-8") as file:
        log = file.read()
    expect(status != 0 and address.split(":")[1] in log, f"status {status}, log {log[-300:]!r}")


def insecure_listener(cluster):
    everywhere = "0.0.0.0:0"
    # The one for workers has TLS there; the one for people stays on this machine whatever is said.
    for name, server, workers, words in [("workers", {}, {"listen": everywhere, "tls": False}, "motley node token"),
                                         ("older", {}, {"listen": everywhere, "insecure": True}, "motley-worker --join TOKEN"),
                                         ("people", {"listen": everywhere, "insecure": True}, {}, "commands the cluster")]:
        config = {"server": {"socket": "", "listen": "127.0.0.1:0", "metrics": "", **server},
                  "workers": {"listen": "127.0.0.1:0", **workers}, "state": {"folder": cluster.path("open-state")}}
        daemon = cluster._daemon(f"open-{name}", "motley-coordinator", config)
        status = daemon.process.wait(patience(20))
        with open(daemon.log_path, encoding="utf-8") as file:
            log = file.read()
        expect(status == CONFIG and words in log, f"{name}: status {status}, log {log[-300:]!r}")


def socket_for_people(cluster):
    done = subprocess.run([cluster.program("motley"), "--coordinator", f"unix:{cluster.socket}", "nodes"], capture_output=True, text=True,
                          timeout=patience(60), check=False)
    expect(done.returncode == 0 and "n1" in done.stdout, f"status {done.returncode}: {done.stdout} {done.stderr}")
    done = subprocess.run([cluster.program("motley"), "--coordinator", cluster.workers_address, "nodes"], capture_output=True, text=True,
                          timeout=patience(60), check=False)
    expect(done.returncode == 77 and "is not for workers" in done.stderr, f"status {done.returncode}: {done.stderr}")


def bad_daemon_config(cluster):
    for program, config, word in [("motley-coordinator", {"server": {"lisen": "127.0.0.1:0"}}, "listen"),
                                  ("motley-worker", {"worker": {"coordinater": "127.0.0.1:1"}}, "coordinator")]:
        daemon = cluster._daemon(f"bad-{program}", program, config)
        status = daemon.process.wait(patience(20))
        with open(daemon.log_path, encoding="utf-8") as file:
            log = file.read()
        expect(status == CONFIG and word in log, f"{program}: status {status}, log {log[-300:]!r}")


def duplicate_worker(cluster):
    before = cluster.workers["n1"]
    second = cluster.start_worker("n1", [CPU_DEVICE], metrics="127.0.0.1:0")
    try:
        def refused_in_log():
            with open(second.log_path, encoding="utf-8", errors="replace") as file:
                text = file.read()
            return "n1" in text and ("already" in text.lower() or "session" in text.lower()) and text
        cluster.wait_for(refused_in_log, 20, "the second n1 to be refused")
        expect(before.alive(), "the first n1 ended")
    finally:
        second.kill()
        second.process.wait()
        cluster.workers["n1"] = before


RECORDED_CARDS = os.path.join(ROOT, "tests", "worker", "daemon", "nvidia")   # of a driver: 2 A100, 1 Quadro


def probe(folder, *arguments):
    command = [os.path.join(BIN, "motley-worker"), "--probe", *arguments]
    # As where NVML is missing, whatever this machine has.
    environment = {**os.environ, "MOTLEY_NVIDIA_PROC": folder, "MOTLEY_NVML_LIBRARY": "libnowhere-ml.so.1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=patience(60), check=False)


def probe_of_a_node(cluster):
    """--probe prints what `motley plan --cluster` reads; a card that the table does not have is to be filled in."""
    cards = shutil.copytree(RECORDED_CARDS, cluster.path("cards"))
    quadro = os.path.join(cards, "gpus", "0000:d8:00.0", "information")
    with open(quadro, encoding="utf-8") as file:
        named = file.read()
    expect("Quadro RTX 8000" in named, named)
    with open(quadro, "w", encoding="utf-8") as file:
        file.write(named.replace("Quadro RTX 8000", "Experimental Board"))
    printed = probe(cards, "--node", "lab-1").stdout
    path = cluster.path("probed.toml")
    command = ["plan", "--cluster", path, "--model", "gpt2-124m", "--global-batch", "12", "--seq-len", "32"]
    with open(path, "w", encoding="utf-8") as file:
        file.write(printed)
    refused(cluster.run_motley(*command), ["probed.toml:8", "fp32_tflops"], {DATA})
    for key, value in (("fp32_tflops", 16.3), ("fp16_tflops", 130.5), ("memory_gib", 48), ("memory_gb_per_second", 672),
                       ("pcie_gb_per_second", 15.75)):
        expect(f"# {key} =" in printed, f"{key} is not to be filled in: {printed!r}")
        printed = printed.replace(f"# {key} =", f"{key} = {value}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(printed)
    done = cluster.run_motley(*command)
    expect(done.returncode == 0 and "lab-1" in done.stdout, f"status {done.returncode}: {done.stdout[-300:]} {done.stderr[-300:]}")
    refused(probe(cluster.path("nowhere")), ["no NVIDIA card was found", 'kind = "cpu"'], {UNAVAILABLE})


def cards_that_cannot_be_used_are_named(cluster):
    """In the worker's log, by --check and by `motley nodes`: each with its reason."""
    environment = ["env", f"MOTLEY_NVIDIA_PROC={RECORDED_CARDS}", "MOTLEY_NVML_LIBRARY=libnowhere-ml.so.1"]
    command = [*environment, cluster.program("motley-worker"), "--config", cluster.path("worker-n1.toml"),
               "--node", "with-cards"]
    said = ["NVIDIA A100-SXM4-40GB at 0000:3b:00.0", "Quadro RTX 8000 at 0000:d8:00.0", "names it"]
    checked = subprocess.run([*command, "--check"], capture_output=True, text=True, timeout=patience(60), check=False)
    expect(checked.returncode == 0 and all(text in checked.stdout for text in said),
           f"--check: {checked.stdout} {checked.stderr}")
    worker = Daemon("with-cards", command, cluster.path("with-cards.log"), detached=False).start()
    try:
        cluster.wait_for_nodes(["with-cards"])
        with open(worker.log_path, encoding="utf-8", errors="replace") as file:
            log = file.read()
        expect(all(f"does not use {text}" in log for text in said[:2]), f"log: {log}")
        node = next(n for n in cluster.nodes() if n["name"] == "with-cards")
        expect([card["card"] for card in node["unused_cards"]][-1] == said[1], f"unused: {node['unused_cards']}")
        expect(node["host_memory_bytes"] > 0, "the host's memory is not said")
        expect(f"not used on with-cards: {said[0]}" in cluster.run_motley("nodes").stdout, "motley nodes does not say the cards")
    finally:
        worker.stop()


def drain_and_undrain(cluster):
    cluster.motley("nodes", "drain", "n2")
    cluster.wait_for(lambda: {n["name"]: n["state"] for n in cluster.nodes()}["n2"] == "drained", 10, "n2 to be drained")
    states = {d["id"].split("/")[0]: d["state"] for d in cluster.devices()}
    expect(states["n1"] == "idle" and states["n2"] == "drained", f"devices: {states}")
    cluster.motley("nodes", "undrain", "n2")
    cluster.wait_for_nodes(["n2"])
    refused(cluster.run_motley("nodes", "drain", "n9"), ["n9"])
