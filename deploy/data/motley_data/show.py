"""`motley data show`: a folder of tokens, or one of its rows with the text of each token and what is trained on."""
import json
import os
import struct

import numpy

from .errors import DATA, NO_INPUT, USAGE, Refused
from .out_folder import MANIFEST
from .progress import size
from .token_files import MAGIC
from .tokenizer import Tokenizer, read_json

HEADER = 34
SHOWN_TOKENS = 4096   # of a document of a stream


class Folder:
    def __init__(self, path):
        self.path = path
        if not os.path.exists(path):
            raise Refused(NO_INPUT, f"{path} is not there")
        if not os.path.isfile(os.path.join(path, MANIFEST)):
            raise Refused(NO_INPUT, f"{path} has no {MANIFEST}: it is no folder that 'motley data prepare' has finished")
        self.manifest = read_json(os.path.join(path, MANIFEST))
        if self.manifest.get("format") != "motley-tokens" or self.manifest.get("version") != 1:
            raise Refused(DATA, f"{path}/{MANIFEST} is of format {self.manifest.get('format')} {self.manifest.get('version')}; "
                                "this program reads motley-tokens 1")
        self._index = open(self._file("tokens.idx"), "rb")
        header = self._index.read(HEADER)
        if len(header) != HEADER or not header.startswith(MAGIC):
            raise Refused(DATA, f"{path}/tokens.idx is no index of tokens")
        self._sequences, self._documents = struct.unpack("<QQ", header[18:])

    def _file(self, name):
        path = os.path.join(self.path, name)
        if name in self.manifest["files"] and os.path.getsize(path) != self.manifest["files"][name]["bytes"]:
            raise Refused(DATA, f"{path} has {os.path.getsize(path)} bytes, and {MANIFEST} says {self.manifest['files'][name]['bytes']}: "
                                "it is not what was written; prepare the folder again")
        return path

    @property
    def rows(self):
        """Of a stream: its documents."""
        return self._documents - 1

    def _read(self, offset, dtype, count):
        self._index.seek(offset)
        return numpy.frombuffer(self._index.read(count * numpy.dtype(dtype).itemsize), dtype)

    def row(self, number):
        """(first token, lengths of its documents)"""
        begin, end = (int(i) for i in self._read(HEADER + 12 * self._sequences + 8 * number, "<i8", 2))
        item = numpy.dtype(self.manifest["dtype"]).itemsize
        first = int(self._read(HEADER + 4 * self._sequences + 8 * begin, "<i8", 1)[0]) // item
        return first, [int(n) for n in self._read(HEADER + 4 * begin, "<i4", end - begin)]

    def tokens(self, first, count):
        dtype = numpy.dtype(self.manifest["dtype"]).newbyteorder("<")
        with open(self._file("tokens.bin"), "rb") as file:
            file.seek(first * dtype.itemsize)
            return numpy.frombuffer(file.read(count * dtype.itemsize), dtype).astype(int).tolist()

    def trained(self, first, count):
        """Of each token: is it trained on? The first of a document never is."""
        if "mask.bin" not in self.manifest["files"]:
            return [True] * count
        with open(self._file("mask.bin"), "rb") as file:
            file.seek(first // 8)
            bits = numpy.unpackbits(numpy.frombuffer(file.read(count // 8 + 2), numpy.uint8), bitorder="little")
        return bits[first % 8:first % 8 + count].astype(bool).tolist()


def documents_of(folder, number, tokenizer):
    """What a row holds, as `-o json` prints it."""
    first, lengths = folder.row(number)
    found, begin = [], 0
    is_stream = folder.manifest["kind"] == "stream"
    for length in lengths:
        shown = min(length, SHOWN_TOKENS) if is_stream else length
        tokens, trained = folder.tokens(first + begin, shown), folder.trained(first + begin, shown)
        if not is_stream:
            trained[:1] = [False] * len(trained[:1])
        texts = [tokenizer.backend.decode([token], skip_special_tokens=False) for token in tokens]
        found.append({"begin": begin, "length": length, "tokens": tokens, "texts": texts, "trained": trained})
        begin += length
    return found


def runs(document, tokenizer):
    """(is it trained on, text) of each run of tokens that are alike."""
    tokens, trained = document["tokens"], document["trained"]
    begin = 0
    for end in range(1, len(tokens) + 1):
        if end == len(tokens) or trained[end] != trained[begin]:
            yield trained[begin], tokenizer.backend.decode(tokens[begin:end], skip_special_tokens=False)
            begin = end


def print_row(folder, number, documents, tokenizer, each_token):
    trained = sum(sum(document["trained"]) for document in documents)
    name = "row" if folder.manifest["kind"] == "rows" else "document"
    print(f"{name} {number} of {folder.rows}: {sum(d['length'] for d in documents)} tokens; '+' before what is trained on ({trained})")
    for i, document in enumerate(documents):
        print(f"-- document {i}, tokens {document['begin']} to {document['begin'] + document['length'] - 1}")
        if each_token:
            for j, (token, text, on) in enumerate(zip(document["tokens"], document["texts"], document["trained"])):
                print(f"{'+' if on else ' '} {document['begin'] + j:6d} {token:7d} {json.dumps(text, ensure_ascii=False)}")
        else:
            for on, text in runs(document, tokenizer):
                lines = text.split("\n")
                for line in lines[:-1] if lines[-1] == "" else lines:
                    print(f"{'+' if on else ' '} {line}")
        if len(document["tokens"]) < document["length"]:
            print(f"   ... and {document['length'] - len(document['tokens'])} tokens more")


def print_summary(folder):
    manifest = folder.manifest
    print(f"{folder.path}: {manifest['kind']}, {manifest['tokens']} tokens of {manifest['documents']} documents, "
          f"{size(manifest['source_bytes'])} of text")
    if manifest["kind"] == "rows":
        print(f"  {manifest['rows']} rows of up to {manifest['seq_len']} tokens; {manifest['trained_tokens']} tokens are trained on")
    print(f"  vocabulary {manifest['vocab_size']}, greatest token {manifest['greatest_token']}, {manifest['dtype']}, end {manifest['eos']}")
    print(f"  tokenizer {manifest['tokenizer'][:12]}, chat template {(manifest['chat_template'] or 'none')[:12]}, "
          f"transformers {manifest['made_with']['transformers']}, tokenizers {manifest['made_with']['tokenizers']}")


def run(options):
    folder = Folder(options.folder)
    if options.row is None:
        print(json.dumps(folder.manifest, indent=2)) if options.json else print_summary(folder)
        return
    if not 0 <= options.row < folder.rows:
        raise Refused(USAGE, f"--row {options.row}: {options.folder} has {folder.rows} of them, 0 to {folder.rows - 1}")
    tokenizer = Tokenizer(os.path.join(options.folder, "tokenizer"))
    documents = documents_of(folder, options.row, tokenizer)
    if options.json:
        print(json.dumps({"row": options.row, "documents": documents}, ensure_ascii=False))
    else:
        print_row(folder, options.row, documents, tokenizer, options.tokens)
