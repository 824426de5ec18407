"""A node whose files lie on a file system that is not mounted. docs/inside/local-storage.md"""
import os
import subprocess

from harness import expect


def are_possible():
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


def mount_is_missing(cluster):
    """What lies on a file system that is not mounted is not lost: the node is named, and nothing is written where it should be."""
    from check_local_storage import DEVICE
    cluster.workers["n2"].stop()
    cluster.fstab = {"n2": cluster.path("fstab")}
    with open(cluster.fstab["n2"], "w", encoding="utf-8") as file:
        place = cluster.path("mounted").replace(" ", "\\040")   # fstab(5)
        file.write(f"UUID=1 {place} ext4 nofail 0 2\n")
    os.rename(cluster.disk("n2"), cluster.path("away"))
    os.makedirs(cluster.path("mounted"))
    os.symlink(cluster.path("mounted"), cluster.disk("n2"))
    cluster.start_worker("n2", [DEVICE])
    cluster.wait_for_nodes(["n2"])
    cluster.submit_job("unmounted", cluster.sections(training__steps=4))
    cluster.wait_for(lambda: "has a file system that is not mounted" in cluster.job("unmounted").get("reason", ""), 60,
                     "the mount to be named")
    expect(not os.listdir(cluster.path("mounted")), f"{os.listdir(cluster.path('mounted'))} was written below the mount point")
    # As `mount` would: the tables agree again, and what was there is there.
    os.remove(cluster.disk("n2"))
    os.rename(cluster.path("away"), cluster.disk("n2"))
    cluster.wait_for_state("unmounted", "SUCCEEDED", 120)
