#!/usr/bin/env python3
"""How soon a job on gigabytes of packed rows begins, and what its ranks hold, beside a job on a few megabytes of text.

usage: large_data_bench.py --bin FOLDER --work FOLDER [--gigabytes N] [--times N] [--json FILE]

Real processes: three CPU devices on two nodes. The files are pushed out of the page cache before each start. What is written (11 bytes
of files for 10 of tokens, beneath --work) is removed. Run it on a quiet machine.
"""
import argparse
import array
import hashlib
import json
import os
import random
import shutil
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "deploy", "demo"), os.path.join(ROOT, "tests", "integration")]
from cluster import Cluster, ClusterError, to_toml  # noqa: E402
from packed_rows import PART, WORDS, describe, index_header  # noqa: E402

SEQ_LEN = 2048
DOCUMENTS = (1024, 512, 384, 128)  # lengths of a row's
ROW_BYTES = 2 * SEQ_LEN
TEXT_BYTES = 5 << 20
NODES = {"n1": 2, "n2": 1}
DEVICE = {"kind": "cpu", "memory_bytes": 4 << 30}
MODEL = {"model_type": "llama", "vocab_size": WORDS, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 4, "intermediate_size": 128, "max_position_embeddings": SEQ_LEN, "rms_norm_eps": 1e-5}
LATER_GOAL_SECONDS, MORE_GOAL_MIB = 0.5, 30
LONGEST_SECONDS = 600
ENDED = {"SUCCEEDED", "FAILED", "STOPPED"}


class Parted:
    """A file written in pieces that end where its parts do. Like pieces are digested once."""

    def __init__(self, path):
        self.file, self.bytes, self.parts, self.known = open(path, "wb", buffering=0), 0, [], {}

    def write(self, data):
        for begin in range(0, len(data), PART):
            piece = data[begin:begin + PART]
            key = (id(data), begin)
            if key not in self.known:
                self.known[key] = hashlib.sha256(piece).hexdigest()
            self.parts.append(self.known[key])
            self.bytes += self.file.write(piece)

    def close(self):
        os.fsync(self.file.fileno())
        self.file.close()
        return {"bytes": self.bytes, "parts": self.parts}


def whole(path, pieces):
    """A file of pieces of any length."""
    file, left = Parted(path), b""
    for piece in pieces:
        left += piece
        while len(left) >= PART:
            file.write(left[:PART])
            left = left[PART:]
            file.known.clear()  # of bytes that are gone
    if left:
        file.write(left)
    return file.close()


def ramp(first, step, count):
    return array.array("q", range(first, first + step * count, step)).tobytes()


def index_pieces(rows):
    documents = rows * len(DOCUMENTS)
    yield index_header(documents, rows)
    at_a_time = 1 << 18  # rows
    for begin in range(0, rows, at_a_time):
        yield array.array("i", DOCUMENTS).tobytes() * min(at_a_time, rows - begin)
    offsets = [2 * sum(DOCUMENTS[:i]) for i in range(len(DOCUMENTS))]
    for begin in range(0, rows, at_a_time):
        pointers = array.array("q", bytes(8 * len(DOCUMENTS) * min(at_a_time, rows - begin)))
        for place, offset in enumerate(offsets):
            pointers[place::len(DOCUMENTS)] = array.array("q", range(begin * ROW_BYTES + offset, min(begin + at_a_time, rows) * ROW_BYTES + offset, ROW_BYTES))
        yield pointers.tobytes()
    yield ramp(0, len(DOCUMENTS), rows + 1)


def write_rows(folder, gigabytes):
    """The same 16,384 rows again and again: as many bytes as others, made in no time."""
    blocks = max(1, round(gigabytes * 1e9 / PART))
    draw = random.Random(1)
    block = array.array("H", draw.choices(range(WORDS), k=PART // 2)).tobytes()
    mask = draw.randbytes(PART // 16)
    rows = blocks * PART // ROW_BYTES
    os.makedirs(folder)
    tokens = Parted(os.path.join(folder, "tokens.bin"))
    for _ in range(blocks):
        tokens.write(block)
    files = {"tokens.bin": tokens.close(), "tokens.idx": whole(os.path.join(folder, "tokens.idx"), index_pieces(rows)),
             "mask.bin": whole(os.path.join(folder, "mask.bin"), (mask for _ in range(blocks)))}
    # How many count is said by nodes and compared with nothing: about half.
    describe(folder, files, seq_len=SEQ_LEN, greatest_token=WORDS - 1, tokens=rows * SEQ_LEN, documents=rows * len(DOCUMENTS), rows=rows,
             trained_tokens=rows * SEQ_LEN // 2)
    return sum(file["bytes"] for file in files.values())


def write_text(path):
    draw = random.Random(2)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(2000)]
    with open(path, "w", encoding="ascii") as file:
        while file.tell() < TEXT_BYTES:
            file.write(" ".join(draw.choices(words, k=12)) + "\n")


def push_out(path):
    """Of the page cache, as after a reboot."""
    for name in [os.path.join(path, name) for name in os.listdir(path)] if os.path.isdir(path) else [path]:
        with open(name, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def anonymous_bytes(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return max((1024 * int(line.split()[1]) for line in file if line.startswith("RssAnon:")), default=0)
    except OSError:
        return 0  # it has ended


class Jobs:
    def __init__(self, cluster):
        self.cluster, self.count = cluster, 0

    def run(self, data):
        """Seconds from the submit to the end of the first step, and to the job's end; the most that a rank holds."""
        self.count += 1
        job_id, folder = f"job-{self.count}", self.cluster.path("checkpoints")
        job = {"model": {"config_json": json.dumps(MODEL)},
               "training": {"steps": 8, "seq_len": SEQ_LEN, "global_batch_size": 3, "seed": self.count},
               "data": {"path": data, "validation_samples": 4}, "checkpoint": {"folder": folder},
               "metrics": {"step_records": "jsonl"}, "planner": {"strategy": "even"}}
        path = self.cluster.path(f"{job_id}.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(to_toml(job))
        push_out(data)
        begin = time.time()
        self.cluster.submit(path, job_id)
        most, state = 0, ""
        while state not in ENDED:
            if time.time() - begin > LONGEST_SECONDS:
                raise ClusterError(f"{job_id} on {data} lasts longer than {LONGEST_SECONDS} s")
            most = max([most, *map(anonymous_bytes, self.cluster.rank_pids())])
            answer = self.cluster.job(job_id)
            state = answer["state"].upper()
            time.sleep(0.05)
        end = time.time()
        if state != "SUCCEEDED":
            raise ClusterError(f"{job_id} on {data} is {state}: {answer.get('reason', '')}")
        first = min(record["unix_seconds"] for record in self.records(folder, job_id) if record["step"] == 1)
        return first - begin, end - begin, most

    def records(self, folder, job_id):
        steps = os.path.join(folder, job_id, "steps")
        for name in os.listdir(steps):
            with open(os.path.join(steps, name), encoding="utf-8") as file:
                yield from map(json.loads, file)


def measure(cluster, text, rows, gigabytes, times):
    cluster.start_coordinator()
    for node, devices in NODES.items():
        cluster.start_worker(node, [DEVICE] * devices)
    cluster.wait_for_nodes(NODES)
    jobs = Jobs(cluster)
    jobs.run(text)  # measures the devices
    found = {text: [], rows: []}
    for turn in range(times):
        for data, runs in found.items():
            first, end, most = jobs.run(data)
            runs.append((first, end, most))
            print(f"{'rows' if data == rows else 'text'} {turn + 1}: first step after {first:.2f} s, end after {end:.1f} s, "
                  f"a rank holds {most / 2**20:.1f} MiB at most", flush=True)
    medians = {data: [statistics.median(values) for values in zip(*runs)] for data, runs in found.items()}
    later = medians[rows][0] - medians[text][0]
    more = (max(run[2] for run in found[rows]) - min(run[2] for run in found[text])) / 2**20
    what = f"{gigabytes:g} GB of rows"

    def row(name, value, unit, goal):
        return {"name": name, "value": value, "unit": unit, "goal": goal, "met": None if goal is None else value <= goal, "limit": None}

    return [row("first step of 5 MB of text", medians[text][0], "s", None), row(f"first step of {what}, later", later, "s", LATER_GOAL_SECONDS),
            row("most that a rank holds of 5 MB of text", medians[text][2] / 2**20, "MiB", None),
            row(f"most that a rank holds of {what}, more", more, "MiB", MORE_GOAL_MIB),
            row(f"job of 8 steps on {what}, which compares them", medians[rows][1], "s", None)]


def main():
    parser = argparse.ArgumentParser(description="starts on large data")
    for name in ("bin", "cache", "work"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--json", help="file for the rows")
    arguments = parser.parse_args()
    data = os.path.join(arguments.work, "data")
    text, rows = os.path.join(data, "text.txt"), os.path.join(data, "rows")
    os.makedirs(data)
    try:
        begin = time.monotonic()
        write_text(text)
        written = write_rows(rows, arguments.gigabytes)
        print(f"{written / 1e9:.2f} GB written in {time.monotonic() - begin:.0f} s", flush=True)
        with Cluster(arguments.bin, os.path.join(arguments.work, "cluster"), file_roots=[data]) as cluster:
            found = measure(cluster, text, rows, arguments.gigabytes, arguments.times)
    except ClusterError as error:
        print(f"large_data: {error}\nlarge_data: logs are in {arguments.work}", file=sys.stderr)
        return 70
    finally:
        shutil.rmtree(data, ignore_errors=True)
    for one in found:
        goal = "" if one["goal"] is None else f"  goal {one['goal']:g} {'met' if one['met'] else 'MISSED'}"
        print(f"{one['name']:<60} {one['value']:9.2f} {one['unit']}{goal}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"rows": found}, file, indent=2)
            file.write("\n")
    shutil.rmtree(arguments.work, ignore_errors=True)
    return 0 if all(one["met"] is not False for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
