"""What packed rows (tests/integration/packed_rows.py) lose, one document at a time."""
import functools
import hashlib
import itertools
import json
import os
import struct

import torch

import packed_rows


class Rows(packed_rows.PackedRows):
    def train_loss(self, model, indices, half=None):
        return self.loss(model, [self.rows[i] for i in indices], half)

    def validation_loss(self, model, samples, half=None):
        first = self.num_train_samples
        return self.loss(model, self.rows[first:first + samples], half)

    def loss(self, model, rows, half):
        """The mean over the tokens that are trained on; no document sees another, none is padded."""
        parameters = {} if half is None else {name: parameter.to(half) for name, parameter in model.named_parameters()}
        terms, count = [], 0
        for document in (document for row in rows for document in row):
            places = [i - 1 for i, (_, trained) in enumerate(document) if trained]
            if not places:
                continue
            tokens = torch.tensor([[token for token, _ in document]])
            logits = torch.func.functional_call(model, parameters, kwargs={"input_ids": tokens, "use_cache": False}).logits[0, places]
            logits = logits if half is None else logits.float()
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


chats = functools.partial(packed_rows.chats, make=Rows)
