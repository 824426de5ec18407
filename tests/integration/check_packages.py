#!/usr/bin/env python3
"""The tarball and the Debian packages: made, unpacked, and a job trained and exported with what was in them.

usage: check_packages.py   (it calls ./run pack and ./run package)
"""
import glob
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from harness import ROOT, Results, TestCluster, expect, job_sections
from packed_cluster import NOBODY, PackedCluster, why_not
import containers
import debian_root
import packed_second_rank
import slurm_example
from patience import patience

PACED = {"kind": "emulated", "model": "slow", "flops_per_second": 6e8, "memory_bytes": 1 << 30, "link_bytes_per_second": 1e9}
PROGRAMS = ["motley", "motley-coordinator", "motley-rank", "motley-worker"]
TENSORS_HEADER = 8   # bytes of the length that stands before it
MISSING_FILE = 72
STEPS = 4
FIRST_STEP = re.compile(r"\bstep +[1-9]")


def run(*command, **how):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience(300), **how)


def output(*command, **how):
    done = run(*command, **how)
    expect(done.returncode == 0, f"{' '.join(command)}: status {done.returncode}: {(done.stdout + done.stderr)[-800:]}")
    return done.stdout


def trains_and_exports(cluster):
    cluster.start({"a": [PACED], "b": [PACED]})
    cluster.submit_job("packed", job_sections(cluster, training__steps=STEPS, checkpoint__interval=STEPS))
    cluster.wait_for_state("packed", "SUCCEEDED")
    expect(len(cluster.steps("packed")) == STEPS, "not every step was reported")
    out = cluster.path("exported")
    done = cluster.run_motley("export", "packed", "--out", out)
    expect(done.returncode == 0, f"export: status {done.returncode}: {done.stderr}")
    with open(os.path.join(out, "model.safetensors"), "rb") as file:
        size, = struct.unpack("<Q", file.read(TENSORS_HEADER))
        tensors = json.loads(file.read(size))
    expect(len(tensors) > 10, f"exported {sorted(tensors)}")


# ---- the tarball ----
def unpacked_tarball(folder):
    output(os.path.join(ROOT, "run"), "pack")
    tarball, = (name for name in glob.glob(os.path.join(ROOT, "build", "motley-*.tar.gz")) if name.endswith("x86_64.tar.gz"))
    output("tar", "-C", folder, "-xzf", tarball)
    unpacked, = os.listdir(folder)
    expect(os.path.basename(tarball) == f"{unpacked}.tar.gz", f"{tarball} unpacks {unpacked}")
    return os.path.join(folder, unpacked)


def without_a_system(unpacked):
    """In a root folder that has no library; or with this machine's in sight, of which none may be used."""
    with PackedCluster(unpacked) as cluster:
        trains_and_exports(cluster)
        for daemon in cluster.daemons():
            program = os.path.basename(os.readlink(f"/proc/{daemon.pid}/exe"))
            expect(program in PROGRAMS and daemon.name.startswith(program.removeprefix("motley-")), f"{daemon.name} is {program}")
            with open(f"/proc/{daemon.pid}/maps", encoding="utf-8") as file:
                libraries = set(re.findall(r"(/\S*\.so[.\d]*)$", file.read(), re.MULTILINE))
            expect(libraries and not any(path.startswith(("/usr/", "/lib")) for path in libraries), f"{daemon.name}: {libraries}")


def beside_other_libraries(unpacked):
    """As with a site's environment modules, whose libraries are for another C library; called by a link, and with much to pass on."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("libstdc++.so.6", "libc.so.6", "libprotobuf.so.32"):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write("not a library")
        variables = {f"VARIABLE_{i}": "x" * 20 for i in range(3000)} | {"LD_LIBRARY_PATH": folder}
        for program in PROGRAMS:
            link = os.path.join(folder, program)
            os.symlink(os.path.join(unpacked, "bin", program), link)
            said = output(link, "--version", env=variables)
            expect(said.startswith(f"{program} "), f"{program} says {said!r}")
        many = [str(i) for i in range(5000)]
        done = run(os.path.join(unpacked, "bin", "motley"), *many, env=variables)
        expect(done.returncode == 64, f"5000 arguments: status {done.returncode}: {done.stderr[-300:]}")
        done = run("anything", "--version", executable=os.path.join(unpacked, "bin", "motley"))
        expect(done.stdout.startswith("motley "), f"under another name: {done.stdout!r} {done.stderr!r}")


def in_parts(unpacked):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(os.path.join(unpacked, "bin"), os.path.join(folder, "bin"))
        done = run(os.path.join(folder, "bin", "motley"), "--version")
        expect(done.returncode == MISSING_FILE and f"{folder}/lib/ld-linux-x86-64.so.2 cannot be opened" in done.stderr,
               f"without lib: status {done.returncode}: {done.stderr!r}")
        os.makedirs(os.path.join(folder, "lib"))
        with open(os.path.join(folder, "lib", "ld-linux-x86-64.so.2"), "w", encoding="utf-8") as file:
            file.write("cut")
        done = run(os.path.join(folder, "bin", "motley"), "--version")
        expect(done.returncode == MISSING_FILE and "is damaged" in done.stderr, f"a cut loader: {done.returncode}: {done.stderr!r}")


def as_its_readme_says(unpacked):
    """The commands of README.txt as they stand, but for ports, which others may have."""
    with open(os.path.join(unpacked, "README.txt"), encoding="utf-8") as file:
        commands = [line.strip() for line in file if line.startswith("    ")]
    expect(commands[0].startswith("./motley-demo "), f"README.txt begins with {commands[0]}")
    commands = commands[1:]   # the demo is a test of its own
    expect(commands[-2:] == ["motley nodes", "motley doctor"], f"README.txt ends with {commands[-2:]}")
    script = "\n".join(commands[:-2]).replace("motley-coordinator ", "motley-coordinator --workers 127.0.0.1:0 --metrics 127.0.0.1:0 ")
    wait = "\nfor _ in $(seq 100); do motley nodes | grep -q ready && break; sleep 0.2; done\nmotley nodes && motley doctor\nsaid=$?\n"
    with tempfile.TemporaryDirectory() as home:
        done = run("bash", "-c", f"{script}{wait}kill %1 %2; wait; exit $said", cwd=unpacked, env={**os.environ, "HOME": home})
        expect(done.returncode == 0 and "a/cpu0" in done.stdout, f"status {done.returncode}: {done.stdout}{done.stderr}")


def demo_of(unpacked):
    """./motley-demo as nobody, with a kernel, a shell and python3; until its first steps are there, in seconds since it began."""
    with tempfile.TemporaryDirectory(prefix="motley demo ") as folder:
        os.chmod(folder, 0o777)
        variables = {"PATH": "/usr/bin:/bin", "TMPDIR": folder, "HOME": "/nonexistent", "PYTHONUNBUFFERED": "1"}
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        begin, said = time.monotonic(), []
        demo = subprocess.Popen([os.path.join(unpacked, "motley-demo")], env=variables, cwd=folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **user)
        try:
            for line in demo.stdout:
                said.append(line)
                if FIRST_STEP.search(line):
                    break
            expect(FIRST_STEP.search(said[-1]) if said else False, f"no step: {''.join(said)[-2000:]}")
            print(f"the demo of the tarball made its first steps after {time.monotonic() - begin:.0f} s: {said[-1].strip()}")
        finally:
            demo.terminate()   # SIGINT is ignored by what a shell runs in the background
            demo.communicate()


def says_what_is_bundled(unpacked):
    with open(os.path.join(unpacked, "share", "doc", "motley", "bundled.spdx.json"), encoding="utf-8") as file:
        spdx = json.load(file)
    listed = {file["fileName"]: file for file in spdx["files"]}
    there = {f"./{os.path.relpath(os.path.join(top, name), unpacked)}"
             for top, _, names in os.walk(os.path.join(unpacked, "lib")) for name in names} | {"./share/motley/demo/kjv.txt"}
    expect(set(listed) == there, f"differ: {sorted(set(listed) ^ there)}")
    packages = {package["SPDXID"]: package for package in spdx["packages"]}
    owners = {relation["relatedSpdxElement"]: packages[relation["spdxElementId"]] for relation in spdx["relationships"]
              if relation["relationshipType"] == "CONTAINS"}
    licenses = {info["licenseId"]: info["extractedText"] for info in spdx["hasExtractedLicensingInfos"]}
    for name, file in listed.items():
        owner = owners[file["SPDXID"]]
        expect(owner["versionInfo"] and len(licenses[owner["licenseDeclared"]]) > 100, f"{name}: {owner}")
        with open(os.path.join(unpacked, name), "rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        expect({"algorithm": "SHA256", "checksumValue": digest} in file["checksums"], f"{name} has another digest")
    names = {package["name"] for package in packages.values()}
    expect({"libc6", "libgrpc++1.51", "torch", "bible-kjv-text"} <= names, f"packages {sorted(names)}")


def links_hold(unpacked):
    output(sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_links.py"), "--installed", unpacked)


# ---- the Debian packages ----
def made_packages():
    output(os.path.join(ROOT, "run"), "package")
    found = {os.path.basename(path).split("_")[0]: path for path in glob.glob(os.path.join(ROOT, "build", "packages", "*.deb"))}
    expect(set(found) == {"motley-coordinator", "motley-worker", "motley-client", "motley-libtorch-2.11"}, f"made {sorted(found)}")
    return found


def trains_from(root):
    with TestCluster() as cluster:
        cluster.bin = os.path.join(root.folder, "usr", "bin")
        trains_and_exports(cluster)


def main():
    results = Results("packages")
    with tempfile.TemporaryDirectory(prefix="motley packages ") as folder:
        os.chmod(folder, 0o755)
        unpacked = []
        results.run("./run pack", lambda: unpacked.append(unpacked_tarball(folder)))
        if unpacked:
            name = "the tarball trains as nobody in a root folder without libraries"
            if why_not():
                results.skip(name, why_not())
                name = "the tarball trains with its own libraries"
            results.run(name, without_a_system, unpacked[0])
            results.run("the tarball beside other libraries", beside_other_libraries, unpacked[0])
            results.run("the tarball as its README says", as_its_readme_says, unpacked[0])
            results.run("the demo of the tarball", demo_of, unpacked[0])
            results.run("a tarball in parts says so", in_parts, unpacked[0])
            results.run("what is bundled", says_what_is_bundled, unpacked[0])
            results.run("the example for Slurm, with a stand-in for srun", slurm_example.two_allocations, unpacked[0])
            results.run("links of the pages in the tarball", links_hold, unpacked[0])
    with tempfile.TemporaryDirectory() as folder:
        results.run("a tarball with the rank of a second libtorch", packed_second_rank.check, folder)
    packages = {}
    results.run("./run package", lambda: packages.update(made_packages()))
    if packages:
        debian_root.check(results, packages, trains_from)
        containers.check(results, packages)
    results.exit()


if __name__ == "__main__":
    sys.exit(main())
