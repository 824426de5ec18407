#!/usr/bin/env python3
"""The API without the CLI: grpcurl lists, submits, gets and watches by reflection; malformed requests name the field."""
import json
import shutil
import subprocess
import sys

from harness import CPU_DEVICE, Results, TestCluster, expect, job_sections

SERVICE = "motley.v1.Motley"


def grpcurl(cluster, *arguments, body=None, timeout=60, flags=()):
    command = ["grpcurl", "-plaintext", "-max-time", str(timeout), *flags]
    if body is not None:
        command += ["-d", "@"]
    text = json.dumps(body) if body is not None else None
    return subprocess.run([*command, cluster.address, *arguments], input=text, capture_output=True, text=True,
                          timeout=timeout + 10, check=False)


def reflection(cluster):
    done = grpcurl(cluster, "list")
    for service in (SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"):
        expect(service in done.stdout, f"{service} is not listed: {done.stdout} {done.stderr}")
    described = grpcurl(cluster, "describe", "grpc.health.v1.Health")
    expect("rpc Check" in described.stdout, f"health cannot be described: {described.stdout} {described.stderr}")
    methods = grpcurl(cluster, "list", SERVICE)
    expect(f"{SERVICE}.ResumeJob" in methods.stdout, methods.stdout + methods.stderr)
    health = grpcurl(cluster, "grpc.health.v1.Health/Check")
    expect("SERVING" in health.stdout, health.stdout + health.stderr)


def submit_and_watch(cluster):
    body = {"job_id": "by-grpcurl", "spec": job_sections(cluster, training__steps=3)}
    done = grpcurl(cluster, f"{SERVICE}/SubmitJob", body=body)
    expect(done.returncode == 0, done.stderr)
    watched = grpcurl(cluster, f"{SERVICE}/WatchJob", body={"job_id": "by-grpcurl"})
    expect(watched.returncode == 0 and "JOB_STATE_SUCCEEDED" in watched.stdout, f"{watched.stdout[-400:]} {watched.stderr}")
    for method in ("GetJob", "GetPlan", "GetPlanningInputs", "TailLogs", "ListEvents"):
        done = grpcurl(cluster, f"{SERVICE}/{method}", body={"job_id": "by-grpcurl"})
        expect(done.returncode == 0, f"{method}: {done.stderr}")
    for method in ("ListJobs", "ListNodes"):
        expect(grpcurl(cluster, f"{SERVICE}/{method}", body={}).returncode == 0, method)
    checked = grpcurl(cluster, f"{SERVICE}/CheckCluster", body={})
    expect(checked.returncode == 0 and "STATE_OK" in checked.stdout, f"{checked.stdout[-400:]} {checked.stderr}")


def plan_by_fields(cluster):
    # grpcurl writes a FieldMask as the message that it is, where the JSON mapping has "explanation,planText".
    body = {"job_id": "by-grpcurl", "fields": {"paths": ["explanation", "plan_text"]}}
    done = grpcurl(cluster, f"{SERVICE}/GetPlan", body=body)
    expect(done.returncode == 0, done.stderr)
    expect(set(json.loads(done.stdout)) == {"explanation", "plan_text"}, f"fields: {sorted(json.loads(done.stdout))}")
    done = grpcurl(cluster, f"{SERVICE}/GetPlan", body={**body, "fields": {"paths": ["plan"]}})
    expect("InvalidArgument" in done.stderr and "plan_json" in done.stderr, done.stderr)


def resume_and_delete(cluster):
    done = grpcurl(cluster, f"{SERVICE}/ResumeJob", body={"job_id": "by-grpcurl", "changes": {"training": {"steps": 4}}})
    expect(done.returncode == 0 and json.loads(done.stdout).get("resumed"), f"{done.stdout} {done.stderr}")
    watched = grpcurl(cluster, f"{SERVICE}/WatchJob", body={"job_id": "by-grpcurl", "cursor": json.loads(done.stdout)["cursor"]})
    expect(watched.returncode == 0 and "JOB_STATE_SUCCEEDED" in watched.stdout, f"{watched.stdout[-400:]} {watched.stderr}")
    done = grpcurl(cluster, f"{SERVICE}/DeleteJob", body={"job_id": "by-grpcurl"})
    expect(done.returncode == 0 and "by-grpcurl" in json.loads(done.stdout)["checkpoint_folder"], f"{done.stdout} {done.stderr}")
    expect("NotFound" in grpcurl(cluster, f"{SERVICE}/GetJob", body={"job_id": "by-grpcurl"}).stderr, "it is still there")


def malformed(cluster):
    spec = job_sections(cluster)
    for body, word in [({"job_id": "Bad_Id!", "spec": spec}, "job_id"),
                       ({"job_id": "bad", "spec": {**spec, "training": {**spec["training"], "steps": 0}}}, "training.steps"),
                       ({"job_id": "bad", "spec": {**spec, "data": {}}}, "data.path"),
                       ({"job_id": "bad", "spec": {**spec, "planner": {"plan_json": "{"}}}, "plan")]:
        done = grpcurl(cluster, f"{SERVICE}/SubmitJob", body=body)
        expect("InvalidArgument" in done.stderr and word in done.stderr, f"{word}: {done.stderr or done.stdout}")
    body = {"job_id": "Bad_Id!", "spec": {**spec, "data": {}, "training": {**spec["training"], "steps": 0}}}
    done = grpcurl(cluster, f"{SERVICE}/SubmitJob", body=body)
    for word in ("job_id", "training.steps", "data.path"):
        expect(word in done.stderr, f"{word} is not among all problems: {done.stderr}")


def oversized(cluster):
    body = {"job_id": "huge", "spec": {**job_sections(cluster), "name": "x" * (8 << 20)}}
    done = grpcurl(cluster, f"{SERVICE}/SubmitJob", body=body)
    expect(done.returncode != 0, "a request of 8 MiB was accepted")
    expect(grpcurl(cluster, f"{SERVICE}/ListJobs", body={}).returncode == 0, "the coordinator no longer answers")


def main():
    results = Results("grpcurl")
    if not shutil.which("grpcurl"):
        results.skip("all checks", "no grpcurl and no Go to build it (https://go.dev/dl)")
        results.exit()
    with TestCluster() as cluster:
        cluster.start({"n1": [CPU_DEVICE]})
        for test in (reflection, submit_and_watch, plan_by_fields, resume_and_delete, malformed, oversized):
            results.run(test.__name__.replace("_", " "), test, cluster)
    results.exit()


if __name__ == "__main__":
    sys.exit(main())
