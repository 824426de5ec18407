"""The page's port as scripts use it: who gets what, and what slow, many and rude clients change."""
import json
import os
import resource
import select
import socket
import time
import urllib.error
import urllib.request

from harness import expect
from patience import patience
from cluster import DIRECT, fetch

POLICY = "content-security-policy"


def ask(address, path, key="", method="GET", **headers):
    """Status, headers in lower case, text."""
    request = urllib.request.Request(f"http://{address}{path}", method=method, headers={**({"Motley-Key": key} if key else {}), **headers})
    try:
        with DIRECT.open(request, timeout=patience(10)) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read().decode()


def opened(cluster, *job):
    """(address, key) of `motley open`."""
    said = cluster.motley("open", *job)
    return said["url"].removeprefix("http://").split("/", 1)[0], said["key"]


def data(cluster, topic, after=0, life=""):
    """What a page of this topic is told, once it is known."""
    address, key = opened(cluster)

    def known():
        status, _, text = ask(address, f"/data/{topic}?after={after}&life={life}", key)
        expect(status == 200, f"{topic}: {status} {text}")
        answer = json.loads(text)
        return None if answer.get("again") else answer

    return cluster.wait_for(known, 20, f"what {topic} has")


def keys(results, cluster):
    address, key = opened(cluster)
    status, headers, page = ask(address, "/")
    results.check("the page is there without a key, and says nothing of the cluster",
                  status == 200 and headers["content-type"].startswith("text/html") and "n1/" not in page and key not in page, str(headers))
    results.check("its policy allows its own script and its own coordinator alone",
                  "default-src 'none'" in headers[POLICY] and "connect-src 'self'" in headers[POLICY] and "unsafe" not in headers[POLICY] and
                  "frame-ancestors 'none'" in headers[POLICY] and headers["x-frame-options"] == "DENY", headers[POLICY])
    path = cluster.path("coordinator-state", "page.key")
    with open(path, encoding="ascii") as file:
        results.check("the key is its account's alone", file.read().strip() == key and os.stat(path).st_mode & 0o077 == 0, oct(os.stat(path).st_mode))
    with open(cluster.coordinator.log_path, encoding="utf-8") as file:
        results.check("it is in no log", key not in file.read())
    other = key[::-1]
    for name, given in (("no key", ""), ("another coordinator's key", other), ("half a key", key[:16])):
        status, headers, text = ask(address, "/data/cluster", given)
        results.check(f"{name} gets no data", status == 401 and "motley open" in text and "n1" not in text, f"{status} {text}")
    status, headers, _ = ask(address, "/data/cluster", key, Origin="http://elsewhere.example", Host="elsewhere.example")
    results.check("no other site is allowed to read", not any(h.startswith("access-control") for h in headers), str(headers))
    status, _, _ = ask(address, "/data/cluster", method="OPTIONS", Origin="http://elsewhere.example",
                       **{"Access-Control-Request-Headers": "motley-key"})
    results.check("a browser that asks for another site is refused", status == 405, str(status))
    for path in ("/../etc/passwd", "/%2e%2e/", "/data/job/..", "/data/job/%00", "/data/job/A", "/data/", "/page.key"):
        results.check(f"GET {path} finds nothing", ask(address, path, key)[0] == 404)
    done = cluster.run_motley("open", "no-such-job")
    results.check("motley open names a job that is not there", done.returncode == 66 and "no-such-job" in done.stderr, done.stderr)
    done = cluster.run_motley("open", "--print")
    results.check("motley open prints the address and nothing else", done.stdout == f"http://{address}/#{key}\n" and not done.stderr,
                  done.stdout + done.stderr)


def crowd(results, cluster):
    """Many who send a byte now and then: metrics and pages are answered as before."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    host, port = cluster.metrics_address.split(":")
    key = opened(cluster)[1]

    def connect(words):
        one = socket.create_connection((host, int(port)), timeout=patience(10))
        one.sendall(words)
        return one

    held = [connect(b"G") for _ in range(1000)]
    for _ in range(3):
        for one in held:
            try:
                one.sendall(b"E")
            except OSError:
                pass   # closed to make room
        results.check("metrics are served beside 1,000 slow clients", "motley_nodes" in fetch(f"http://{cluster.metrics_address}/metrics"))
        results.check("the page's data, too", ask(cluster.metrics_address, "/data/cluster", key)[0] == 200)
    for one in held:
        one.close()


def rude(results, cluster):
    """Requests that are none: each is answered with an error or closed, and the next one is served."""
    host, port = cluster.metrics_address.split(":")
    for words in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 3000, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
                  b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00" * 9000):
        with socket.create_connection((host, int(port)), timeout=patience(10)) as one:
            one.sendall(words)
            answer, deadline = b"", time.monotonic() + patience(10)
            while select.select([one], [], [], max(0, deadline - time.monotonic()))[0]:
                try:
                    block = one.recv(4096)
                except ConnectionResetError:
                    break
                if not block:
                    break
                answer += block
        results.check(f"{words[:12]!r} is no request", not answer or answer.split()[1] in (b"404", b"405", b"431"), str(answer[:60]))
    results.check("and the next one is served", "motley_nodes" in fetch(f"http://{cluster.metrics_address}/metrics"))
