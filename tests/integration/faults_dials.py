"""Strangers at a port that asks for certificates, beside a job that trains: ten dials a second of every kind that needs none."""
import os
import socket
import ssl
import subprocess
import sys
import threading
import time

from harness import BIN
from faults_common import PACED, Progress, holds, paced_job, stop_job
from faults_strangers import ROUNDS, alternated, dial
from netns import NetworkCluster

NODES = {"n1": [PACED], "n2": [PACED]}
# Each so often a second: ten in all with the greetings and declarations by TLS, two and one.
KINDS_A_SECOND = {"scan": 2, "silence": 1, "plaintext": 1, "half a handshake": 1, "TLS and no more": 1, "own certificate": 1}
GREETINGS, DECLARATIONS = 2, 1
TIMEOUT = 5


def own_certificate(folder, node):
    """A certificate of the node's name that nobody but itself signed."""
    key, certificate = os.path.join(folder, "stranger.key"), os.path.join(folder, "stranger.crt")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out",
                    certificate, "-subj", f"/CN=node {node}", "-addext", f"subjectAltName=URI:spiffe://motley/node/{node}"],
                   capture_output=True, check=True)
    return certificate, key


def context_of(certificate=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    if certificate:
        context.load_cert_chain(*certificate)
    return context


def one(kind, address, certificate):
    with socket.create_connection(address, TIMEOUT) as line:
        line.settimeout(TIMEOUT)
        if kind == "silence":
            time.sleep(2)
        elif kind == "plaintext":
            line.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))
            line.recv(100)
        elif kind == "half a handshake":
            line.sendall(bytes([22, 3, 1, 2, 0, 1]))
            time.sleep(2)
        elif kind != "scan":
            with context_of(certificate if kind == "own certificate" else None).wrap_socket(line) as tls:
                tls.recv(100)


def dial_for(address, certificate, kind, seconds, each):
    """One dial after the other; those that take longer overlap."""
    def quietly():
        try:
            one(kind, address, certificate)
        except OSError:
            pass  # refused, as it should be
    end, next_one, dials = time.monotonic() + seconds, time.monotonic(), 0
    while next_one < end:
        time.sleep(max(0.0, next_one - time.monotonic()))
        threading.Thread(target=quietly, daemon=True).start()
        next_one, dials = next_one + each, dials + 1
    print(f"{kind}: {dials} dials", flush=True)


class DialedCluster(NetworkCluster):
    """Strangers are on a host of their own."""

    def __init__(self):
        super().__init__([*NODES, "stranger"])
        self.certificate = own_certificate(self.path(""), "n1")

    def stranger(self, kind, seconds):
        command = self.placed("stranger", [sys.executable, os.path.abspath(__file__), self.host, str(self.workers_port), kind, str(seconds),
                                           *self.certificate])
        print("    " + subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip(), flush=True)

    def all_of_them(self, seconds):
        threads = [threading.Thread(target=self.stranger, args=(kind, seconds)) for kind in KINDS_A_SECOND]
        threads += [threading.Thread(target=dial, args=(self, seconds, kind, 1 / often, "--tls", "yes"))
                    for kind, often in (("greetings", GREETINGS), ("declarations", DECLARATIONS))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def dials(seconds):
    """Rows, and what went wrong in words."""
    if not os.path.exists(os.path.join(BIN, "strangers_bench")):
        print("left out: dials: no strangers_bench", flush=True)
        return [], []
    with DialedCluster() as cluster:
        cluster.start(NODES)
        paced_job(cluster, "train", training__steps=1_000_000, checkpoint__interval=20)
        cluster.wait_for_step("train", 10)
        rows = alternated(cluster, "strangers of eight kinds by TLS, ten dials a second", seconds, cluster.all_of_them,
                          Progress("rounds of dials", ROUNDS))
        problems = [] if all(holds(one) for one in rows) else [f"{[(e['kind'], e.get('message')) for e in cluster.events()][-12:]}"]
        stop_job(cluster, "train")
    return rows, problems


if __name__ == "__main__":
    HOST, PORT, KIND, SECONDS, CERTIFICATE, KEY = sys.argv[1:]
    dial_for((HOST, int(PORT)), (CERTIFICATE, KEY), KIND, float(SECONDS), 1 / KINDS_A_SECOND[KIND])
