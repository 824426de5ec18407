"""One node's copy of the data is damaged: the job goes on without that node, by name. Needs what mounts.py needs."""
import hashlib
import json
import os
import struct

import mounts
from harness import expect
from faults_common import PACED, paced_job

NODES = ("n1", "n2", "n3")
ROWS, SEQ_LEN = 400, 32


def write_rows(folder):
    """A folder of tokens (docs/use/own-data.md): each row is one document, of which every second target counts."""
    os.makedirs(folder)
    tokens = [97 + (i * i + i // 7) % 20 for i in range(ROWS * SEQ_LEN)]
    files = {"tokens.bin": struct.pack(f"<{len(tokens)}H", *tokens),
             "tokens.idx": b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, ROWS, ROWS + 1)
             + struct.pack(f"<{ROWS}i", *[SEQ_LEN] * ROWS)
             + struct.pack(f"<{ROWS}q", *[2 * SEQ_LEN * row for row in range(ROWS)])
             + struct.pack(f"<{ROWS + 1}q", *range(ROWS + 1)),
             "mask.bin": b"\xaa" * (len(tokens) // 8)}
    for name, data in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    told = {"format": "motley-tokens", "version": 1, "kind": "rows", "dtype": "uint16", "seq_len": SEQ_LEN, "vocab_size": 256,
            "greatest_token": max(tokens), "tokens": len(tokens), "documents": ROWS, "rows": ROWS, "trained_tokens": len(tokens) // 2,
            "source_bytes": len(tokens), "tokenizer": hashlib.sha256(b"bytes").hexdigest(), "chat_template": None, "eos": "on",
            "files": {name: {"bytes": len(data), "parts": [hashlib.sha256(data).hexdigest()]} for name, data in files.items()}}
    with open(os.path.join(folder, "tokens.json"), "w", encoding="utf-8") as file:
        json.dump(told, file)


class CopiesCluster(mounts.MountsCluster):
    """Every node sees the rows at `mount`, and n2 its own copy of the mask."""

    def __init__(self):
        super().__init__()
        os.rmdir(self.share)
        write_rows(self.share)
        self.mask = os.path.join(self.top, "mask.bin")
        with open(self.mask, "wb") as file:
            file.write(bytes(os.path.getsize(os.path.join(self.share, "mask.bin"))))

    def placed(self, name, command):
        if name != "worker-n2":
            return super().placed(name, command)
        return super().placed(name, ["sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', self.mask,
                                     os.path.join(self.mount, "mask.bin"), *command])


def zeroed_mask():
    with CopiesCluster() as cluster:
        cluster.start({node: [PACED] for node in NODES})
        paced_job(cluster, "masked", data__path=cluster.mount, training__steps=10, training__seq_len=SEQ_LEN)
        cluster.wait_for_state("masked", "SUCCEEDED", 120)
        left_out = cluster.event_messages("device_left_out", "masked")
        expect(len(left_out) == 1 and "n2/gpu0" in left_out[0] and "mask.bin is not what was prepared" in left_out[0], f"{left_out}")
    return None
