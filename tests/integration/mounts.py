"""A cluster whose daemons each mount the checkpoint folder for themselves, as hosts mount a share; a test can take it away.

Every daemon has a mount namespace of its own. Needs root, unshare and nsenter; nothing is left when the daemons have ended.
"""
import os
import shutil
import subprocess

from harness import TestCluster
from cluster import ClusterError


def why_not():
    """Why this machine can have no such mounts, or None."""
    if os.geteuid() != 0:
        return "mount namespaces need root"
    missing = [program for program in ("mount", "nsenter", "umount", "unshare") if not shutil.which(program)]
    if missing:
        return f"no {', '.join(missing)} here"
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
        return "not allowed to make mount namespaces here"
    return None


class MountsCluster(TestCluster):
    """`share` is the server's folder, `mount` where the daemons see it. Beneath a mount that went lies this machine's own disk."""

    def __init__(self):
        super().__init__()
        self.share, self.mount = os.path.join(self.top, "share"), os.path.join(self.top, "mount")
        for folder in (self.share, self.mount):
            os.makedirs(folder)

    def placed(self, name, command):
        if name == "motley":
            return command
        return ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', self.share, self.mount, *command]

    def unmount(self, node, *how):
        self._inside(node, ["umount", *how, self.mount])

    def remount(self, node):
        self._inside(node, ["mount", "--bind", self.share, self.mount])

    def _inside(self, node, command):
        done = subprocess.run(["nsenter", f"--mount=/proc/{self.workers[node].pid}/ns/mnt", *command], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise ClusterError(f"{' '.join(command)} on {node}: {done.stderr.strip()}")
