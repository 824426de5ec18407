"""The demo's cluster and job: five unequal cards of three nodes, brought down to a laptop's scale, and a small GPT-2.

All cards compute and transfer TIME_DILATION times slower and hold MEMORY_SCALE times less than the real ones, so their
proportions are those of the real cluster. The batch is a small part of what such a cluster trains with, and the time in which
transfers can hide shrinks with it. The links are therefore raised by the same factor: 100 Gbit/s for 256 samples of 512 tokens
(the network of Cephalo's cluster B and the batch of its cluster A, section 4.1) become 481 GB/s for the demo's batch.
"""
import json

TIME_DILATION = 8_000.0
MEMORY_SCALE = 0.0125
# 71 samples: whole samples cannot follow the cards' speeds exactly, and 71 comes close for these five.
BATCH, SEQ_LEN = 71, 48
REAL_LINK, REAL_TOKENS = 100e9 / 8, 256 * 512
LINK_BYTES_PER_SECOND = REAL_LINK * REAL_TOKENS / (BATCH * SEQ_LEN)   # before dilation

CARDS = {"a": ["A6000", "L4"], "b": ["L4", "P40"], "c": ["P100"]}
LOST_NODE = "b"
SPARE_NODE, SPARE_CARDS = "d", ["A10G"]

EMULATION = {"time_dilation": TIME_DILATION, "memory_scale": MEMORY_SCALE}


def devices(cards):
    return [{"kind": "emulated", "model": card, "link_bytes_per_second": LINK_BYTES_PER_SECOND} for card in cards]


def job_file(text_path, checkpoint_folder, strategy, steps, checkpoint_interval):
    return f"""name = "demo-{strategy}"

[model]
name = "gpt2"
flavor = "text-small"

[training]
steps = {steps}
seq_len = {SEQ_LEN}
global_batch_size = {BATCH}
max_norm = 1.0
seed = 1

[optimizer]
name = "AdamW"
lr = 1e-3

[lr_scheduler]
warmup_steps = 8
decay_type = "cosine"
min_lr_factor = 0.1

[data]
path = {json.dumps(text_path)}
validation_fraction = 0.02
validation_samples = {BATCH}
validation_interval = {steps // 4 if steps > 12 else 0}

[checkpoint]
folder = {json.dumps(checkpoint_folder)}
interval = {checkpoint_interval}
keep_latest_k = 2

[planner]
strategy = "{strategy}"
"""
