"""Input files: opened, unpacked, their progress counted; and what kind each is, by its name."""
import collections
import gzip
import os
import zlib

from . import foreign
from .environment import need_parquet, need_zstandard
from .errors import DATA, NO_INPUT, Refused, one_line

KINDS = {".jsonl": "lines", ".ndjson": "lines", ".json": "json", ".parquet": "parquet"}
TABLES = (".csv", ".tsv")
BUFFER = 1 << 20


def commonest_ending(folder):
    """".txt" of a folder whose files mostly end so, or "": what a shell's pattern is to end with."""
    endings = collections.Counter(os.path.splitext(name)[1] for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name)))
    return min(endings, key=lambda ending: (-endings[ending], ending), default="")


class Source:
    """One file. `kind`: text, lines, json or parquet."""

    def __init__(self, path):
        if os.path.isdir(path):
            foreign.refuse_folder(path)
            raise Refused(NO_INPUT, f"{path} is a folder; give its files, as {os.path.join(path, '*' + commonest_ending(path))}")
        if not os.path.exists(path):
            raise Refused(NO_INPUT, f"{path} is not there")
        foreign.refuse_file(path)
        stem, self.packed = path, ""
        for ending in (".gz", ".zst"):
            if path.lower().endswith(ending):
                stem, self.packed = path[:-len(ending)], ending
        self.path, self.kind = path, KINDS.get(os.path.splitext(stem)[1].lower(), "text")
        if os.path.splitext(stem)[1].lower() in TABLES:
            raise Refused(DATA, f"{path} is a table; write each of its rows as a line of JSON (.jsonl), or call it .txt where it is to be "
                                "one text, commas and all")
        self.bytes = os.path.getsize(path)
        if self.kind == "parquet":
            need_parquet()
            if self.packed:
                raise Refused(DATA, f"{path}: Parquet is compressed inside; unpack the file")
        if self.packed == ".zst":
            need_zstandard()
        self.done = 0   # bytes of the file that are read
        self._raw = None

    def open(self):
        self._raw = open(self.path, "rb")
        if self.packed == ".gz":
            return gzip.GzipFile(fileobj=self._raw)
        if self.packed == ".zst":
            return need_zstandard().ZstdDecompressor().stream_reader(self._raw, read_across_frames=True)
        return self._raw

    def read(self, file, size):
        """Bytes; b"" at the end. What the unpacking programs raise is the file's fault."""
        try:
            data = file.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise Refused(DATA, f"{self.path} is no whole gzip file: {one_line(error)}") from error
        except Exception as error:
            if self.packed == ".zst" and type(error).__name__ == "ZstdError":
                raise Refused(DATA, f"{self.path} is no whole zstd file: {one_line(error)}") from error
            raise
        if self._raw.seekable():   # a pipe does not say how far it is
            self.done = self._raw.tell()
        return data

    def text_blocks(self):
        """Its text in blocks, without a byte-order mark."""
        first, place = True, 0
        with self.open() as file:
            rest = b""
            while True:
                data = self.read(file, BUFFER)
                block = rest + data
                if first and block[:2] in (b"\xff\xfe", b"\xfe\xff"):
                    raise Refused(DATA, f"{self.path} is UTF-16; iconv -f utf-16 -t utf-8 makes UTF-8 of it")
                if first and block.startswith(b"\xef\xbb\xbf"):
                    block, place = block[3:], 3
                first = False
                text, taken = self._decode(block, place, final=not data)
                if text:
                    yield text
                if not data:
                    return
                rest, place = block[taken:], place + taken
        self.done = self.bytes

    def _decode(self, block, place, final):
        try:
            return block.decode("utf-8"), len(block)
        except UnicodeDecodeError as error:
            if not final and error.end == len(block) and len(block) - error.start < 4:
                return block[:error.start].decode("utf-8"), error.start
            raise Refused(DATA, f"{self.path} is not UTF-8 at byte {place + error.start}; if it is text of another encoding, "
                                "iconv -f ENCODING -t utf-8 makes UTF-8 of it") from error

    def lines(self, most):
        """Lines of bytes, at most `most` long: one that is longer ends the run."""
        with self.open() as file:
            rest, number = b"", 0
            while True:
                data = self.read(file, BUFFER)
                *whole, rest = (rest + data).split(b"\n") if data else ([rest, b""] if rest else [b""])
                for line in whole:
                    number += 1
                    yield number, line
                if len(rest) > most:
                    raise Refused(DATA, f"{self.path}:{number + 1}: the line is longer than {most >> 20} MiB; a file of one text is to "
                                        "be called .txt, and of documents each is a line of its own")
                if not data:
                    return


def open_all(paths):
    return [Source(path) for path in paths]


def total_bytes(sources):
    return sum(source.bytes for source in sources)

