"""A cluster of the tarball's programs, as `nobody`, in a root folder that has the tarball, /proc, /dev and a /tmp, and no library.

Every daemon has a mount namespace of its own, so nothing stays mounted. Without root it runs where the tarball was unpacked, with
this machine's libraries in sight.
"""
import os
import shutil
import subprocess

from harness import TestCluster

NOBODY = 65534
# root, the tarball's folder, the cluster's folder, then the command.
ENTER = """root=$0 && mount --bind "$1" "$root/motley" && mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" &&
mount -t tmpfs -o mode=1777 none "$root/tmp" && mkdir -p "$root$2" && mount --bind "$2" "$root$2" && shift 2 &&
exec chroot --userspec=65534:65534 --groups= "$root" "$@"
"""


def why_not():
    """Why this machine can have no such root, or None."""
    if os.geteuid() != 0:
        return "another root folder needs root"
    missing = [program for program in ("chroot", "mount", "unshare") if not shutil.which(program)]
    if missing:
        return f"no {', '.join(missing)} here"
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
        return "not allowed to make mount namespaces here"
    return None


class PackedCluster(TestCluster):
    def __init__(self, unpacked):
        self.alone = why_not() is None
        if self.alone:
            os.setegid(NOBODY)   # what is written here for the daemons is their group's
        super().__init__()
        self.unpacked, self.root = unpacked, os.path.join(self.top, "root")
        self.bin = "/motley/bin" if self.alone else os.path.join(unpacked, "bin")
        for name in ("motley", "proc", "dev", "tmp"):
            os.makedirs(os.path.join(self.root, name))
        for folder, _, _ in os.walk(self.top) if self.alone else []:
            os.chown(folder, NOBODY, NOBODY)

    def __exit__(self, *how):
        super().__exit__(*how)
        if self.alone:
            os.setegid(os.getgid())

    def placed(self, name, command):
        if not self.alone:
            return command
        return ["unshare", "-m", "sh", "-c", ENTER, self.root, self.unpacked, self.top, *command]
