"""Debian packages in a root folder of their own: what they say, how they come and go, and what stays of a user's."""
import glob
import os
import shutil
import subprocess
import tempfile

from harness import expect
from patience import patience

SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "build", "packages")
# Its compression by zstd and the wheel's symbols are errors to lintian of this Debian, which it takes a minute to find.
LIBTORCH = "motley-libtorch-2.11"
DAEMONS = ["coordinator", "worker"]


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience(300))
    expect(done.returncode == 0, f"{' '.join(command)}: status {done.returncode}: {(done.stdout + done.stderr)[-800:]}")
    return done.stdout


class DebianRoot:
    """A folder with a database of dpkg's. Maintainers' scripts run outside of it, as there is no shell inside."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("info", "updates", "triggers"):
            os.makedirs(self.path("var", "lib", "dpkg", name))
        open(self.path("var", "lib", "dpkg", "status"), "w", encoding="utf-8").close()

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def dpkg(self, *arguments):
        return output("dpkg", f"--root={self.folder}", "--force-script-chrootless", "--force-depends", *arguments)

    def read(self, *parts):
        with open(self.path(*parts), encoding="utf-8") as file:
            return file.read()


def field(package, name):
    return output("dpkg-deb", "-f", package, name).strip()


def say_what_they_need(packages):
    expect("libgrpc++1.51 (>= " in field(packages["motley-coordinator"], "Depends"), "the coordinator needs gRPC")
    worker = field(packages["motley-worker"], "Depends")
    expect("motley-libtorch-2.11" in worker and "libc6 (>= " in worker and "libgomp1" not in worker, f"the worker needs {worker}")
    for name, package in packages.items():
        description = field(package, "Description").splitlines()
        expect(len(description) > 2 and field(package, "Maintainer") and field(package, "Section") == "science", f"{name}: {description}")


def come_and_go(root, packages):
    root.dpkg("-i", *packages.values())
    accounts = root.read("etc", "passwd")
    for daemon in DAEMONS:
        expect(f"motley-{daemon}:" in accounts, f"no account motley-{daemon}: {accounts}")
        expect(os.path.isfile(root.path("usr", "lib", "systemd", "system", f"motley-{daemon}.service")), f"no unit of the {daemon}")
    enabled = glob.glob(root.path("etc", "systemd", "system", "*.wants", "*"))
    expect(not enabled, f"enabled without a configuration: {enabled}")
    with open(root.path("etc", "motley", "worker.toml"), "a", encoding="utf-8") as file:
        file.write("# mine\n")
    root.dpkg("-i", *(package for name, package in packages.items() if name != LIBTORCH))
    expect(root.read("etc", "motley", "worker.toml").endswith("# mine\n"), "a changed configuration was replaced")


def purge(root, packages):
    kept = root.path("var", "lib", "motley", "coordinator", "coordinator.db")
    os.makedirs(os.path.dirname(kept))
    open(kept, "w", encoding="utf-8").close()
    drop_in = root.path("etc", "systemd", "system", "motley-worker.service.d")
    os.makedirs(drop_in)
    root.dpkg("-r", *packages)
    expect(os.path.exists(root.path("etc", "motley", "worker.toml")), "removing took the configuration")
    root.dpkg("-P", *packages)
    expect(not os.path.exists(root.path("etc", "motley")) and not os.path.exists(drop_in), "purging left the configuration")
    expect(os.path.exists(kept), "purging took the state")
    expect(not os.path.exists(root.path("usr", "bin", "motley")), "purging left programs")


def apt_finds_them():
    """With this machine's database of packages; nothing is installed."""
    with tempfile.TemporaryDirectory() as folder:
        sources = os.path.join(folder, "sources.list")
        with open(sources, "w", encoding="utf-8") as file:
            file.write(f"deb [trusted=yes] file:{SOURCE} ./\n")
        for name in ("lists", "cache"):
            os.makedirs(os.path.join(folder, name, "partial"))
        apt = ["apt-get", "-o", f"Dir::Etc::SourceList={sources}", "-o", "Dir::Etc::SourceParts=/dev/null", "-o",
               f"Dir::State::Lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache", "-o", "APT::Sandbox::User=root", "-q"]
        output(*apt, "update")
        said = output(*apt, "install", "-s", "--no-install-recommends", "motley-worker")
        expect("Inst motley-libtorch-2.11 " in said and "Inst motley-worker " in said, said[-600:])


def lintian(packages):
    if not shutil.which("lintian"):
        return "lintian is not on this machine (apt-get install lintian)"
    judged = [path for name, path in packages.items() if name != LIBTORCH]
    done = subprocess.run(["lintian", "--fail-on", "error", "--allow-root", *judged], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"status {done.returncode}: {done.stdout}{done.stderr}")
    return None


def check(results, packages, trains_from):
    results.run("packages say what they need", say_what_they_need, packages)
    if os.geteuid() == 0:
        with tempfile.TemporaryDirectory() as folder:
            root = DebianRoot(folder)
            results.run("packages are installed, and again", come_and_go, root, packages)
            results.run("the installed packages train", trains_from, root)
            results.run("purging leaves the state alone", purge, root, packages)
        results.run("apt takes the folder as a source", apt_finds_them)
    else:
        results.skip("packages are installed", "dpkg wants root")
    results.run("lintian finds no error", lintian, packages)
