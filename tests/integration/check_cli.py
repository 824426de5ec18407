#!/usr/bin/env python3
"""The command line and bad input: each error names the thing and the remedy, has its exit status, and leaves nothing behind."""
import fcntl
import glob
import json
import os
import pty
import re
import socket
import struct
import shutil
import subprocess
import sys
import termios

from harness import BIN, CPU_DEVICE, ROOT, Results, TestCluster, expect, job_sections, published_checkpoints, state_of
from cluster import Daemon
from patience import patience

USAGE, DATA, NO_INPUT, UNAVAILABLE, CONFIG = 64, 65, 66, 69, 78   # the last of daemons, and of plans that the engine does not run


def refused(done, words, statuses=None):
    """The command failed, and its message holds all the words."""
    expect(done.returncode != 0, f"status 0, printed {done.stdout[-300:]!r}")
    expect(statuses is None or done.returncode in statuses, f"status {done.returncode}, expected {statuses}: {done.stderr[-300:]!r}")
    for word in words:
        expect(word in done.stderr, f"{word!r} is not in {done.stderr[-500:]!r}")


def unreachable_coordinator(cluster):
    with socket.socket() as silent:   # its port is nobody else's, and refuses: it does not listen
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        command = [cluster.program("motley"), "--coordinator", address, "nodes"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience(60), check=False)
    refused(done, [address, "Connection refused"], {UNAVAILABLE})
    done = subprocess.run([cluster.program("motley"), "--coordinator", "http://127.0.0.1:7070", "nodes"], capture_output=True,
                          text=True, timeout=patience(60), check=False)
    refused(done, ["write 127.0.0.1:7070"], {USAGE})


def unknown_key(cluster):
    sections = job_sections(cluster)
    sections["training"]["stepz"] = 3
    path = cluster.job_file("typo", sections)
    refused(cluster.run_motley("config", "check", path), ["typo.toml:", "stepz", "steps"], {DATA})
    refused(cluster.run_motley("submit", path), ["stepz", "steps"], {DATA})


def unknown_section(cluster):
    sections = job_sections(cluster)
    sections["trainning"] = {"steps": 3}
    refused(cluster.run_motley("config", "check", cluster.job_file("section", sections)), ["trainning", "training"], {DATA})


def out_of_range(cluster):
    for key, value, words in [("training__steps", 0, ["training.steps"]), ("planner__memory_reserve", 0.9, ["planner.memory_reserve"]),
                              ("optimizer__beta1", 1.5, ["optimizer.beta1"]), ("training__dtype", "float16", ["training.dtype", "float32"]),
                              ("model__flavor", "debugg", ["debugg", "debug"]), ("planner__strategy", "cephalos", ["planner.strategy", "cephalo"])]:
        path = cluster.job_file("range", job_sections(cluster, **{key: value}))
        refused(cluster.run_motley("config", "check", path), words, {DATA})


def bad_set(cluster):
    path = cluster.job_file("set", job_sections(cluster))
    refused(cluster.run_motley("submit", path, "--set", "training.stepz=5"), ["stepz", "steps"])
    refused(cluster.run_motley("submit", path, "--set", "training.steps=many"), ["training.steps"])


def missing_job_file(cluster):
    refused(cluster.run_motley("submit", cluster.path("nowhere.toml")), ["nowhere.toml"], {NO_INPUT})


def config_show(cluster):
    path = cluster.job_file("show", job_sections(cluster))
    done = cluster.run_motley("config", "show", path)
    expect(done.returncode == 0, done.stderr)
    expect("show.toml" in done.stdout and "default" in done.stdout, f"does not say where values come from: {done.stdout[:500]}")


def examples_are_valid(cluster):
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "deploy", "examples")
    jobs = sorted(glob.glob(os.path.join(folder, "*.toml")) + glob.glob(os.path.join(folder, "*", "job.toml")))
    expect(len(jobs) >= 4, f"examples: {jobs}")
    for job in jobs:
        done = cluster.run_motley("config", "check", job)
        expect(done.returncode == 0, f"{job}: {done.stderr}")


def unknown_job(cluster):
    for command in (["status"], ["stop"], ["metrics"], ["plan"]):
        refused(cluster.run_motley(*command, "no-such-job"), ["no-such-job"])


def reused_job_id(cluster):
    sections = job_sections(cluster, training__steps=2)
    path = cluster.job_file("same", sections)
    expect(cluster.run_motley("submit", path, "--id", "same", "--wait").returncode == 0, "the first submit")
    # The same body again is the same job, and starts nothing.
    again = cluster.run_motley("submit", path, "--id", "same")
    refused(again, ["job same exists: succeeded at step 2 of 2", "motley resume same"], {1})
    sections["training"]["seed"] = 8
    refused(cluster.run_motley("submit", cluster.job_file("same", sections), "--id", "same"), ["same"], {DATA})


def resume_wait_list_delete(cluster):
    refused(cluster.run_motley("resume", "same"), ["has done 2 steps", "training.steps"], {DATA})
    seeded = cluster.run_motley("resume", "same", "--set", "training.seed=9", "--set", "training.steps=4")
    refused(seeded, ["training.seed"], {DATA})
    done = cluster.run_motley("resume", "same", "--set", "training.steps=4", "--wait")
    expect(done.returncode == 0 and "step 4/4" in done.stdout, f"{done.stdout[-400:]} {done.stderr}")
    expect("step 2/" not in done.stdout, f"what was there before is shown again: {done.stdout}")
    expect([record["step"] for record in cluster.steps("same")] == [1, 2, 3, 4], f"steps: {cluster.steps('same')}")
    expect(cluster.job("same")["training_tokens"] > 0, "the size of the data is not known")
    expect(cluster.run_motley("wait", "same", "--timeout", "60").returncode == 0, "wait")
    listed = cluster.motley("list", "--state", "succeeded", "--limit", "1")["jobs"]
    expect([job["id"] for job in listed] == ["same"], f"{[job['id'] for job in listed]}")
    done = cluster.run_motley("delete", "same")
    expect(done.returncode == 0 and cluster.checkpoints("same") in done.stdout, f"{done.stdout} {done.stderr}")
    saved, there = published_checkpoints(cluster.checkpoints("same")), os.listdir(cluster.checkpoints("same"))
    expect([step for _, step, _ in saved] == [2, 4] and len(there) == 2, f"checkpoints, none of step 0: {there}")
    expect(saved[0][0] < saved[1][0] == listed[0]["generation"], f"their generations: {saved}")
    refused(cluster.run_motley("status", "same"), ["same"], {NO_INPUT})


def wait_and_listings(cluster):
    path = cluster.job_file("waited", job_sections(cluster, training__steps=3))
    done = cluster.run_motley("submit", path, "--id", "waited", "--wait")
    expect(done.returncode == 0, f"status {done.returncode}: {done.stderr}")
    for word in ("loss", "tokens/s"):
        expect(word in done.stdout, f"step lines lack {word!r}: {done.stdout[-400:]!r}")
    for command in (["nodes"], ["list"], ["status", "waited"], ["metrics", "waited"], ["events"], ["plan", "waited"], ["logs", "waited"]):
        plain = cluster.run_motley(*command)
        expect(plain.returncode == 0 and plain.stdout.strip(), f"motley {' '.join(command)}: {plain.stderr or 'prints nothing'}")
        json.loads(cluster.run_motley("-o", "json", *command).stdout)
    explained = cluster.run_motley("plan", "waited", "--explain")
    expect(explained.returncode == 0 and "bound by" in explained.stdout, f"plan --explain: {explained.stdout[-300:]} {explained.stderr}")
    trace = cluster.path("trace.json")
    expect(cluster.run_motley("plan", "waited", "--trace", trace).returncode == 0, "plan --trace failed")
    with open(trace, encoding="utf-8") as file:
        expect(json.load(file)["traceEvents"], "the trace is empty")


def transports_of_a_running_job(cluster):
    """Without a card: one word; behind it every group of the plan's devices, which nothing was planned for."""
    path = cluster.job_file("moving", job_sections(cluster, training__steps=100000, planner__strategy="cephalo"))
    expect(cluster.run_motley("submit", path, "--id", "moving").returncode == 0, "submit")
    cluster.wait_for_step("moving", 1)
    text = cluster.run_motley("status", "moving").stdout
    expect("\ntransport   tcp\n" in text, f"no transport in one word: {text}")
    uses, plan = cluster.motley("status", "moving")["transports"], cluster.motley("plan", "moving")
    devices = {rank["device"] for stage in plan["plan"]["pipelines"][0]["stages"] for unit in stage["units"] for rank in unit["ranks"]}
    expect(len(devices) == 2, f"the plan has {devices}")
    expect([(use["group"], set(use["devices"]), use["transport"], use["why_not_nccl"], use["planned"]) for use in uses] ==
           [(0, devices, "tcp", None, None)], f"transports: {uses}")
    expect(plan["transports"] == [], f"planned transports: {plan['transports']}")
    cluster.run_motley("stop", "moving")
    expect(cluster.run_motley("wait", "moving", "--timeout", "60").returncode == 1, "it was stopped")
    expect(cluster.motley("status", "moving")["transports"] == [], "transports of a job that has ended")


def terminal_output(cluster, *arguments, columns=80, **environment):
    """What the command writes to a terminal of so many columns, colours included."""
    leader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [cluster.program("motley"), "--coordinator", cluster.address, *arguments]
    environment = {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **environment}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.PIPE, env=environment)
    os.close(terminal)
    written = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:   # Linux says so when the last writer has gone
            break
        if not chunk:
            break
        written += chunk
    os.close(leader)
    errors = process.stderr.read().decode()
    expect(process.wait() == 0, f"motley {' '.join(arguments)}: {errors}")
    return written.decode().replace("\r\n", "\n")


def terminal_of_80_columns(cluster):
    """Nothing is wider, but a word that is; one line moves; states have colours that can be turned off."""
    colour = re.compile("\x1b\\[[0-9;]*m")
    for command in (["nodes"], ["list"], ["status", "waited"], ["plan", "waited"], ["plan", "waited", "--explain"], ["events"],
                    ["logs", "waited"], ["metrics", "waited"], ["help", "plan"], ["clusters"], ["models"],
                    ["cards"], ["cards", "h100"]):
        for line in colour.sub("", terminal_output(cluster, *command)).splitlines():
            expect(len(line) <= 80 or len(line.split()) == 1, f"motley {' '.join(command)}: {len(line)} columns: {line!r}")
    expect("\x1b[32msucceeded" in terminal_output(cluster, "list"), "a state without its colour")
    expect("\x1b" not in terminal_output(cluster, "list", NO_COLOR="1"), "colours in spite of NO_COLOR")
    expect(max(map(len, terminal_output(cluster, "events", "--wide", columns=60).splitlines())) > 60, "--wide cuts")
    path = cluster.job_file("seen", job_sections(cluster, training__steps=5))
    seen = terminal_output(cluster, "submit", path, "--id", "seen", "--wait")
    expect("\r\x1b[K[" in seen and "step 5/5" in seen, f"no line that moves: {seen!r}")
    stays = [line.split("\r\x1b[K")[-1] for line in colour.sub("", seen).split("\n")]
    states = [line.split(":")[0] for line in stays if line.split(":")[0] in {"queued", "profiling", "planning", "starting", "running"}]
    order = sorted(set(states), key=["queued", "profiling", "planning", "starting", "running"].index)
    expect(states == order and states[-1] == "running", f"states: {states}")


def newest_lines(cluster):
    """The training's own lines are in the log; -n and --since choose."""
    lines = cluster.motley("logs", "waited")["lines"]
    expect(any(line["source"] == "training" and "step 3/3" in line["text"] for line in lines), f"no training lines: {lines[-5:]}")
    for command in (["logs", "waited"], ["events"]):
        whole = cluster.run_motley(*command).stdout.splitlines()
        expect(cluster.run_motley(*command, "-n", "2").stdout.splitlines() == whole[-2:], f"{command} -n 2")
        expect(not cluster.run_motley(*command, "--since", "2099-01-01").stdout, f"{command} --since the future")
        expect(cluster.run_motley(*command, "--since", "1h").stdout.splitlines() == whole, f"{command} --since 1h")


def plan_on_the_live_cluster(cluster):
    """The flags of offline planning with a job: its own cluster, as measured."""
    in_force = cluster.motley("plan", "waited")["plan"]
    devices = {unit["ranks"][0]["device"] for unit in in_force["pipelines"][0]["stages"][0]["units"]}
    compared = cluster.motley("plan", "waited", "--compare")
    rows = {row["strategy"]: row for row in compared["report"]["comparison"]}
    expect({"even", "cephalo", "hexiscale", "auto"} <= set(rows), f"rows: {sorted(rows)}")
    expect(devices <= {rank["device"] for rank in compared["report"]["ranks"]} | {d["device"] for d in compared["plan"]["unused"]},
           f"{devices} are not all in {compared['report']['ranks']}")
    hexiscale = cluster.motley("plan", "waited", "--strategy", "hexiscale", "--no-runnable")
    expect(hexiscale["plan"]["strategy"] == "hexiscale" and not hexiscale["plan"]["predicted"].get("estimated"), f"{hexiscale['plan']}")
    # The same profile, the same strategy: the offline planner agrees with what the coordinator predicted.
    folder = cluster.path("saved inputs")
    even = cluster.motley("plan", "waited", "--strategy", "even", "--save-inputs", folder)["plan"]
    ratio = even["predicted"]["step_seconds"] / in_force["predicted"]["step_seconds"]
    expect(0.8 < ratio < 1.25, f"offline predicts {ratio:.3f} of what the coordinator predicts")
    training = cluster.job("waited")["spec"]["training"]
    files = {"--cluster": "cluster.toml", "--model": "config.json", "--profiles": "profiles.json"}
    alone = [cluster.program("motley"), "plan", "--strategy", "even", "--runnable", "-o", "json", "--global-batch",
             str(training["global_batch_size"]), "--seq-len", str(training["seq_len"])]
    for flag, name in files.items():
        alone += [flag, os.path.join(folder, name)]
    done = subprocess.run(alone, capture_output=True, text=True, timeout=patience(60), check=False)
    expect(done.returncode == 0, done.stderr)
    expect(json.loads(done.stdout)["predicted"] == even["predicted"], "saved inputs give another plan")
    refused(cluster.run_motley("plan", "waited", "--cluster", "cephalo-a", "--compare"), ["give JOB, or --cluster"], {USAGE})
    refused(cluster.run_motley("plan", "no-such-job", "--compare"), ["no-such-job"], {NO_INPUT})


def wrong_pipelines(cluster):
    """Plans by hand of two pipelines: refused at submit, each by what is wrong and where."""
    def stage(layers, devices, microbatches, **more):
        ranks = [{"device": device, "shard_ratio": 1 / len(devices), "tp_share": 1 / len(devices)} for device in devices]
        return {"ministages": [layers], "units": [{"ranks": ranks, "microbatches": microbatches}], **more}

    good = stage([0, 1], ["n1/cpu0"], [6])
    pair = ["n2/cpu0", "n2/cpu1"]
    path, plan = cluster.job_file("wrong-pipelines", job_sections(cluster)), cluster.path("wrong-pipelines.json")
    for second, words, status in [
            (stage([0, 0], ["n2/cpu0"], [6]), ["pipeline 1: ministages end before layer 1", "the model has 2 layers"], DATA),
            (stage([0, 2], ["n2/cpu0"], [6]), ["pipeline 1 stage 0: ministages[0] is layers 0-2", "of 0-1"], DATA),
            (stage([0, 1], ["n2/cpu0"], [4]), ["add up to 10, the global batch is 12 (pipeline 0: 6, pipeline 1: 4)"], DATA),
            (stage([0, 1], ["n1/cpu0"], [6]), ["n1/cpu0", "there twice, in pipeline 0 stage 0 and in pipeline 1 stage 0"], DATA),
            (stage([0, 1], ["n2/cpu0"], []), ["pipeline 1 has no microbatches; list its devices as unused"], DATA),
            (stage([0, 1], pair, [6], zero_stage=4), ["pipeline 1 stage 0: zero_stage must be 0, 1, 2 or 3, got 4"], DATA)]:
        with open(plan, "w", encoding="utf-8") as file:
            json.dump({"schedule": "1f1b", "pipelines": [{"stages": [good]}, {"stages": [second]}]}, file)
        refused(cluster.run_motley("submit", path, "--id", "wrong-pipelines", "--plan", plan), ["planner.plan_json: plan: ", *words], {status})
    refused(cluster.run_motley("status", "wrong-pipelines"), ["wrong-pipelines"], {NO_INPUT})


def data_errors(cluster):
    for job_id, path, content, words, code, status in [
            ("no-data", cluster.path("missing.txt"), None, ["missing.txt"], 5, NO_INPUT),
            ("short-data", cluster.path("short.txt"), b"too short", ["short.txt", "bytes"], 9, DATA),
            ("binary-data", cluster.path("binary.txt"), b"abc\xff\xfe" * 1000, ["binary.txt", "UTF-8"], 3, DATA),
            ("cut-tokens", cluster.path("cut.bin"), b"\x01\x00" * 5000 + b"\x02", ["cut.bin", "10001 bytes, an odd number"], 3, DATA),
            ("other-tokens", cluster.path("other.bin"), b"\x01\x00" * 5000 + b"\x00\x01", ["other.bin", "token 256", "vocab_size"], 9, DATA)]:
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
        done = cluster.run_motley("submit", cluster.job_file(job_id, job_sections(cluster, data__path=path)), "--id", job_id)
        if done.returncode != 0:   # the verdict came within the first second
            refused(done, words, {status})
        job = cluster.wait_for_state(job_id, "FAILED")
        expect(job["error_code"] == code, f"{job_id}: error_code {job['error_code']}, expected {code}")
        for word in words:
            expect(word in job.get("reason", ""), f"{job_id}: {word!r} is not in {job.get('reason')!r}")


def model_fits_nowhere(cluster):
    cluster.submit_job("too-large", job_sections(cluster, model__flavor="1.5B"))

    def has_reason():
        job = cluster.job("too-large")
        return job if state_of(job) in {"FAILED", "WAITING"} else None

    job = cluster.wait_for(has_reason, 60, "the refusal of the model that is too large")
    reason = job.get("reason", "")
    expect("B" in reason and ("n1" in reason or "n2" in reason), f"names no bytes or device: {reason!r}")
    cluster.run_motley("stop", "too-large")


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


def main():
    results = Results("cli")
    with TestCluster() as cluster:
        results.run("unreachable coordinator", unreachable_coordinator, cluster)
        cluster.start({"n1": [CPU_DEVICE], "n2": [CPU_DEVICE]})
        for test in (unknown_key, unknown_section, out_of_range, bad_set, missing_job_file, config_show, examples_are_valid, unknown_job,
                     reused_job_id, resume_wait_list_delete, wait_and_listings, transports_of_a_running_job,
                     terminal_of_80_columns, newest_lines, plan_on_the_live_cluster, wrong_pipelines, data_errors, model_fits_nowhere,
                     socket_for_people, port_taken, insecure_listener, bad_daemon_config, duplicate_worker, probe_of_a_node,
                     cards_that_cannot_be_used_are_named, drain_and_undrain):
            results.run(test.__name__.replace("_", " "), test, cluster)
    results.exit()


if __name__ == "__main__":
    sys.exit(main())
