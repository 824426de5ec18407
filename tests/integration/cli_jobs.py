"""The command line's cases of jobs that run or have run: what is printed of them, and plans with them."""
import fcntl
import json
import math
import os
import pty
import re
import struct
import subprocess
import termios

from cli_common import DATA, NO_INPUT, USAGE, refused
from harness import expect, job_sections, published_checkpoints
from cluster import samples
from patience import patience


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
    validated(cluster)
    explained = cluster.run_motley("plan", "waited", "--explain")
    expect(explained.returncode == 0 and "bound by" in explained.stdout, f"plan --explain: {explained.stdout[-300:]} {explained.stderr}")
    trace = cluster.path("trace.json")
    expect(cluster.run_motley("plan", "waited", "--trace", trace).returncode == 0, "plan --trace failed")
    with open(trace, encoding="utf-8") as file:
        expect(json.load(file)["traceEvents"], "the trace is empty")


def validated(cluster):
    """Its text is bytes: bits a byte are the loss in bits."""
    last = cluster.job("waited")["last_step"]
    loss, perplexity, bits = last["validation_loss"], last["validation_perplexity"], last["validation_bits_per_byte"]
    expect(math.isclose(perplexity, math.exp(loss)) and math.isclose(bits, loss / math.log(2)), f"validation: {last}")
    text = f"loss {loss:.4f} (perplexity {perplexity:.2f}; {bits:.2f} bits a byte)"
    for command in ("status", "metrics", "logs"):
        said = cluster.run_motley(command, "waited").stdout
        expect(f"validation {text}" in " ".join(said.split()), f"motley {command} does not say {text}: {said}")


def no_utilization_of_cpus(cluster, name, plan):
    """Nobody says what a CPU computes at best: a part of its own fastest layer says nothing."""
    expect(plan["predicted"]["mfu"] == 0 and plan["predicted"]["hfu"] == 0, f"plan: {plan['predicted']}")
    expect("MFU" not in cluster.run_motley("plan", name).stdout, "motley plan prints an MFU")
    expect(samples(cluster.metrics_address, "motley_job_step_seconds"), "no metrics of a step")
    expect(not samples(cluster.metrics_address, "motley_job_mfu_ratio"), "the metrics have an MFU")


def memory_of_ranks(cluster, job, ranks, when):
    """What is measured is measured of every rank, of each purpose its own most. Each node reports its own ranks' in its own time."""
    def measured():
        memory = cluster.motley("status", job, "--memory")["memory"]
        return len(memory) == ranks and all(use["measured_bytes"] is not None for rank in memory for use in rank["uses"]
                                            if (use["tier"], use["purpose"]) == ("device", "held"))

    cluster.wait_for(measured, 90, f"measured memory of {job}")
    memory = cluster.motley("status", job, "--memory")["memory"]
    for rank in memory:
        uses = {(use["tier"], use["purpose"]): use for use in rank["uses"]}
        held, tensors = uses["device", "held"]["measured_bytes"], uses["device", "tensors"]["measured_bytes"]
        expect(held is not None and 0 < held <= tensors, f"{when}: {rank['device']} holds {held} of {tensors}")
        for purpose in "parameters", "gradients", "optimizer", "gathered", "slots", "boundaries", "saved", "workspace", "context":
            use = uses["device", purpose]
            expect(use["planned_bytes"] is not None and use["measured_bytes"] is not None, f"{when}: {purpose}: {use}")
        expect(uses["device", "optimizer"]["measured_bytes"] == uses["device", "optimizer"]["planned_bytes"], f"{when}: {uses}")
    text = cluster.run_motley("status", job, "--memory").stdout
    expect("PURPOSE" in text and "tensors" in text, f"{when}: {text}")


def transports_of_a_running_job(cluster):
    """Without a card: one word; behind it every group of the plan's devices, which nothing was planned for."""
    path = cluster.job_file("moving", job_sections(cluster, training__steps=100000, planner__strategy="cephalo"))
    expect(cluster.run_motley("submit", path, "--id", "moving").returncode == 0, "submit")
    cluster.wait_for_step("moving", 1)
    # Steps are reported by one node, what goes how by another, whose word may be behind the first step's.
    cluster.wait_for(lambda: cluster.motley("status", "moving")["transports"], 90, "transports of moving")
    text = cluster.run_motley("status", "moving").stdout
    expect("\ntransport   tcp\n" in text, f"no transport in one word: {text}")
    uses, plan = cluster.motley("status", "moving")["transports"], cluster.motley("plan", "moving")
    devices = {rank["device"] for stage in plan["plan"]["pipelines"][0]["stages"] for unit in stage["units"] for rank in unit["ranks"]}
    expect(len(devices) == 2, f"the plan has {devices}")
    expect([(use["group"], set(use["devices"]), use["transport"], use["why_not_nccl"], use["planned"]) for use in uses] ==
           [(0, devices, "tcp", None, None)], f"transports: {uses}")
    expect(plan["transports"] == [], f"planned transports: {plan['transports']}")
    no_utilization_of_cpus(cluster, "moving", plan["plan"])
    expect(cluster.motley("status", "moving")["memory"] is None, "nobody asked for the memory")
    cluster.wait_for_step("moving", 3)
    memory_of_ranks(cluster, "moving", 2, "running")
    cluster.run_motley("stop", "moving")
    expect(cluster.run_motley("wait", "moving", "--timeout", "60").returncode == 1, "it was stopped")
    memory_of_ranks(cluster, "moving", 2, "ended")
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


def ten_jobs_have_one_price(cluster):
    """The seconds that `motley status` shows of a job, and that its steps are held against, are its plan's."""
    asked = [("even", "none"), ("even", "full"), ("cephalo", "full"), ("cephalo", "auto"), ("fsdp", "none"), ("poplar", "none"),
             ("megatron", "none"), ("hexiscale", "none"), ("zorse", "none"), ("auto", "auto")]
    jobs = [f"priced-{strategy}-{recompute}" for strategy, recompute in asked]
    for job, (strategy, recompute) in zip(jobs, asked):
        cluster.submit_job(job, job_sections(cluster, training__steps=1, planner__strategy=strategy, planner__recompute=recompute))
    for job in jobs:
        cluster.wait_for_state(job, "SUCCEEDED")
        priced = cluster.motley("plan", job)["plan"]["predicted"]
        expect(priced["as_run"], f"{job}: {priced}")
        shown, seconds = cluster.job(job), priced["step_seconds"]
        for where, value in (("job", shown), ("step", shown["last_step"])):
            predicted = value["predicted_step_seconds"]
            expect(math.isclose(predicted, seconds, rel_tol=1e-9), f"{job}: its {where} says {predicted!r} s, its plan {seconds!r} s")
