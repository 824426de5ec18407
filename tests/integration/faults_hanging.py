"""What hangs stops nobody else: a share that does not answer on the coordinator's machine, and a log that nobody reads."""
import fcntl
import os
import signal
import stat
import subprocess

from harness import ROOT, TestCluster, expect
from faults_common import PACED, paced_job

HUNG = "HUNG"   # of a path: whatever the coordinator opens there never comes back
PIPE_BYTES = 4096
SUBMITS = 60    # several lines of the log each: more than the pipe holds


class HangingCluster(TestCluster):
    """The coordinator has a share that hangs, and its log is a pipe that nobody reads."""

    def __init__(self):
        super().__init__()
        self.reader, self.writer = os.pipe()
        fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        os.set_inheritable(self.writer, True)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", os.path.join(self.top, "hang_opens.so"),
                        os.path.join(ROOT, "tests", "integration", "hang_opens.c"), "-ldl"], check=True)

    def program(self, name):
        if name != "motley-coordinator":
            return super().program(name)
        path = os.path.join(self.top, "hanging-coordinator")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexport HANG_OPENS='{HUNG}' LD_LIBRARY_PATH='{self.top}' LD_PRELOAD=hang_opens.so\n"
                       f"exec '{super().program(name)}' \"$@\" 2>/proc/{os.getpid()}/fd/{self.writer}\n")
        os.chmod(path, stat.S_IRWXU)
        return path

    def stop(self):
        super().stop()
        for descriptor in (self.reader, self.writer):
            if descriptor is not None:
                os.close(descriptor)
        self.reader = self.writer = None


def hanging():
    """A job in a folder that hangs is named with it, lends the cluster and can be stopped; the next job trains, and SIGTERM ends the
    coordinator, while its log stands still as well."""
    with HangingCluster() as cluster:
        cluster.start({"n1": [PACED]})
        folder = os.path.join(cluster.top, HUNG)
        os.makedirs(folder)
        paced_job(cluster, "hangs", checkpoint__folder=folder)
        cluster.wait_for(lambda: "does not answer on the coordinator's machine" in cluster.job("hangs")["reason"]
                         and folder in cluster.job("hangs")["reason"], 60, "the folder to be named")
        paced_job(cluster, "borrower", training__steps=1_000_000)
        cluster.wait_for_step("borrower", 3)
        waits, borrows = cluster.job("hangs"), cluster.job("borrower")
        expect("lends the cluster to job borrower until its checkpoint folder is back" in waits["reason"], f"it says: {waits['reason']}")
        expect("borrows the cluster from job hangs" in borrows["reason"], f"the borrower says: {borrows['reason']}")
        for number in range(SUBMITS):
            paced_job(cluster, f"queued-{number}")
            cluster.motley("stop", f"queued-{number}")
        cluster.motley("stop", "hangs")
        cluster.wait_for_state("hangs", "STOPPED")
        begins_in_it = os.path.join(folder, "start")   # the worker sees it
        os.makedirs(begins_in_it)
        cluster.motley("stop", "borrower")
        cluster.wait_for_state("borrower", "STOPPED")
        paced_job(cluster, "begins", checkpoint__initial=begins_in_it)
        cluster.wait_for(lambda: f"checkpoint.initial '{begins_in_it}' does not answer" in cluster.job("begins")["reason"], 60,
                         "the folder of the start to be named")
        cluster.motley("stop", "begins")
        paced_job(cluster, "good", training__steps=1_000_000)
        cluster.wait_for_step("good", 3)
        pid = cluster.coordinator.pid
        os.kill(pid, signal.SIGTERM)
        cluster.wait_for(lambda: not cluster.coordinator.alive(), 60, "the coordinator to end")
        expect(cluster.coordinator.process.returncode == 0, f"status {cluster.coordinator.process.returncode}")
        said = os.read(cluster.reader, 1 << 20).decode(errors="replace")
        expect("nobody read the log" not in said, "4 MiB were not enough for so little")
