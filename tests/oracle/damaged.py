"""Folders of weights and of tokens that are refused: what is done to a good one, and what must be said of it."""
import glob
import json
import math
import os
import struct

import torch
from safetensors.torch import load_file, save_file

DOWN, NORM, EMBEDDING = "model.layers.1.mlp.down_proj.weight", "model.norm.weight", "model.embed_tokens.weight"


def shards_of(path):
    return sorted(glob.glob(os.path.join(path, "model-*.safetensors")))


def without_a_shard(path):
    os.remove(shards_of(path)[1])


def with_a_cut_shard(path):
    os.truncate(shards_of(path)[1], os.path.getsize(shards_of(path)[1]) - 7)


def edit(path, name, change):
    """`change` has the tensors of the file in which `name` is."""
    file = next(file for file in shards_of(path) if name in load_file(file))
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file, metadata={"format": "pt"})


def with_value(name, place, value):
    return lambda path: edit(path, name, lambda tensors: tensors[name].__setitem__(place, value))


def with_tensor(name, make, beside=NORM):
    return lambda path: edit(path, beside, lambda tensors: tensors.__setitem__(name, make(tensors)))


def with_config(**keys):
    def change(path):
        name = os.path.join(path, "config.json")
        with open(name, encoding="utf-8") as file:
            config = json.load(file)
        with open(name, "w", encoding="utf-8") as file:
            json.dump({**config, **keys}, file)
    return change


def without_a_tensor(path):
    """As a conversion that forgot it: the index does not name it either."""
    edit(path, DOWN, lambda tensors: tensors.pop(DOWN))
    name = os.path.join(path, "model.safetensors.index.json")
    with open(name, encoding="utf-8") as file:
        index = json.load(file)
    del index["weight_map"][DOWN]
    with open(name, "w", encoding="utf-8") as file:
        json.dump(index, file)


# Of tied weights in three shards or more, in float32.
WEIGHTS = {
    "a shard that is missing": (without_a_shard, "lacks model-00002-of-"),
    "a shard that is cut off": (with_a_cut_shard, "model-00002-of-"),
    "a value that is NaN": (with_value(DOWN, (3, 5), math.nan), f"'{DOWN}' is NaN or infinite in float32 at [3, 5]"),
    "a value that is infinite": (with_value(NORM, 2, -math.inf), f"'{NORM}' is NaN or infinite in float32 at [2]"),
    "another shape": (with_tensor(NORM, lambda tensors: torch.ones(63)), f"'{NORM}' has shape [63]; the model's has [64]"),
    "a tensor that is unknown": (with_tensor("model.layers.0.self_attn.q_norm.weight", lambda tensors: torch.ones(16)),
                                 "holds model.layers.0.self_attn.q_norm.weight, which the model has not"),
    "a tensor that is missing": (without_a_tensor, f"lacks {DOWN}; give"),
    "tied tensors that differ": (with_tensor("lm_head.weight", lambda tensors: tensors[EMBEDDING] + 1, EMBEDDING),
                                 f"'lm_head.weight' that differs from '{EMBEDDING}'"),
    "quantised weights": (with_config(quantization_config={"bits": 4}), "holds quantised weights"),
    "several parts": (with_config(text_config={"model_type": "llama"}), "has a text_config: the model has several parts"),
    "yarn": (with_config(rope_parameters={"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}),
             'rope_parameters with rope_type "yarn" is not supported'),
    "yarn in front of other positions": (with_config(rope_scaling={"type": "yarn", "factor": 4.0}), 'rope_scaling with type "yarn" is not supported'),
    "longrope": (with_config(rope_parameters={"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0], "long_factor": [1.0]}),
                 'rope_parameters with rope_type "longrope" is not supported'),
    "capped scores": (with_config(attn_logit_softcapping=50.0), "attn_logit_softcapping 50.0 is not supported"),
    "capped logits": (with_config(final_logit_softcapping=30.0), "final_logit_softcapping 30.0 is not supported"),
}

# What ranks say a second after they have started, in the place of the like that is quick to see.
AT_LENGTH = ("a value that is infinite", "another shape", "a tensor that is missing")


def write_file(path, content):
    with open(path, "wb") as file:
        file.write(content)
    return path


def odd_tokens(top, rows):
    return write_file(os.path.join(top, "odd.bin"), b"\x01\x00" * 9000 + b"\x02")


def beyond_the_tokens(top, rows):
    write_file(os.path.join(top, "beyond.idx"), struct.pack("<9sQBQQ1i1q2q", b"MMIDIDX\0\0", 1, 8, 1, 2, 9001, 0, 0, 1))
    return write_file(os.path.join(top, "beyond.bin"), b"\x01\x00" * 9000)


def another_mask(top, rows):
    folder = os.path.join(top, "another-mask")
    rows.write(folder)
    with open(os.path.join(folder, "mask.bin"), "ab") as file:
        file.write(b"\xff")
    return folder


def longer_rows(top, rows):
    folder = os.path.join(top, "longer-rows")
    rows.seq_len *= 2
    rows.write(folder)
    return folder


# Each writes data, of good rows, and gives its path; `{}` is the folder of weights, which has a tokenizer.
TOKENS = {
    "bytes of an odd number": (odd_tokens, "odd.bin has 18001 bytes, an odd number"),
    "an index beyond its tokens": (beyond_the_tokens, "number 0 ends beyond the 9000 tokens of the .bin beside it"),
    "a mask of another length": (another_mask, "bytes, where tokens.json beside it says"),
    "rows of another seq_len": (longer_rows, "its rows were made for sequences of 64 tokens, and training.seq_len is 32"),
    "plain text": (lambda top, rows: write_file(os.path.join(top, "plain.txt"), b"It was the best of times. " * 900),
                   "make their tokens (motley data prepare --tokenizer {} --out TOKENS"),
}
