#!/usr/bin/env python3
"""The page of a live cluster, in a real browser: what it shows is what the API says."""
import json
import os
import sys
import time

import browser
import page_http
from harness import Results, TestCluster, job_sections

JOB = "shown"
# What somebody may call a card: markup, the other direction, very long.
SAID = "<img src=x onerror=\"document.title='taken'\">\\u202egnol" + "x" * 60   # the coordinator escapes what turns lines around
HOSTILE = "<img src=x onerror=\"document.title='taken'\">\u202egnol" + "x" * 60
PACED = {"kind": "emulated", "model": HOSTILE, "flops_per_second": 4e8, "memory_bytes": 1 << 30, "link_bytes_per_second": 1e9}
FACT = "document.querySelector('[data-fact=\"%s\"] b')?.textContent"
ROW = "[...document.querySelectorAll('tr[data-key=\"%s\"] td')].map((c) => c.textContent)"


def digits(value, n):
    """As the page writes a number between 0.001 and a million: it is told seven digits."""
    return float(f"{float(f'{value:.7g}'):.{n}g}")


def cluster_view(results, cluster, page):
    address, key = page_http.opened(cluster)
    page.open(f"http://{address}/#{key}")
    page.wait(f"document.querySelector('tr[data-key=\"{JOB}\"]') && document.querySelector('tr[data-key=\"n2\"]')")
    nodes = {n["name"]: n for n in cluster.nodes()}
    for name, node in nodes.items():
        row = page.value(ROW % name)
        results.check(f"the row of node {name}", row[0] == name and row[1] == node["state"] and row[2] == str(len(node["devices"])), str(row))
    device = page.value(ROW % "n1/gpu0")
    results.check("a card's name is a text, whatever it holds", device[1] == SAID and page.value("document.title") == "motley" and
                  page.value("document.querySelectorAll('main img').length") == 0, str(device))
    job = page.wait(f"(() => {{ const row = {ROW % JOB}; return /running/.test(row[1]) && row[4] !== '-' && row; }})()")
    step = int(job[2].split(" / ")[0])
    records = {int(s["step"]): s for s in cluster.steps(JOB)}
    # The page may be a step ahead of what was asked before.
    cluster.wait_for(lambda: step in {int(s["step"]) for s in cluster.steps(JOB)}, 20, f"step {step}")
    records = {int(s["step"]): s for s in cluster.steps(JOB)}
    results.check("a job's step and loss are the API's", float(job[4]) == digits(records[step]["loss"], 4), f"{job} {records[step]}")


def job_view(results, cluster, page):
    page.value(f"location.hash += '/job/{JOB}'")
    page.wait("document.querySelectorAll('section.chart canvas').length >= 5")
    # Step and loss of one moment.
    step, loss = page.value(f"[{FACT % 'step'}, {FACT % 'loss'}]")
    record = cluster.wait_for(lambda: {int(s["step"]): s for s in cluster.steps(JOB)}.get(int(step.split(" / ")[0])), 20, f"step {step}")
    results.check("numbers are those of the API at one step", float(loss) == digits(record["loss"], 5), f"{step} {loss} {record}")
    page.wait("document.querySelectorAll('tr[data-key=\"n1/gpu0\"]').length === 2")   # its rank, and its part of the plan
    plan = cluster.motley("plan", JOB)["plan"]
    results.check("the plan's sentence", f"{plan['strategy']}, {plan['schedule']}, batch {plan['global_batch']}" in page.value("document.body.innerText"))
    page.wait("document.querySelector('tr[data-key=\"n1/gpu0\"] td:nth-child(5)').textContent.includes('s')")
    page.value("[...document.querySelectorAll('button')].filter((b) => b.textContent.startsWith('draw')).forEach((b) => b.click())")
    for kind in ("simulated", "measured"):
        page.wait(f"document.querySelector('#{kind} canvas')", 40)
        results.check(f"the step as {kind}", f"as {kind}: " in page.value(f"document.getElementById('{kind}').innerText"))
    page.value("document.getElementById('log').click()")
    page.wait("document.querySelectorAll('section.chart canvas').length >= 5")
    results.check("its log lines", "training: step " in page.value("document.getElementById('logs').textContent"))
    for width, dark in ((390, False), (1280, True)):
        page.size(width, 900, dark=dark)
        fits = page.wait(f"document.documentElement.clientWidth === {width} && document.documentElement.scrollWidth <= {width}")
        results.check(f"it fits {width} pixels", fits)
    page.size(1280, 900)


def lost_node(results, cluster, page):
    """A node is killed: page and events say so. How much later the page does is printed."""
    address, key = page_http.opened(cluster)
    page.open(f"http://{address}/#{key}")
    page.wait("document.querySelector('tr[data-key=\"n2\"]')")
    page.value("new MutationObserver(() => { window.lostAt ||= /lost/.test((" + ROW % "n2" + ")[1]) && Date.now(); })"
               ".observe(document.body, {subtree: true, childList: true, characterData: true})")
    cluster.workers["n2"].kill()
    seen = page.wait("window.lostAt", 60)
    event = next(e for e in cluster.events() if e["kind"] == "node_lost" and e["node"] == "n2")
    cluster.workers.pop("n2").process.wait()
    results.check(f"a killed node is shown, {(seen - int(event['unix_ms'])) / 1e3:.2f} s behind its event", True)
    page.value(f"location.hash += '/job/{JOB}'")
    page.wait("[...document.querySelectorAll('h2')].find((h) => h.textContent === 'Generations').nextSibling.querySelectorAll('tbody tr').length > 0", 60)
    results.check("the generation that follows has its cause", "n2" in page.value("document.body.innerText"))


def coordinator_again(results, cluster, page):
    """The coordinator is killed and started again: the page finds it, and the curve has its begin."""
    cluster.wait_for_step(JOB, 20)
    first, before = next(s["loss"] for s in cluster.steps(JOB) if int(s["step"]) == 1), int(cluster.job(JOB)["step"])
    cluster.coordinator.kill()
    cluster.coordinator.process.wait()
    page.wait("/does not answer/.test(document.getElementById('connection').textContent)")
    cluster.start_coordinator()
    page.wait("document.getElementById('connection').textContent === 'live'", 60)
    cluster.wait_for_step(JOB, before + 3)
    page.wait(f"Number({FACT % 'step'}?.split(' / ')[0]) >= {before + 3}", 60)
    # Pages that begin get it, at most ten seconds old.
    curve = cluster.wait_for(lambda: (h := page_http.data(cluster, f"job/{JOB}")["history"]) and int(h["last_step"]) >= before + 3 and h, 30,
                             "the curve behind the restart")
    results.check("the curve goes back behind the restart", abs(float(curve["loss"][0]) - first) < 1e-5, str(curve)[:300])
    page.wait("[...document.querySelectorAll('td')].filter((c) => c.textContent === 'submitted').length === 1")   # an event of before


def report(results, cluster, page):
    path = os.path.join(cluster.top, "job.html")
    done = cluster.run_motley("report", JOB, "-o", path)
    results.check("motley report ends well", done.returncode == 0 and "holds no key" in done.stderr, done.stdout + done.stderr)
    with open(path, encoding="utf-8") as file:
        html = file.read()
    results.check("the report holds no key and no address", page_http.opened(cluster)[1] not in html and cluster.metrics_address not in html)
    page.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    page.open(f"file://{path.replace(' ', '%20')}")
    job = cluster.job(JOB)
    page.wait("document.querySelectorAll('section.chart canvas').length >= 5 && document.querySelector('#simulated canvas')")
    shown = page.value(f"[{FACT % 'state'}, {FACT % 'step'}, {FACT % 'loss'}]")
    results.check("the report shows the job's end", shown[0] == job["state"].lower() and shown[1].split(" / ")[0] == str(job["step"]) and
                  abs(float(shown[2]) - job["last_step"]["loss"]) < 1e-4, f"{shown} {job}")
    page.call("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    for arguments, code in (((JOB, "-o", "json"), 64), (("no-such-job", "-o", path), 66), ((JOB, "-o", cluster.top), 73)):
        done = cluster.run_motley("report", *arguments)
        results.check(f"motley report {' '.join(arguments[::2])} ends with {code}", done.returncode == code, f"{done.returncode}: {done.stderr}")


def deleted(results, cluster, page):
    address, key = page_http.opened(cluster)
    page.open(f"http://{address}/#{key}/job/{JOB}")
    page.wait(f"{FACT % 'state'} === 'stopped'")
    cluster.motley("delete", JOB)
    page.wait("/there is no job/.test(document.getElementById('reason').textContent)")
    results.check("what was known of it is not shown any more", page.value("[...document.querySelectorAll('.facts, .charts, table')].every((e) => !e.offsetHeight)"))
    page.value(f"location.hash = '#{key}'")
    page.wait(f"document.querySelector('tr[data-key=\"n1\"]') && !document.querySelector('tr[data-key=\"{JOB}\"]')")
    page.value("location.hash = '#0000'")
    page.wait("/no data/.test(document.getElementById('connection').textContent)")
    page.value("location.hash = ''")
    page.wait("/no key behind/.test(document.body.innerText)")


def broken_job(results, cluster, page):
    """The first cause of a job that failed, markup and all."""
    path = os.path.join(cluster.top, "<b>no data")
    cluster.submit_job("broken", job_sections(cluster, data__path=path))
    cluster.wait_for(lambda: cluster.job("broken")["state"].upper() == "FAILED", 60, "a job to fail")
    address, key = page_http.opened(cluster)
    page.open(f"http://{address}/#{key}/job/broken")
    page.wait("document.getElementById('reason')?.textContent.includes('<b>no data')")


def large_cluster(results, cluster, page):
    """512 devices on 128 nodes and 1,000 jobs; then none. The page's own server would say the same, of so many."""
    address, key = page_http.opened(cluster)
    digest = page_http.data(cluster, "cluster")["page"]
    nodes = {f"node:n{n:03}": {"name": f"n{n:03}", "state": "ready", "devices": [
        {"id": f"n{n:03}/gpu{d}", "model": "A100", "memory_bytes": str(80 << 30), "measured_tokens_per_second": 100, "state": "training"}
        for d in range(4)]} for n in range(128)}
    jobs = {f"job:j{n:04}": {"id": f"j{n:04}", "state": "JOB_STATE_QUEUED", "submitted_unix_ms": str(1000 + n), "reason": "waits for j0000"}
            for n in range(1000)}

    def document(cursor, rows):
        return json.dumps({"life": "test", "page": digest, "from": 0, "cursor": cursor, "rows": rows})

    page.answer("/data/cluster", document(1, {**nodes, **jobs}))
    page.open(f"http://{address}/#{key}")
    page.wait("document.querySelector('tr[data-key=\"j0099\"]') && document.querySelector('tr[data-key=\"n000/gpu3\"]')")
    counts = page.value("[...document.querySelectorAll('.scroll > button')].map((b) => b.textContent)")
    results.check("long tables are cut, and say by how much", counts == ["900 more", "28 more", "412 more"], str(counts))
    page.value("document.querySelector('.scroll > button').click()")
    page.wait("document.querySelector('tr[data-key=\"j0999\"]')")
    page.answer("/data/cluster", document(2, {}))
    page.wait("document.body.innerText.includes('no jobs yet') && document.body.innerText.includes('no nodes yet')")
    page.answer("/data/cluster", None)


def with_browser(results, cluster):
    with browser.Browser() as page:
        page.size(1280, 900)
        for name, test in (("the cluster", cluster_view), ("a job", job_view), ("a large cluster", large_cluster), ("a node that is lost", lost_node),
                           ("a coordinator that was started again", coordinator_again)):
            results.run(f"page of {name}", test, results, cluster, page)
        cluster.run_motley("stop", JOB)
        cluster.wait_for_state(JOB, "STOPPED")
        results.run("a report", report, results, cluster, page)
        results.run("page of what is gone", deleted, results, cluster, page)
        results.run("page of a job that failed", broken_job, results, cluster, page)
        # A 401 is what the test asked for, and so is a coordinator that is gone.
        results.check("the browser found nothing wrong", not page.errors, str(page.errors))


def serve(results):
    with TestCluster() as cluster:
        cluster.start({"n1": [PACED, PACED], "n2": [PACED]})
        cluster.submit_job(JOB, job_sections(cluster, training__steps=4000, checkpoint__interval=20, data__validation_interval=10))
        cluster.wait_for_step(JOB, 3)
        for name, test in (("keys", page_http.keys), ("a crowd", page_http.crowd), ("rude requests", page_http.rude)):
            results.run(name, test, results, cluster)
        why = browser.why_not()
        results.skip("in a browser", why) if why else with_browser(results, cluster)


def main():
    results = Results("page")
    begin = time.monotonic()
    results.prepare("a running cluster", serve, results)
    print(f"the suite took {time.monotonic() - begin:.0f} s")
    results.exit()


if __name__ == "__main__":
    sys.exit(main())
