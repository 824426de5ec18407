"""The three files of a folder of tokens, written from front to back: tokens.bin, tokens.idx, mask.bin. Little-endian."""
import hashlib
import os
import struct

import numpy

PART = 64 << 20           # a digest for each
MAGIC = b"MMIDIDX\x00\x00"
UINT16, INT32 = 8, 4      # Megatron's codes
MOST_OF_UINT16 = 65500
CHUNK = 1 << 20           # entries of the index that are made at once


def dtype_of(vocab_size):
    return "uint16" if vocab_size < MOST_OF_UINT16 else "int32"


class PartedFile:
    """A file, and the digests of its parts of 64 MiB."""

    def __init__(self, path):
        self._file = open(path, "wb", buffering=1 << 18)
        self.bytes, self.parts = 0, []
        self._part = hashlib.sha256()

    def write(self, data):
        data = memoryview(data).cast("B")
        self._file.write(data)
        while len(data):
            room = PART - self.bytes % PART
            taken = data[:room]
            self._part.update(taken)
            self.bytes += len(taken)
            if self.bytes % PART == 0:
                self._end_part()
            data = data[room:]

    def _end_part(self):
        self.parts.append(self._part.hexdigest())
        self._part = hashlib.sha256()

    def close(self):
        if self.bytes % PART:
            self._end_part()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return {"bytes": self.bytes, "parts": self.parts}

    def abandon(self):
        """Closes without a word: the disk may be full."""
        try:
            self._file.close()
        except OSError:
            pass


class MaskFile:
    """One bit a token, the least significant first."""

    def __init__(self, path):
        self._file = PartedFile(path)
        self._rest = numpy.empty(0, numpy.bool_)

    def write(self, trained):
        bits = numpy.concatenate((self._rest, trained))
        whole = len(bits) // 8 * 8
        self._file.write(numpy.packbits(bits[:whole], bitorder="little").tobytes())
        self._rest = bits[whole:].copy()

    def close(self):
        self._file.write(numpy.packbits(self._rest, bitorder="little").tobytes())
        return self._file.close()

    def abandon(self):
        self._file.abandon()


def write_index(path, dtype, lengths, row_ends=None):
    """Megatron's index. `lengths`: tokens of each sequence, an array of int32. `row_ends`: how many sequences there are up to the end of
    each row; without, a sequence is a document."""
    item = numpy.dtype(dtype).itemsize
    documents = len(lengths) if row_ends is None else len(row_ends)
    file = PartedFile(path)
    file.write(MAGIC + struct.pack("<QBQQ", 1, UINT16 if dtype == "uint16" else INT32, len(lengths), documents + 1))
    for begin in range(0, len(lengths), CHUNK):
        file.write(numpy.asarray(lengths[begin:begin + CHUNK], "<i4").tobytes())
    position = 0
    for begin in range(0, len(lengths), CHUNK):
        sizes = numpy.asarray(lengths[begin:begin + CHUNK], numpy.int64) * item
        ends = position + numpy.cumsum(sizes)
        file.write((ends - sizes).astype("<i8").tobytes())
        position = int(ends[-1])
    file.write(struct.pack("<q", 0))
    for begin in range(0, documents, CHUNK):
        end = min(begin + CHUNK, documents)
        part = numpy.arange(begin + 1, end + 1) if row_ends is None else numpy.asarray(row_ends[begin:end])
        file.write(part.astype("<i8").tobytes())
    return file.close()
