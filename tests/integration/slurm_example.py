"""deploy/examples/slurm as docs/use/without-root.md says, with a stand-in for srun: two nodes join by one token, train, leave when their
time is over, and come back with the next allocation under the same names."""
import os
import signal
import subprocess

from harness import TestCluster, expect, job_sections, published_checkpoints
from patience import patience

NAMES = ["n1", "n2"]
# Of its options only those are known that the example has.
SRUN = f"""#!/bin/sh
while case $1 in --het-group=*|--kill-on-bad-exit=0) true;; --*) exit 2;; *) false;; esac; do shift; done
pids=
for name in {' '.join(NAMES)}; do
  SLURMD_NODENAME=$name SLURM_CPUS_PER_TASK=1 "$@" >>"$HOME/$name.log" 2>&1 &
  pids="$pids $!"
done
echo $pids >"$HOME/pids"
for pid in $pids; do wait $pid || exit; done
"""


class Allocation:
    """What sbatch would run, and the processes of its step."""

    def __init__(self, cluster, home):
        self.cluster, self.home = cluster, home
        with open(os.path.join(home, "motley", "share", "motley", "examples", "slurm", "workers.sbatch"), encoding="utf-8") as file:
            script = file.read().replace("login1:7073", cluster.workers_address).replace("/scratch/$USER", f"'{cluster.top}'")
        path = os.path.join(home, "workers.sbatch")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        environment = {**os.environ, "HOME": home, "PATH": f"{home}/bin:{os.environ['PATH']}"}
        self.process = subprocess.Popen(["bash", path], env=environment)

    def time_is_over(self):
        """SIGTERM to the tasks, as `--signal=TERM@120` has it; the status of the step."""
        with open(os.path.join(self.home, "pids"), encoding="utf-8") as file:
            for pid in file.read().split():
                os.kill(int(pid), signal.SIGTERM)
        return self.process.wait(patience(60))

    def logs(self):
        texts = []
        for name in NAMES:
            with open(os.path.join(self.home, f"{name}.log"), encoding="utf-8", errors="replace") as file:
                texts.append(file.read()[-600:])
        return " | ".join(texts)


def make_home(cluster, unpacked):
    home = os.path.join(cluster.top, "home")
    os.makedirs(os.path.join(home, "bin"))
    os.makedirs(os.path.join(home, "motley-nodes"), mode=0o700)
    os.symlink(unpacked, os.path.join(home, "motley"))
    for path, mode, text in ((os.path.join(home, "bin", "srun"), 0o755, SRUN),
                             (os.path.join(home, "motley-nodes", "token"), 0o600,
                              cluster.run_motley("node", "token", "--reusable", "--ttl", "90d").stdout)):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
    return home


def two_allocations(unpacked):
    with TestCluster() as cluster:
        cluster.bin = os.path.join(unpacked, "bin")
        cluster.start_coordinator(workers={"listen": cluster.workers_address, "tls": True})
        home = make_home(cluster, unpacked)
        first = Allocation(cluster, home)
        cluster.wait_for_nodes(NAMES)
        cluster.submit_job("slurm", job_sections(cluster, training__steps=1000000, checkpoint__interval=1000000))
        cluster.wait_for_step("slurm", 5)
        status = first.time_is_over()
        expect(status == 0, f"the step ended with status {status}: {first.logs()}")
        saved = published_checkpoints(cluster.checkpoints("slurm"))
        expect(saved and saved[-1][1] >= 5, f"saved before the end: {saved}")
        second = Allocation(cluster, home)
        cluster.wait_for_nodes(NAMES)
        cluster.wait_for_step("slurm", saved[-1][1] + 5)
        expect(len(cluster.nodes()) == len(NAMES), f"nodes: {cluster.nodes()}")
        status = second.time_is_over()
        expect(status == 0, f"the second step ended with status {status}: {second.logs()}")
