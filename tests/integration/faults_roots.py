"""What lies in a job's folders leads out of the worker's roots while the job trains."""
import os
import shutil
import tempfile

from harness import expect
from faults_common import newest_checkpoint, paced_job


def swapped_folder(cluster):
    """The job's checkpoint folder is moved away and a link outside stands in its place: nothing is written there, the save says
    so, training goes on, and with the folder back the job ends as it should."""
    with open(next(iter(cluster.workers.values())).log_path, encoding="utf-8") as log:
        if "held to [files] roots by Landlock" not in log.read():
            return "the kernel here has no Landlock (a worker's log says why)"
    outside = tempfile.mkdtemp(prefix="motley-outside-")
    folder = cluster.checkpoints("swapped")
    try:
        paced_job(cluster, "swapped", training__steps=60)
        cluster.wait_for(lambda: newest_checkpoint(cluster, "swapped") >= 5, 60, "the first checkpoint", poll_seconds=0.02)
        os.rename(folder, f"{folder}.old")
        os.symlink(outside, folder)
        try:
            failed = cluster.wait_for(lambda: [event["message"] for event in cluster.events("swapped") if event["kind"] == "checkpoint_failed"],
                                      60, "the save that fails")
        finally:
            os.remove(folder)
            os.rename(f"{folder}.old", folder)
        expect("ermission denied" in failed[0], f"{failed}")
        job = cluster.wait_for_state("swapped", "SUCCEEDED", 120)
        expect(os.path.isdir(job["newest_checkpoint"]) and newest_checkpoint(cluster, "swapped") == 60, f"{job['newest_checkpoint']}")
        expect(not os.listdir(outside), f"it wrote outside: {os.listdir(outside)}")
    finally:
        cluster.run_motley("stop", "swapped")
        shutil.rmtree(outside)
    return None
