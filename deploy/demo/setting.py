"""The demo's cluster and job: five unequal cards of three nodes, brought down to a laptop's scale, and a small GPT-2.

All cards compute and transfer TIME_DILATION times slower and hold MEMORY_SCALE times less than the real ones, so their
proportions are those of the real cluster. The batch is about a fiftieth of what such a cluster trains with, and with it the time
in which transfers can hide; the links are therefore declared by hand, LINK_BYTES_PER_SECOND each, to keep the usual proportion of
computing to communication.
"""
import json

TIME_DILATION = 10_000.0
MEMORY_SCALE = 0.0125
LINK_BYTES_PER_SECOND = 12e6 * TIME_DILATION   # before dilation

CARDS = {"a": ["A6000", "L4"], "b": ["L4", "P40"], "c": ["P100"]}
LOST_NODE = "b"
SPARE_NODE, SPARE_CARDS = "d", ["A10G"]

EMULATION = {"time_dilation": TIME_DILATION, "memory_scale": MEMORY_SCALE}


def devices(cards):
    return [{"kind": "emulated", "model": card, "link_bytes_per_second": LINK_BYTES_PER_SECOND} for card in cards]


def job_file(text_path, checkpoint_folder, strategy, steps, checkpoint_interval):
    # 71 samples: whole samples cannot follow the cards' speeds exactly, and 71 comes close for these five.
    return f"""name = "demo-{strategy}"

[model]
name = "gpt2"
flavor = "text-small"

[training]
steps = {steps}
seq_len = 48
global_batch_size = 71
max_norm = 1.0
seed = 1

[optimizer]
name = "AdamW"
lr = 2e-3

[lr_scheduler]
warmup_steps = 5
decay_type = "cosine"
min_lr_factor = 0.1

[data]
path = {json.dumps(text_path)}
validation_fraction = 0.02
validation_samples = 71
validation_interval = {max(steps // 3, 1)}

[checkpoint]
folder = {json.dumps(checkpoint_folder)}
interval = {checkpoint_interval}
keep_latest_k = 2

[planner]
strategy = "{strategy}"
"""
