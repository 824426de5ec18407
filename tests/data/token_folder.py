"""Reads a folder of tokens by docs/use/data-command.md, without the program's own code; and runs the program."""
import contextlib
import hashlib
import io
import json
import os
import struct
import subprocess
import sys

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "deploy", "data")
sys.path.insert(0, PROGRAM)

from motley_data.command import main  # noqa: E402


def run(*words):
    """In this process: (exit code, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


def start(*words, **settings):
    return subprocess.Popen([sys.executable, "-B", PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)


def prepare(tokenizer, out, *words):
    """The folder; the run must succeed."""
    code, _, err = run("prepare", "--tokenizer", tokenizer, "--out", out, *words)
    if code != 0:
        raise AssertionError(f"prepare ended with {code}: {err}")
    return TokenFolder(out)


class TokenFolder:
    def __init__(self, path):
        self.path = str(path)
        with open(os.path.join(self.path, "tokens.json"), "rb") as file:
            self.manifest = json.loads(file.read())
        self.dtype = numpy.dtype(self.manifest["dtype"]).newbyteorder("<")
        self.tokens = numpy.fromfile(os.path.join(self.path, "tokens.bin"), self.dtype).astype(int)
        self._read_index()
        self.mask = None
        if "mask.bin" in self.manifest["files"]:
            bits = numpy.unpackbits(numpy.fromfile(os.path.join(self.path, "mask.bin"), numpy.uint8), bitorder="little")
            self.mask = bits[:len(self.tokens)].astype(bool)
        self._check()

    def _read_index(self):
        with open(os.path.join(self.path, "tokens.idx"), "rb") as file:
            data = file.read()
        magic, version, code, sequences, documents = struct.unpack("<9sQBQQ", data[:34])
        assert magic == b"MMIDIDX\0\0" and version == 1 and code == {"uint16": 8, "int32": 4}[self.manifest["dtype"]], "header"
        assert len(data) == 34 + 12 * sequences + 8 * documents, "size of the index"
        self.lengths = numpy.frombuffer(data, "<i4", sequences, 34)
        pointers = numpy.frombuffer(data, "<i8", sequences, 34 + 4 * sequences)
        self.borders = numpy.frombuffer(data, "<i8", documents, 34 + 12 * sequences)
        self.begins = numpy.cumsum(self.lengths) - self.lengths
        assert (pointers == self.begins * self.dtype.itemsize).all(), "pointers"
        assert self.borders[0] == 0 and self.borders[-1] == sequences, "borders"

    def _check(self):
        manifest = self.manifest
        assert manifest["tokens"] == len(self.tokens) == self.lengths.sum(), "tokens"
        assert manifest["documents"] == len(self.lengths) and manifest["greatest_token"] == self.tokens.max(), "counts"
        for name, said in manifest["files"].items():
            with open(os.path.join(self.path, name), "rb") as file:
                parts = [hashlib.sha256(part).hexdigest() for part in iter(lambda: file.read(64 << 20), b"")]
            assert said == {"bytes": os.path.getsize(os.path.join(self.path, name)), "parts": parts}, f"digests of {name}"
        if manifest["kind"] == "rows":
            assert manifest["rows"] == len(self.borders) - 1, "rows"
            counted = sum(int(mask[1:].sum()) for _, mask in self.documents())
            assert manifest["trained_tokens"] == counted, f"{manifest['trained_tokens']} trained, not {counted}"
        else:
            assert manifest["trained_tokens"] == len(self.tokens) - 1, "trained"

    def documents(self):
        """(tokens, trained) of each, in the folder's order."""
        for begin, length in zip(self.begins.tolist(), self.lengths.tolist()):
            mask = numpy.ones(length, bool) if self.mask is None else self.mask[begin:begin + length]
            yield self.tokens[begin:begin + length], mask

    def rows(self):
        """How many tokens each has."""
        return [int(self.lengths[a:b].sum()) for a, b in zip(self.borders[:-1], self.borders[1:])]


def write_lines(path, records):
    with open(path, "w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return path
