"""A tarball with the rank of a second libtorch (./run pack --libtorch): what it unpacks, without compressing it. Where the second
libtorch was not fetched, stand-ins for its build and its wheel take their place: the rank is then another program."""
import glob
import json
import os
import re
import subprocess

from harness import BIN, ROOT, expect

VERSION = "2.7.1"
RANK = f"motley-rank-{VERSION}"
BUILD = os.path.join(ROOT, "build", f"release-{VERSION}")

# The functions of ./run, with the second build where it is said to be.
FILL = """
set -euo pipefail
ROOT=$1; cd "$ROOT"
source deploy/run/common.sh; source deploy/run/arguments.sh; source deploy/run/pack.sh
STAND_IN=$3
if [[ -n $STAND_IN ]]; then
  build_folder_of() { echo "$STAND_IN/build"; }
  torch_folder_of() { echo "$STAND_IN/wheels"; }
fi
fill_pack "$2" VERSION coordinator worker client libtorch
""".replace("VERSION", VERSION)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def stand_ins(folder):
    """A build whose installation brings a rank and a library of a wheel, as that of the second libtorch does."""
    library = "torch/lib/libtorch_cpu.so"
    write(f"{folder}/wheels/{library}", "the second libtorch")
    about = f"torch-{VERSION}.dist-info"
    write(f"{folder}/wheels/{about}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\nLicense: BSD-3-Clause\n\n")
    write(f"{folder}/wheels/{about}/LICENSE", "The text of a license. " * 10)
    write(f"{folder}/wheels/{about}/RECORD", f"{library},,\n")
    program = os.path.realpath(os.path.join(BIN, "motley"))
    write(f"{folder}/build/cmake_install.cmake", f"""
if(CMAKE_INSTALL_COMPONENT STREQUAL "worker")
  file(INSTALL DESTINATION "${{CMAKE_INSTALL_PREFIX}}/bin" TYPE PROGRAM RENAME {RANK} FILES "{program}")
elseif(CMAKE_INSTALL_COMPONENT STREQUAL "libtorch")
  file(INSTALL DESTINATION "${{CMAKE_INSTALL_PREFIX}}/lib/{RANK}/torch/lib" TYPE FILE FILES "{folder}/wheels/{library}")
endif()
""")


def files_below(folder):
    return {os.path.relpath(path, folder) for path in glob.glob(os.path.join(folder, "**"), recursive=True) if os.path.isfile(path)}


def check(folder):
    real = os.path.exists(os.path.join(BUILD, "bin", RANK))
    if not real:
        stand_ins(folder)
    packed = os.path.join(folder, "packed")
    done = subprocess.run(["bash", "-c", FILL, "pack", ROOT, packed, "" if real else folder], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"status {done.returncode}: {(done.stdout + done.stderr)[-800:]}")
    there = files_below(packed)
    for path in ("bin/motley-rank", "libexec/motley-rank", f"bin/{RANK}", f"libexec/{RANK}", f"lib/{RANK}/torch/lib/libtorch_cpu.so",
                 "lib/motley/torch/lib/libtorch_cpu.so", "share/doc/motley/README.md", "share/doc/motley/use/README.md"):
        expect(path in there, f"{path} is not packed")
    said = subprocess.run([os.path.join(packed, "bin", RANK), "--version"], capture_output=True, text=True, check=False)
    expect(said.returncode == 0, f"{RANK} --version: {said.stderr}")
    if real:
        expect(f"libtorch {VERSION}" in said.stdout, f"{RANK} says {said.stdout!r}")
    with open(os.path.join(packed, "share", "doc", "motley", "bundled.spdx.json"), encoding="utf-8") as file:
        spdx = json.load(file)
    torches = {package["versionInfo"] for package in spdx["packages"] if package["name"] == "torch"}
    expect(VERSION in torches and len(torches) == 2, f"the bundled torches are {torches}")
    listed = {file["fileName"].removeprefix("./") for file in spdx["files"]}
    others = {path for path in there if path.startswith("lib/")} | {"share/motley/demo/kjv.txt"}
    expect(listed == others, f"differ: {sorted(listed ^ others)[:5]}")
    identifiers = [package["SPDXID"] for package in spdx["packages"]]
    expect(len(set(identifiers)) == len(identifiers) and all(re.fullmatch(r"[A-Za-z0-9.-]+", each) for each in identifiers),
           f"identifiers {identifiers}")
