"""Which samples form a step, as docs/use/training-semantics.md says: the formula of common/data/sampling.h in Python."""
import hashlib
import os

MASK = (1 << 64) - 1
FEISTEL_ROUNDS = 4


def mix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def hash_text(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return mix64(value)


def permute(index, n, key):
    half_bits = 1
    while half_bits < 32 and (1 << (2 * half_bits)) < n:
        half_bits += 1
    mask = (1 << half_bits) - 1
    value = index
    while True:
        left, right = value >> half_bits, value & mask
        for round_number in range(FEISTEL_ROUNDS):
            left, right = right, left ^ (mix64(mix64((key + round_number) & MASK) ^ right) & mask)
        value = (left << half_bits) | right
        if value < n:
            return value


class SampleOrder:
    def __init__(self, seed, digest, seq_len, num_samples):
        self.key = mix64(mix64(mix64(seed) ^ hash_text(digest)) ^ seq_len)
        self.num_samples = num_samples

    def samples(self, step, global_batch):
        positions = range(step * global_batch, (step + 1) * global_batch)
        return [permute(p % self.num_samples, self.num_samples, mix64((self.key + p // self.num_samples) & MASK)) for p in positions]


class Text:
    """A data set as Motley cuts it: sample i is bytes [i * seq_len, i * seq_len + seq_len]; the last part validates."""

    def __init__(self, path, seq_len, validation_fraction):
        self.seq_len = seq_len
        self.data = b"".join(open(file, "rb").read() for file in files_of(path))
        self.digest = hashlib.sha256(self.data).hexdigest()
        self.train_bytes = len(self.data) - int(len(self.data) * validation_fraction)
        self.num_train_samples = (self.train_bytes - 1) // seq_len

    def train_sample(self, index):
        begin = index * self.seq_len
        return self.data[begin:begin + self.seq_len + 1]

    def validation_sample(self, index):
        begin = self.train_bytes + index * self.seq_len
        return self.data[begin:begin + self.seq_len + 1]


def files_of(path):
    if os.path.isfile(path):
        return [path]
    found = []
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(folder, name) for name in files if not name.startswith(".")]
    return sorted(found, key=os.fsencode)
