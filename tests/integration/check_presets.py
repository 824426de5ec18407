#!/usr/bin/env python3
"""Cluster presets that CMake cannot embed stop it, by the file's name: deploy/cmake/MotleyClusters.cmake, tried on folders of files."""
import os
import subprocess
import tempfile

from harness import ROOT, Results, expect

GOOD = '# A desk, with "quotes"; and a semicolon\n\nname = "desk"  # [a; b] \\ ${name} @name@\n[[node]]\ngpus = ["L4"]\n'


def embed(files, names):
    """(stderr, the C++ that was written or None)"""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        script, out = os.path.join(folder, "script.cmake"), os.path.join(folder, "presets.cc")
        with open(script, "w", encoding="utf-8") as file:
            file.write("cmake_minimum_required(VERSION 3.25)\n"
                       f"include({ROOT}/deploy/cmake/MotleyClusters.cmake)\n"
                       f"motley_embed_clusters({folder} {out} {' '.join(names)})\n")
        done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=False)
        written = None
        if os.path.exists(out):
            with open(out, encoding="utf-8") as file:
                written = file.read()
        expect((done.returncode == 0) == (written is not None), f"status {done.returncode}: {done.stderr}")
        return " ".join(done.stderr.split()), written


def good_files_are_embedded_as_they_are():
    other = GOOD.replace("desk", "room")
    written = embed({"desk.toml": GOOD, "room.toml": other}, ["room", "desk"])[1]
    expect(written, "nothing was written")
    what, toml = GOOD[2:].split("\n", 1)
    entry = f'{{"desk", R"toml({what})toml", R"toml({toml})toml"}},'
    expect(entry in written, f"{entry} is not in {written}")
    expect(written.index('"room"') < written.index('"desk"'), "not in the order of the list")


def a_file_that_cannot_be_embedded_is_named():
    for text, why in [(None, "is missing"),
                      ("", "must begin with a line"),
                      ("\n", "must begin with a line"),
                      ("# A desk", "must begin with a line"),
                      ("# A desk\n", "must begin with a line"),
                      (GOOD[GOOD.index("name"):], "must begin with a line"),
                      (GOOD + ')toml"', 'contains )toml"')]:
        files = {"room.toml": GOOD} | ({} if text is None else {"desk.toml": text})
        error, _ = embed(files, ["room", "desk"])
        expect("desk.toml" in error and why in error, f"of {text!r}: {error}")


def a_file_that_is_not_listed_is_named():
    error, _ = embed({"desk.toml": GOOD, "room.toml": GOOD}, ["room"])
    expect("desk.toml" in error and "not in the list of presets" in error, error)


def main():
    results = Results("presets")
    results.run("good files are embedded as they are", good_files_are_embedded_as_they_are)
    results.run("a file that cannot be embedded is named", a_file_that_cannot_be_embedded_is_named)
    results.run("a file that is not listed is named", a_file_that_is_not_listed_is_named)
    results.exit()


if __name__ == "__main__":
    main()
