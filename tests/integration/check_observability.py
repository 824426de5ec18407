#!/usr/bin/env python3
"""A real Prometheus scrapes a running cluster: every dashboard query and every selector of an alert returns data."""
import glob
import json
import math
import os
import re
import shutil
import subprocess
import sys
import urllib.parse

from harness import ROOT, Results, TestCluster, expect, job_sections
from cluster import Daemon, fetch, samples

DEPLOY = os.path.join(ROOT, "deploy")
PACED = {"kind": "emulated", "model": "slow", "flops_per_second": 2e8, "memory_bytes": 1 << 30, "link_bytes_per_second": 1e9}
JOB = "observed"
LISTENING = re.compile(r'msg="Listening on" address=(\S+)')
SELECTOR = re.compile(r"\b((?:motley_\w+|up)(?:\{[^}]*\})?)")


class Prometheus:
    """The server with deploy/prometheus/prometheus.yml, its targets replaced by this cluster's."""

    def __init__(self, cluster):
        with open(os.path.join(DEPLOY, "prometheus", "prometheus.yml"), encoding="utf-8") as file:
            text = file.read()
        workers = ", ".join(f'"{cluster.worker_metrics(node)}"' for node in cluster.workers)
        text = text.replace('"127.0.0.1:7071"', f'"{cluster.metrics_address}"').replace('"127.0.0.1:7072"', workers)
        text = re.sub(r"scrape_interval: \w+", "scrape_interval: 1s", text)
        text = text.replace("- alerts.yml", f"- {json.dumps(os.path.join(DEPLOY, 'prometheus', 'alerts.yml'))}")
        config = cluster.path("prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(text)
        command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={cluster.path('prometheus-data')}",
                   "--web.listen-address=127.0.0.1:0"]
        self.daemon = Daemon("prometheus", command, cluster.path("prometheus.log"), detached=False).start()
        self.address = cluster.wait_for(self._said_address, 30, "Prometheus to say where it listens", self.daemon)

    def _said_address(self):
        with open(self.daemon.log_path, encoding="utf-8") as file:
            found = LISTENING.search(file.read())
        return found and found.group(1)

    def query(self, expression):
        url = f"http://{self.address}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        return json.loads(fetch(url))["data"]["result"]


def dashboard_queries():
    for path in sorted(glob.glob(os.path.join(DEPLOY, "grafana", "dashboards", "*.json"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        expect('"${datasource}"' in text, f"{path} does not use ${{datasource}}")
        name, dashboard = os.path.basename(path), json.loads(text)
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                yield f"{name} / {panel['title']}", target["expr"].replace("$job_id", JOB)
        for note in dashboard["annotations"]["list"]:
            # The series must be there; whether something happened in the last minute is another matter.
            yield f"{name} / annotation {note['name']}", note["expr"].replace("$job_id", JOB).removesuffix(" > 0")


def legends(results):
    """Devices of all nodes have the same names: a legend says the node, too."""
    for path in sorted(glob.glob(os.path.join(DEPLOY, "grafana", "dashboards", "*.json"))):
        with open(path, encoding="utf-8") as file:
            found = re.findall(r'"legendFormat": "([^"]*{{device}}[^"]*)"', file.read())
        results.check(f"legends of {os.path.basename(path)} name the node", set(found) == {"{{node}}/{{device}}"}, str(found))


def alert_selectors():
    with open(os.path.join(DEPLOY, "prometheus", "alerts.yml"), encoding="utf-8") as file:
        for line in file:
            if line.strip().startswith("expr:"):
                yield from SELECTOR.findall(line)


def metrics_addresses(cluster):
    return {"coordinator": cluster.metrics_address, **{node: cluster.worker_metrics(node) for node in cluster.workers}}


def check_metrics_text(results, cluster):
    for name, address in metrics_addresses(cluster).items():
        text = fetch(f"http://{address}/metrics")
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        results.check(f"promtool check metrics of {name}", done.returncode == 0, (done.stdout + done.stderr).replace("\n", " | ")[:500])


def timeline(results, cluster, ranks):
    """motley trace of the running job: every rank, measured and simulated; what a device did and waited for is its step."""
    path = cluster.path("step.json")
    done = cluster.run_motley("trace", JOB, "-o", path)
    results.check("motley trace ends well", done.returncode == 0 and "measured" in done.stdout, done.stdout + done.stderr)
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    rows = [e["args"]["name"].split(":")[0] for e in events if e["name"] == "process_name"]
    results.check("the timeline has every rank twice", sorted(rows) == ["measured"] * ranks + ["simulated"] * ranks, str(rows))
    document = json.loads(cluster.run_motley("trace", JOB, "-o", "json").stdout)
    parts = {"forward", "recompute", "backward", "optimizer"}
    seconds = {}
    for row in document["differences"]:
        if row["what"] in parts or row["what"].startswith("waits: "):
            seconds[row["device"]] = seconds.get(row["device"], 0) + row["measured_seconds"]
    step = document["measured_seconds"]
    results.check("what a device did and waited for is its step", len(seconds) == ranks and
                  all(abs(s - step) < 0.1 * step for s in seconds.values()), f"{seconds} of {step}")


def documented(results, cluster):
    """What is served and what docs/use/metrics.md lists is the same."""
    with open(os.path.join(ROOT, "docs", "use", "metrics.md"), encoding="utf-8") as file:
        listed = set(re.findall(r"`(motley_\w+)`", file.read()))
    served = set()
    for address in metrics_addresses(cluster).values():
        served |= set(re.findall(r"^# TYPE (motley_\w+) ", fetch(f"http://{address}/metrics"), re.MULTILINE))
    results.check("every served metric is in docs/use/metrics.md", served <= listed, f"missing there: {sorted(served - listed)}")
    results.check("every metric of docs/use/metrics.md is served", listed <= served, f"not served: {sorted(listed - served)}")


class ClusterWithCards(TestCluster):
    """Its node "cards" has an NVIDIA card: the fake of the unit tests, which answers from a file."""

    CARD = {"name": "NVIDIA RTX A6000", "uuid": "GPU-0abc0", "bus": "0000:3b:00.0", "memory": 48 << 30, "reserved": 1 << 29,
            "used": 0, "processes": [], "capability": 86, "generation": 4, "most_lanes": 16, "lanes": 16, "power_limit": 300000, "power": 120500,
            "clock": 1410, "temperature": 45, "throttle": 0, "ecc": 0, "mode": 0, "mig": 0, "utilization": 87}

    def write_cards(self, **changes):
        with open(self.path("new-cards.json"), "w", encoding="utf-8") as file:
            json.dump({"cards": [{**self.CARD, **changes}]}, file)
        os.rename(self.path("new-cards.json"), self.path("cards.json"))

    def placed(self, name, command):
        if name != "worker-cards":
            return super().placed(name, command)
        library = os.path.join(os.path.dirname(self.bin), "tests", "libfake_nvml.so")
        return ["env", f"MOTLEY_NVML_LIBRARY={library}", f"MOTLEY_FAKE_NVML={self.path('cards.json')}",
                f"MOTLEY_RUN_FOLDER={self.path('')}", *command]


def cards(results, cluster):
    """What `motley nodes` says of a node's card, also when it falls off the bus. No job uses it: the card is not real."""
    cluster.write_cards()
    cluster.start_worker("cards", [])
    cluster.wait_for_nodes(["cards"])
    cluster.motley("nodes", "drain", "cards")

    def device():
        return next(n for n in cluster.nodes() if n["name"] == "cards")["devices"][0]
    said = device()
    wanted = {"name": "NVIDIA RTX A6000", "bus": "0000:3b:00.0", "driver_cuda": "13.0", "compute_capability": "8.6",
              "pcie_lanes": 16, "host_link_bytes_per_second": 31.5e9, "health": "", "lost": ""}
    results.check("a node without [[device]] offers its card", said["id"] == "cards/gpu0" and said["kind"] == "cuda" and
                  said["model"] == "A6000" and wanted.items() <= said["card"].items(), str(said))
    cluster.write_cards(throttle=0x20)
    cluster.wait_for(lambda: device()["card"]["health"] == "slowed down: heat", 30, "the card to be slowed down")
    cluster.write_cards(lost=True)
    cluster.wait_for(lambda: device()["card"]["lost"], 30, "the card to be lost")
    results.check("a lost card is an event", cluster.event_messages("card_lost") ==
                  ["cards/gpu0: GPU is lost (fell off the bus): no plan uses it until its worker starts again"],
                  str(cluster.event_messages("card_lost")))
    results.check("motley nodes says why", "GPU is lost (fell off the bus)" in cluster.run_motley("nodes").stdout)
    cluster.workers["cards"].stop()
    cluster.write_cards()
    cluster.start_worker("cards", [])
    cluster.wait_for(lambda: not device()["card"]["lost"], 30, "the card to be back")


def one_utilization(results, cluster):
    """A job's metric is its plan's MFU with the seconds that a step took in place of the predicted ones."""
    predicted = cluster.motley("plan", JOB)["plan"]["predicted"]

    def is_same():   # once a step of the plan in force was made; the two are set one after the other
        (_, mfu), (_, seconds) = (samples(cluster.metrics_address, f"motley_job_{of}")[0] for of in ("mfu_ratio", "step_seconds"))
        return math.isclose(mfu * seconds, predicted["mfu"] * predicted["step_seconds"], rel_tol=1e-5)

    cluster.wait_for(is_same, 30, f"the MFU of the plan: {predicted}")
    results.check("one MFU for a job", predicted["mfu"] > 0, f"planned {predicted}")


def observe(results):
    with ClusterWithCards() as cluster:
        os.makedirs(cluster.path("backups"), mode=0o700)   # the coordinator makes none: a share may be missing
        cluster.start_coordinator(backup={"folder": cluster.path("backups"), "every": 1})
        for node, devices in {"n1": [PACED, PACED], "n2": [PACED]}.items():
            cluster.start_worker(node, devices)
        cluster.wait_for_nodes(["n1", "n2"])
        cards(results, cluster)
        prometheus = Prometheus(cluster)
        try:
            # One whose checkpoints lie on the nodes' own disks has metrics of its own.
            apart = job_sections(cluster, training__steps=8, checkpoint__interval=4)
            del apart["checkpoint"]["folder"]
            cluster.submit_job("apart", apart)
            cluster.wait_for_state("apart", "SUCCEEDED")
            cluster.wait_for(lambda: cluster.job("apart")["safe_checkpoint"], 30, "a safe checkpoint")
            cluster.submit_job(JOB, job_sections(cluster, training__steps=400, data__validation_interval=4, checkpoint__interval=4,
                                                 planner__strategy="cephalo"))
            cluster.wait_for_step(JOB, 8)
            # A node that is lost and a replan, so that their counters exist.
            cluster.start_worker("n3", [PACED])
            cluster.wait_for_nodes(["n3"])
            cluster.workers["n3"].kill()
            cluster.wait_for(lambda: cluster.event_messages("node_lost"), 30, "the loss of n3")
            cluster.workers.pop("n3").process.wait()
            cluster.motley("nodes", "drain", "n2")
            cluster.wait_for(lambda: int(cluster.job(JOB)["generation"]) >= 2, 30, "the second generation")
            cluster.wait_for_step(JOB, 20)
            cluster.wait_for(lambda: len(prometheus.query("up == 1")) == 4, 30, "four healthy targets", prometheus.daemon)
            cluster.wait_for(lambda: prometheus.query("rate(motley_device_steps_total[1m])"), 30, "two scrapes", prometheus.daemon)
            check_metrics_text(results, cluster)
            documented(results, cluster)
            timeline(results, cluster, ranks=2)   # those of n1
            one_utilization(results, cluster)
            for where, expression in dashboard_queries():
                results.check(f"query of {where}: {expression}", prometheus.query(expression), "returns no data")
            for selector in sorted(set(alert_selectors())):
                results.check(f"alert selector {selector}", prometheus.query(selector), "returns no data")
            cluster.run_motley("stop", JOB)
        finally:
            prometheus.daemon.stop()


def main():
    results = Results("observability")
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        results.skip("all checks", "no prometheus and promtool on this machine")
        results.exit()
    legends(results)
    results.prepare("a running cluster", observe, results)
    results.exit()


if __name__ == "__main__":
    sys.exit(main())
