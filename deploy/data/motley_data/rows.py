"""Chats become rows of up to seq_len tokens: packed, in a drawn order, with a bit for each token that is trained on."""
import array
import collections
import os

import numpy

from . import forms, masks
from .agreement import Agreement
from .chat_work import BEHIND_CUT, ChatWork
from .errors import DATA, BadRecord, Refused
from .packing import drawn_order, pack
from .pool import in_order
from .records import records_of
from .token_files import MaskFile, PartedFile, dtype_of, write_index

BATCH = 1 << 17     # bytes of input, about
WRITTEN = 1 << 20   # tokens at a time


def batches(sources, column, has_template, tally, agreement):
    """Lists of (place, record as a chat), and whether the texts are wanted back."""
    batch, before = [], 0
    for source in sources:
        if source.kind == "text":
            raise Refused(DATA, f"{source.path} is text, and other input is chats; prepare each by itself")
        form = None
        for place, record in records_of(source):
            with tally.record(place):
                if isinstance(record, BadRecord):
                    raise record
                form = form or forms.form_of(record, column, place)
                if forms.is_text(form):
                    raise Refused(DATA, f"{place} is text, and other input is chats; prepare each by itself")
                chat = forms.chat_of(record, form, column, has_template)
                chat["from_parquet"] = source.kind == "parquet"
                batch.append((place, chat))
            before += 1
            if before >= 64:
                yield batch, not agreement.is_done()
                batch, before = [], 0
    if batch:
        yield batch, not agreement.is_done()


class Spool:
    """The chats' tokens in the order of the input, until it is known where each goes: id * 2 + trained."""

    def __init__(self, path):
        self._path = path
        self._file = open(path, "w+b", buffering=1 << 18)
        self.lengths = array.array("i")
        self.greatest = -1

    def add(self, tokens, lengths):
        if len(tokens):
            self._file.write(tokens.tobytes())
            self.lengths.frombytes(lengths.tobytes())
            self.greatest = max(self.greatest, int(tokens.max()) >> 1)

    def reader(self):
        """document -> its tokens"""
        self._file.flush()
        lengths = numpy.frombuffer(self.lengths, numpy.int32)
        begins = numpy.cumsum(lengths, dtype=numpy.int64) - lengths
        descriptor = self._file.fileno()

        def read(document):
            return numpy.frombuffer(os.pread(descriptor, int(lengths[document]) * 4, int(begins[document]) * 4), numpy.int32)

        return read

    def close(self):
        try:
            self._file.close()
            os.unlink(self._path)
        except OSError:   # the whole folder goes
            pass


def write_rows(out, spool, rows, dtype, all_trained, progress):
    """The files, and how many tokens are trained on."""
    tokens_file, mask_file = PartedFile(out.file("tokens.bin")), MaskFile(out.file("mask.bin"))
    lengths, row_ends = array.array("i"), array.array("q")
    read, waiting, size, trained, unmasked = spool.reader(), [], 0, 0, 0

    def write():
        nonlocal waiting, size
        tokens = numpy.concatenate(waiting)
        tokens_file.write((tokens >> 1).astype("<u2" if dtype == "uint16" else "<i4").tobytes())
        mask_file.write((tokens & 1).astype(numpy.bool_))
        waiting, size = [], 0

    try:
        for row in rows:
            for document in row:
                tokens = read(document)
                waiting.append(tokens)
                size += len(tokens)
                lengths.append(len(tokens))
                targets = int((tokens[1:] & 1).sum())
                trained += targets
                unmasked += targets != len(tokens) - 1
            row_ends.append(len(lengths))
            if size >= WRITTEN:
                write()
                progress.tick()
        if waiting:
            write()
        files = {"tokens.bin": tokens_file.close(), "mask.bin": mask_file.close()}
    except BaseException:
        tokens_file.abandon()
        mask_file.abandon()
        raise
    if all_trained or not unmasked:
        del files["mask.bin"]
        os.unlink(out.file("mask.bin"))
    files["tokens.idx"] = write_index(out.file("tokens.idx"), dtype, lengths, row_ends)
    return files, trained


def _why_none(counts, seq_len):
    left_out = counts[BEHIND_CUT]
    return f": of {left_out} documents it lies behind the first {seq_len} tokens; give a greater --seq-len" if left_out else ""


def prepare(sources, options, tokenizer, eos, template, out, tally, progress):
    """Writes the files; their part of tokens.json."""
    agreement = Agreement(tokenizer, progress.say)
    spool = Spool(out.file("spool"))
    documents_of = collections.Counter()
    asked_for_day = False
    try:
        work = (tokenizer.folder, template.recipe(), options.train, options.seq_len, eos.id)
        for _, result in in_order(ChatWork, work, batches(sources, options.column, template.is_there(), tally, agreement), options.processes):
            for place, why in result.bad:
                tally.pass_over(place, why)
            for text, ids in result.texts:
                agreement(text, ids, False)
            spool.add(result.tokens, result.lengths)
            tally.counts.update(result.counts)
            tally.source_bytes += result.source_bytes
            documents_of.update(result.documents_of)
            asked_for_day |= result.asked_for_day
            tally.check_greatest(spool.greatest)
            progress.tick()
        if not spool.lengths:
            raise Refused(DATA, f"the input holds no chat that could be trained on{_why_none(tally.counts, options.seq_len)}")
        progress.stage("packing")
        rows = pack(spool.lengths, options.seq_len) if options.pack else [[i] for i in range(len(spool.lengths))]
        rows = [rows[i] for i in drawn_order(len(rows))]
        dtype = dtype_of(tokenizer.vocab_size)
        files, trained = write_rows(out, spool, rows, dtype, options.train == masks.ALL, progress)
    finally:
        spool.close()
    chats = {"train": options.train, "documents": dict(documents_of), "template_arguments": options.template_arguments}
    if asked_for_day:
        chats["day"] = options.day
    tokens = sum(spool.lengths)
    return {"kind": "rows", "seq_len": options.seq_len, "dtype": dtype, "greatest_token": spool.greatest, "tokens": tokens,
            "documents": len(spool.lengths), "rows": len(rows), "trained_tokens": trained, "eos": eos.token,
            "chat_template": template.digest(), "chats": chats, "files": files}
