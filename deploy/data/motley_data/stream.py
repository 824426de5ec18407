"""Text becomes a stream of documents: any seq_len may be cut from it."""
import array
import itertools

import numpy

from . import forms, windows
from .agreement import Agreement
from .errors import DATA, BadRecord, Refused
from .pool import in_order
from .records import records_of
from .token_files import PartedFile, dtype_of, write_index
from .tokenizer import Tokenizer

BATCH = 1 << 16   # characters


class Work:
    """Runs in each process: ids of a batch of documents, or of one window of a long one."""

    def __init__(self, folder):
        self._tokenizer = Tokenizer(folder)

    def __call__(self, task):
        kind, texts, begin, is_last, _ = task
        if kind == "window":
            return windows.Window(self._tokenizer, texts, is_last)
        ids = self._tokenizer.encode_documents(texts)
        lengths = numpy.fromiter(map(len, ids), numpy.int32, len(ids))
        return numpy.fromiter(itertools.chain.from_iterable(ids), numpy.int32, int(lengths.sum())), lengths


class Stream:
    """Writes tokens.bin and tokens.idx from what the processes say."""

    def __init__(self, out, tokenizer, eos):
        self._out, self._tokenizer, self._eos = out, tokenizer, [] if eos.id is None else [eos.id]
        self.dtype = dtype_of(tokenizer.vocab_size)
        self._file = PartedFile(out.file("tokens.bin"))
        self._lengths = array.array("i")
        self.tokens, self.greatest = 0, -1
        self._joiner, self._begun = None, 0

    @property
    def documents(self):
        return len(self._lengths)

    def _write(self, ids):
        if len(ids):
            self._file.write(ids.astype("<u2" if self.dtype == "uint16" else "<i4").tobytes())
            self.tokens += len(ids)
            self.greatest = max(self.greatest, int(ids.max()))

    def add_documents(self, ids, lengths):
        if self._eos:
            ids = numpy.insert(ids, numpy.cumsum(lengths), self._eos[0])
            lengths = lengths + 1
        self._write(ids)
        self._lengths.frombytes(numpy.ascontiguousarray(lengths, numpy.int32).tobytes())

    def add_window(self, window, text, begin, is_last, path):
        if begin == 0:
            self._joiner, self._begun = windows.Joiner(self._tokenizer, path), self.tokens
            self._write(numpy.asarray(self._tokenizer.prefix, numpy.int32))
        self._write(self._joiner.add(window, text, begin, is_last))
        if is_last:
            self._write(numpy.asarray(self._tokenizer.suffix + self._eos, numpy.int32))
            self._lengths.append(self.tokens - self._begun)

    def close(self):
        files = {"tokens.bin": self._file.close()}
        files["tokens.idx"] = write_index(self._out.file("tokens.idx"), self.dtype, self._lengths)
        return files

    def abandon(self):
        self._file.abandon()


def texts_of(source, column, tally):
    """Yields an iterable of blocks for each document."""
    if source.kind == "text":
        if column:
            raise Refused(DATA, f"{source.path} is plain text, which has no column {column}")
        yield source.text_blocks()
        return
    form = None
    for place, record in records_of(source):
        with tally.record(place):
            if isinstance(record, BadRecord):
                raise record
            form = form or forms.form_of(record, column, place)
            if not forms.is_text(form):
                raise Refused(DATA, f"{place} is a chat, and other input is text; prepare each by itself")
            text = forms.text_of(record, column)
            tally.source_bytes += tally.bytes_of(text)
            yield [text]


def tasks(sources, column, tally):
    """What the processes get, in order: (kind, texts or text, where it begins, is it the last, of which file)."""
    batch, size = [], 0
    for source in sources:
        for blocks in texts_of(source, column, tally):
            for text, begin, is_last in windows.cut(tally.counted(blocks) if source.kind == "text" else blocks):
                is_whole = begin == 0 and is_last
                if batch and (size >= BATCH or not is_whole):
                    yield "documents", batch, 0, True, ""
                    batch, size = [], 0
                if is_whole:
                    batch.append(text)
                    size += len(text)
                else:
                    yield "window", text, begin, is_last, source.path
    if batch:
        yield "documents", batch, 0, True, ""


def prepare(sources, options, tokenizer, eos, out, tally, progress):
    """Writes the files; their part of tokens.json."""
    stream, agreement = Stream(out, tokenizer, eos), Agreement(tokenizer, progress.say)
    try:
        for task, result in in_order(Work, (tokenizer.folder,), tasks(sources, options.column, tally), options.processes):
            kind, texts, begin, is_last, path = task
            if kind == "window":
                if begin == 0:
                    agreement(texts, result.ids, False)
                stream.add_window(result, texts, begin, is_last, path)
            else:
                ids, lengths = result
                _compare(agreement, texts, ids, lengths)
                stream.add_documents(ids, lengths)
            tally.check_greatest(stream.greatest)
            progress.tick()
        if not stream.documents:
            raise Refused(DATA, "the input holds no text")
        files = stream.close()
    except BaseException:
        stream.abandon()
        raise
    return {"kind": "stream", "dtype": stream.dtype, "greatest_token": stream.greatest, "tokens": stream.tokens,
            "documents": stream.documents, "trained_tokens": max(0, stream.tokens - 1), "eos": eos.token, "chat_template": None,
            "files": files}


def _compare(agreement, texts, ids, lengths):
    at = 0
    for text, length in zip(texts, lengths.tolist()):
        if agreement.is_done():
            return
        agreement(text, ids[at:at + length].tolist(), True)
        at += length
