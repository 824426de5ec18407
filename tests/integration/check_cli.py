#!/usr/bin/env python3
"""The command line and bad input: each error names the thing and the remedy, has its exit status, and leaves nothing behind."""
import glob
import json
import os
import socket
import subprocess
import sys

from cli_common import DATA, NO_INPUT, UNAVAILABLE, USAGE, refused
from cli_daemons import (bad_daemon_config, cards_that_cannot_be_used_are_named, drain_and_undrain, duplicate_worker, insecure_listener,
                         port_taken, probe_of_a_node, socket_for_people)
from cli_jobs import (newest_lines, plan_on_the_live_cluster, resume_wait_list_delete, reused_job_id, ten_jobs_have_one_price,
                      terminal_of_80_columns, transports_of_a_running_job, wait_and_listings)
from harness import CPU_DEVICE, Results, TestCluster, expect, job_sections, state_of
from patience import patience


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


def main():
    results = Results("cli")
    with TestCluster() as cluster:
        results.run("unreachable coordinator", unreachable_coordinator, cluster)
        cluster.start({"n1": [CPU_DEVICE], "n2": [CPU_DEVICE]})
        for test in (unknown_key, unknown_section, out_of_range, bad_set, missing_job_file, config_show, examples_are_valid, unknown_job,
                     reused_job_id, resume_wait_list_delete, wait_and_listings, transports_of_a_running_job,
                     terminal_of_80_columns, newest_lines, plan_on_the_live_cluster, ten_jobs_have_one_price, wrong_pipelines, data_errors,
                     model_fits_nowhere,
                     socket_for_people, port_taken, insecure_listener, bad_daemon_config, duplicate_worker, probe_of_a_node,
                     cards_that_cannot_be_used_are_named, drain_and_undrain):
            results.run(test.__name__.replace("_", " "), test, cluster)
    results.exit()


if __name__ == "__main__":
    sys.exit(main())
