"""A device that has less memory than it declares, or a host that has less than its node offers: ranks run out of it, and the job is
planned again with what it turned out to have. Or a probe has found that before."""
import json
import os

from harness import TestCluster, expect, job_sections, published_checkpoints, state_of

# A step of 16 samples at once is the fastest here, since each instruction takes long to launch, and fills most of the memory.
SMALL = {"kind": "emulated", "model": "small", "flops_per_second": 3e9, "memory_bytes": 14_600_000, "link_bytes_per_second": 1e9}
LAUNCH_SECONDS = 0.02
# Fast and too small for the whole state of 20 MB, a part of which waits on a host that really has a quarter of what it offers. The
# other one holds everything and is slow, over slow links: it helps only where it must.
HOSTED = {**SMALL, "flops_per_second": 30e9, "memory_bytes": 18_000_000, "link_bytes_per_second": 2e6, "host_link_bytes_per_second": 1e9}
ROOMY = {**HOSTED, "flops_per_second": 6e9, "memory_bytes": 100_000_000}
HOST_BYTES, TRUE_HOST = 24_000_000, 0.25
MOST_CORRECTIONS = 3
MOST_TRIALS = 20
# gpt2's debug, as a file.
CONFIG = {"model_type": "gpt2", "vocab_size": 256, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 256,
          "activation_function": "gelu_new", "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}


def worker(cluster, true_memory):
    """The node's worker, with devices that really have this part of their memory."""
    if "n1" in cluster.workers:
        cluster.workers["n1"].stop()
    cluster.start_worker("n1", [SMALL], {"launch_seconds": LAUNCH_SECONDS, "true_memory": true_memory})


def sections(cluster, **changes):
    return job_sections(cluster, **{"training__seq_len": 64, "training__global_batch_size": 16, "training__steps": 4,
                                    "planner__strategy": "auto", "checkpoint__interval": 2, **changes})


def ranks(cluster, job_id):
    """Of the newest plan."""
    plan = json.loads(cluster.run_motley("-o", "json", "plan", job_id).stdout)
    return [rank for stage in plan["plan"]["pipelines"][0]["stages"] for unit in stage["units"] for rank in unit["ranks"]]


def planned_bytes(cluster, job_id):
    """The peak of the job's only rank."""
    return ranks(cluster, job_id)[0]["predicted"]["peak_bytes"]


def limits(cluster, job_id):
    return cluster.event_messages("memory_limit", job_id)


def planned_again(cluster):
    """The job goes on from its checkpoint with a plan that fits; a later job, after a restart of the coordinator, has it at once."""
    worker(cluster, 1)
    cluster.wait_for_nodes(["n1"])
    cluster.submit_job("short", sections(cluster))
    cluster.wait_for_state("short", "SUCCEEDED")
    before = planned_bytes(cluster, "short")
    expect(before > 0.8 * SMALL["memory_bytes"], f"the plan fills {before} bytes only")
    worker(cluster, 0.8)
    done = cluster.run_motley("resume", "short", "--set", "training.steps=8")
    expect(done.returncode == 0, done.stderr)
    job = cluster.wait_for_state("short", "SUCCEEDED")
    expect([record["step"] for record in cluster.steps("short")] == list(range(1, 9)), f"steps: {cluster.steps('short')}")
    said = limits(cluster, "short")
    expect(1 <= len(said) <= MOST_CORRECTIONS, f"corrections: {said}")
    expect(said[0].startswith("n1/gpu0 ran out of memory with ") and "; the plan counted " in said[0] and "parameters" in said[0], said[0])
    failed = cluster.event_messages("rank_failed", "short")
    expect(len(failed) == len(said) and "step 5, instruction " in failed[0], f"{failed}")
    expect(planned_bytes(cluster, "short") < before, "the same plan")
    expect(published_checkpoints(cluster.checkpoints("short"))[-1][1] == 8, job["reason"])
    cluster.coordinator.stop()
    cluster.start_coordinator()
    cluster.wait_for_nodes(["n1"])
    cluster.submit_job("next", sections(cluster, training__seed=8))
    cluster.wait_for_state("next", "SUCCEEDED")
    expect(not limits(cluster, "next"), f"it was known: {limits(cluster, 'next')}")
    usable, corrections = shown_limit(cluster)
    expect(usable < SMALL["memory_bytes"] and corrections == len(said), f"{usable} bytes after {corrections} corrections")
    explained = cluster.run_motley("plan", "next", "--explain").stdout
    expect("ran out of memory in this model" in explained and "n1/gpu0" in explained, explained[-800:])
    done = cluster.run_motley("node", "measure", "n1")
    expect(done.returncode == 0 and shown_limit(cluster) == (None, 0), f"{done.stderr} {shown_limit(cluster)}")


def ends_the_fourth_time(cluster):
    """A device that has less and less: each plan runs out of memory, until the job says what it was for and what needs less."""
    worker(cluster, 1)
    cluster.wait_for_nodes(["n1"])
    cluster.submit_job("shrinking", sections(cluster, training__steps=10_000, model="llama3"))
    cluster.wait_for_state("shrinking", "RUNNING")
    planned = planned_bytes(cluster, "shrinking")
    for _ in range(MOST_CORRECTIONS):
        worker(cluster, 0.95 * planned / SMALL["memory_bytes"])

        def runs_on_less():
            job, now = cluster.job("shrinking"), planned_bytes(cluster, "shrinking")
            expect(state_of(job) != "FAILED", job.get("reason", ""))
            return now if now < planned and state_of(job) == "RUNNING" else None

        planned = cluster.wait_for(runs_on_less, 90, "the job to run with a plan that needs less")
    worker(cluster, 0.95 * planned / SMALL["memory_bytes"])
    reason = cluster.wait_for_state("shrinking", "FAILED")["reason"]
    for words in ("n1/gpu0 ran out of memory with ", "; the plan counted ", "parameters ", "saved ",
                  "; its limit was corrected 3 times before; what needs less memory, the cheapest first: "):
        expect(words in reason, reason)


def shown_limit(cluster):
    device = next(node for node in cluster.nodes() if node["name"] == "n1")["devices"][0]
    return device["usable_memory_bytes"], device["memory_corrections"]


def host_runs_out(cluster):
    """A block that the host refuses is found before the first step: the node offers what went, and a plan that keeps less there trains."""
    cluster.workers["n1"].stop()
    cluster.start_worker("n1", [HOSTED], {"launch_seconds": 0.002, "true_host_memory": TRUE_HOST}, host_memory_bytes=HOST_BYTES)
    cluster.start_worker("n2", [ROOMY], {"launch_seconds": 0.002})
    cluster.wait_for_nodes(["n1", "n2"])
    cluster.submit_job("hosted", sections(cluster, model__flavor="text-small", data__validation_samples=2, training__steps=2))
    cluster.wait_for_state("hosted", "SUCCEEDED")
    said = limits(cluster, "hosted")
    expect(len(said) == 1 and said[0].startswith("the host memory of n1 ran out with 5.7 MiB held when n1/gpu0 asked for "), f"{said}")
    expect("Plans keep at most 5.7 MiB there until its worker starts again" in said[0], said[0])
    failed = cluster.event_messages("rank_failed", "hosted")
    expect(len(failed) == 1 and "what waits there needs " in failed[0], f"{failed}")
    kept = sum(rank["predicted"]["memory"]["host"] for rank in ranks(cluster, "hosted") if rank["device"] == "n1/gpu0")
    expect(kept <= TRUE_HOST * HOST_BYTES, f"the plan keeps {kept} bytes there")
    node = next(node for node in cluster.nodes() if node["name"] == "n1")
    expect(node["offered_host_memory_bytes"] == TRUE_HOST * HOST_BYTES, f"{node}")
    cluster.workers["n2"].stop()


def probe(cluster, *flags):
    config = os.path.join(cluster.top, "gpt2-debug.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump(CONFIG, file)
    return cluster.run_motley("-o", "json", "node", "measure", "n1", "--probe", "--model", config, "--seq-len", "64", *flags)


def probed(cluster):
    """Trials find how much a device really has, and a job's first plan runs there. A job has its node before a probe does."""
    worker(cluster, 0.8)
    cluster.wait_for_nodes(["n1"])
    done = probe(cluster)
    expect(done.returncode == 0, done.stderr)
    device = json.loads(done.stdout)["devices"][0]
    ran = [trial for trial in device["trials"] if trial["seconds"] > 0]
    expect(len(device["trials"]) <= MOST_TRIALS and max(trial["samples"] for trial in ran) == device["largest_samples"], f"{device}")
    expect(device["limited"] and device["usable_memory_bytes"] == device["ledger_bytes"] <= 0.8 * SMALL["memory_bytes"], f"{device}")
    expect(all(trial["peak_bytes"] <= 0.8 * SMALL["memory_bytes"] for trial in ran), f"{ran}")
    expect(shown_limit(cluster) == (device["usable_memory_bytes"], 0), f"{shown_limit(cluster)}")
    cluster.submit_job("probed", sections(cluster))
    cluster.wait_for_state("probed", "SUCCEEDED")
    expect(not limits(cluster, "probed") and planned_bytes(cluster, "probed") <= device["usable_memory_bytes"], f"{limits(cluster, 'probed')}")
    cluster.submit_job("using", sections(cluster, training__steps=100_000))
    cluster.wait_for_state("using", "RUNNING")
    done = probe(cluster, "--layers", "1")
    expect(done.returncode == 65 and "job using uses node n1" in done.stderr, done.stderr)
    cluster.run_motley("stop", "using")
    cluster.wait_for_state("using", "STOPPED")
    done = cluster.run_motley("node", "measure", "n1")
    expect(done.returncode == 0 and shown_limit(cluster) == (None, 0), f"{done.stderr} {shown_limit(cluster)}")


def memory_runs_out():
    with TestCluster() as cluster:
        cluster.start_coordinator()
        probed(cluster)
        planned_again(cluster)
        host_runs_out(cluster)
        ends_the_fourth_time(cluster)
