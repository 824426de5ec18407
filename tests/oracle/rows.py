"""Packed rows in a folder as `motley data prepare` writes one (docs/use/own-data.md), and their loss one document at a time."""
import hashlib
import itertools
import json
import os
import random
import struct

import torch

WORDS = 256  # as the tiny models have


class Rows:
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
        index = struct.pack(f"<9sQBQQ{count}i{count}q{len(groups)}q", b"MMIDIDX\0\0", 1, 8, count, len(groups), *lengths, *pointers, *groups)
        files = {"tokens.bin": struct.pack(f"<{len(tokens)}H", *tokens), "tokens.idx": index, "mask.bin": bytes(mask)}
        described = {
            "format": "motley-tokens", "version": 1, "kind": "rows", "seq_len": self.seq_len, "dtype": "uint16", "vocab_size": WORDS,
            "greatest_token": max(tokens), "tokens": len(tokens), "documents": count, "rows": len(self.rows),
            "trained_tokens": sum(trained for document in documents for _, trained in document), "source_bytes": len(tokens),
            "tokenizer": hashlib.sha256(b"bytes").hexdigest(), "chat_template": None, "eos": "off",
            "files": {name: {"bytes": len(data), "parts": [hashlib.sha256(data).hexdigest()]} for name, data in files.items()},
        }
        os.makedirs(folder)
        for name, data in {**files, "tokens.json": json.dumps(described, sort_keys=True, indent=1).encode()}.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
            self.digest = hashlib.sha256(data).hexdigest()

    def train_loss(self, model, indices, half=None):
        return self.loss(model, [self.rows[i] for i in indices], half)

    def validation_loss(self, model, samples, half=None):
        first = self.num_train_samples
        return self.loss(model, self.rows[first:first + samples], half)

    def loss(self, model, rows, half):
        """The mean over the tokens that are trained on; no document sees another, none is padded."""
        assert half is None
        terms, count = [], 0
        for document in (document for row in rows for document in row):
            places = [i - 1 for i, (_, trained) in enumerate(document) if trained]
            if not places:
                continue
            tokens = torch.tensor([[token for token, _ in document]])
            logits = model(input_ids=tokens, use_cache=False).logits[0, places]
            terms.append(torch.nn.functional.cross_entropy(logits, tokens[0, 1:][places], reduction="sum"))
            count += len(places)
        return torch.stack(terms).sum() / count


def read(folder, validation_fraction):
    """The folder's rows."""
    def content(name):
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()

    described = json.loads(content("tokens.json"))
    tokens = [token for token, in struct.iter_unpack("<H", content("tokens.bin"))]
    mask = content("mask.bin")
    words = [(token, bool(mask[i // 8] >> i % 8 & 1)) for i, token in enumerate(tokens)]
    count, groups = described["documents"], described["rows"] + 1
    index = struct.unpack(f"<9sQBQQ{count}i{count}q{groups}q", content("tokens.idx"))[5:]
    ends = list(itertools.accumulate(index[:count]))
    documents = [words[end - length:end] for length, end in zip(index, ends)]
    bounds = index[2 * count:]
    rows = Rows([documents[begin:end] for begin, end in zip(bounds, bounds[1:])], described["seq_len"], validation_fraction)
    rows.digest = hashlib.sha256(content("tokens.json")).hexdigest()
    return rows


def chats(text_path, seq_len, count, validation_fraction, seed=5):
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
    return Rows(rows, seq_len, validation_fraction)
