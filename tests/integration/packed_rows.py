"""Packed rows in a folder as `motley data prepare` writes one (docs/use/own-data.md)."""
import hashlib
import itertools
import json
import os
import random
import struct

WORDS = 256  # as the tiny models have
PART = 64 << 20  # bytes that have a digest


def index_header(documents, rows):
    return struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, 8, documents, rows + 1)


def describe(folder, files, **counts):
    """tokens.json, written last; `files`: {name: {"bytes": N, "parts": [digest of each PART]}}. Returns the data's digest."""
    described = {
        "format": "motley-tokens", "version": 1, "kind": "rows", "dtype": "uint16", "vocab_size": WORDS, "source_bytes": counts["tokens"],
        "tokenizer": hashlib.sha256(b"bytes").hexdigest(), "chat_template": None, "eos": "off", "files": files, **counts}
    text = json.dumps(described, sort_keys=True, indent=1).encode()
    with open(os.path.join(folder, "tokens.json"), "wb") as file:
        file.write(text)
    return hashlib.sha256(text).hexdigest()


class PackedRows:
    """Rows of documents; a document is a list of (token, whether it is trained on as a target), its first token never is."""

    def __init__(self, rows, seq_len, validation_fraction):
        self.rows, self.seq_len = rows, seq_len
        self.num_train_samples = len(rows) - int(len(rows) * validation_fraction)
        self.digest = None  # known once it is written

    def write(self, folder):
        documents = [document for row in self.rows for document in row]
        tokens = [token for document in documents for token, _ in document]
        mask = bytearray((len(tokens) + 7) // 8)
        for i, trained in enumerate(trained for document in documents for _, trained in document):
            mask[i // 8] |= trained << i % 8
        lengths = [len(document) for document in documents]
        pointers = [2 * before for before in itertools.accumulate([0] + lengths[:-1])]
        groups = list(itertools.accumulate([0] + [len(row) for row in self.rows]))
        count = len(documents)
        index = index_header(count, len(self.rows)) + struct.pack(f"<{count}i{count}q{len(groups)}q", *lengths, *pointers, *groups)
        files = {"tokens.bin": struct.pack(f"<{len(tokens)}H", *tokens), "tokens.idx": index, "mask.bin": bytes(mask)}
        os.makedirs(folder)
        for name, data in files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        self.digest = describe(
            folder, {name: {"bytes": len(data), "parts": [hashlib.sha256(data).hexdigest()]} for name, data in files.items()},
            seq_len=self.seq_len, greatest_token=max(tokens), tokens=len(tokens), documents=count, rows=len(self.rows),
            trained_tokens=sum(trained for document in documents for _, trained in document))


def chats(text_path, seq_len, count, validation_fraction, seed=5, make=PackedRows):
    """Rows of one to five pieces of a text, some rows not full; what is trained on are runs of tokens, of some rows none."""
    draw = random.Random(seed)
    with open(text_path, "rb") as file:
        text = file.read()
    rows = []
    for number in range(count):
        left, row = seq_len - draw.choice((0, 0, draw.randrange(seq_len // 3))), []
        for document in range(draw.randint(1, 5)):
            if left == 0:
                break
            length = draw.randint(1, left)
            left -= length
            at, trained, tokens = draw.randrange(len(text) - length), draw.random() < 0.5, []
            for i, token in enumerate(text[at:at + length]):
                trained ^= draw.random() < 0.2
                tokens.append((token, trained and i > 0 and number % 9 != 4))
            row.append(tokens)
        rows.append(row)
    return make(rows, seq_len, validation_fraction)
