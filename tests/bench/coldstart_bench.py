#!/usr/bin/env python3
"""How right Motley is about steps that others measured on cards nobody profiled for it: `motley simulate` of each row, from the
device table alone. docs/inside/card-parts.md says what becomes of it.

usage: coldstart_bench.py --bin FOLDER [--rows FILE] [--only TEXT] [--json FILE]

A row of the CSV is a run: id, source, group, card, nodes, per_node, nic_gbit (of a node), model, seq, dtype, tp, pp, zero, recompute,
mb (samples of a microbatch), n_mb, as_run, seconds (of a step; empty: none), and what is not read here. `group`: runs whose order by
tokens a second and card is asked. Lines that begin with # are remarks.
"""
import argparse
import csv
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROWS = os.path.join(ROOT, "..", "shared", "data", "measured", "coldstart", "rows.csv")
# Shown, and in no mean: above the card's peak with what it recomputes; LoRA, priced as a full fine-tuning.
NOT_COUNTED = {"t-8b-a6000", "s-8b-1node", "s-8b-2nodes"}
SAME_RATE = 0.02         # closer than that, two runs have no order
UNMEASURED_PART = 0.52   # of a family without rows


def llama(hidden, layers, heads, kv, inner, vocab, tied=False, head_dim=None, kind="llama"):
    config = {"model_type": kind, "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
              "num_key_value_heads": kv, "intermediate_size": inner, "vocab_size": vocab, "max_position_embeddings": 131072,
              "tie_word_embeddings": tied, "hidden_act": "silu", "rms_norm_eps": 1e-5}
    return config | ({"head_dim": head_dim} if head_dim else {})


def gpt2(hidden, layers, heads):
    return {"model_type": "gpt2", "n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": 1024, "vocab_size": 50257}


# Public sizes. Qwen 3 is written as a Llama: its norms of queries and keys are not priced.
MODELS = {
    "llama3-8b": llama(4096, 32, 32, 8, 14336, 128256),
    "llama3-8b-8-layers": llama(4096, 8, 32, 8, 14336, 128256),
    "llama3-70b": llama(8192, 80, 64, 8, 28672, 128256),
    "llama3.2-1b": llama(2048, 16, 32, 8, 8192, 128256, True, 64),
    "llama3.2-3b": llama(3072, 28, 24, 8, 8192, 128256, True, 128),
    "llama2-7b": llama(4096, 32, 32, 32, 11008, 32000),
    "llama2-70b": llama(8192, 80, 64, 8, 28672, 32000),
    "kempner-13b": llama(5120, 40, 40, 8, 17920, 128256),
    "kempner-29b": llama(6144, 56, 48, 8, 21504, 128256),
    "tinyllama": llama(2048, 22, 32, 4, 5632, 32000),
    "phi3-mini": llama(3072, 32, 32, 32, 8192, 32064),
    "aquila2-7b": llama(4096, 32, 32, 32, 11008, 100008),
    "qwen3-0.6b": llama(1024, 28, 16, 8, 3072, 151936, True, 128),
    "qwen3-4b": llama(2560, 36, 32, 8, 9728, 151936, True, 128),
    "qwen2.5-0.5b": llama(896, 24, 14, 2, 4864, 151936, True, None, "qwen2"),
    "qwen2.5-1.5b": llama(1536, 28, 12, 2, 8960, 151936, True, None, "qwen2"),
    "qwen2.5-3b": llama(2048, 36, 16, 2, 11008, 151936, True, None, "qwen2"),
    "qwen2.5-7b": llama(3584, 28, 28, 4, 18944, 152064, False, None, "qwen2"),
    "gpt2-124m": gpt2(768, 12, 12),
    "gpt2-1.5b": gpt2(1600, 48, 25),
}


def layers_of(row):
    config = MODELS[row["model"]]
    return config.get("num_hidden_layers") or config["n_layer"]


def read_rows(path):
    try:
        with open(path, encoding="utf-8") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    except OSError as error:
        sys.exit(f"coldstart: no rows of measured runs: {error}. They are test input that is not part of the project: lay rows.csv "
                 "beside the checkout, or name one with --rows")
    for number, row in enumerate(rows, 1):
        try:
            for key in ("nodes", "per_node", "seq", "tp", "pp", "zero", "mb", "n_mb"):
                row[key] = int(row[key])
            row["nic_gbit"] = float(row["nic_gbit"] or 0)
            row["seconds"] = float(row["seconds"] or 0)
        except (KeyError, TypeError, ValueError) as error:
            sys.exit(f"coldstart: {path}, row {number} ({row.get('id')}): {error!r}; --help says what a row has")
        if row["model"] not in MODELS:
            sys.exit(f"coldstart: {path}, row {number}: model '{row['model']}' is none of {', '.join(sorted(MODELS))}")
        row["dp"] = row["nodes"] * row["per_node"] // (row["tp"] * row["pp"])
        row["batch"] = row["dp"] * row["mb"] * row["n_mb"]
    return rows


def cluster_toml(row, part):
    """With a matrix part of its own, or (None) the table's."""
    card = row["card"]
    lines = ["usable_memory = 0.95"]
    if part is not None:
        lines += ["[[card]]", 'name = "asked"', f'like = "{card}"', f"matrix_part = {part}"]
        card = "asked"
    lines += ["[[node]]", 'name = "n"', f"count = {row['nodes']}" if row["nodes"] > 1 else "",
              f'gpus = [{{card = "{card}", count = {row["per_node"]}}}]']
    if row["nic_gbit"]:
        lines.append(f"node_nic_gbit_per_second = {row['nic_gbit']}")
    return "\n".join(lines) + "\n"


def plan_json(row):
    """Tensor-parallel ranks lie next to each other, then the data-parallel ones, stages outermost (Megatron's order)."""
    devices = [f"n{node + 1 if row['nodes'] > 1 else ''}/gpu{gpu}" for node in range(row["nodes"]) for gpu in range(row["per_node"])]
    tp, dp, pp, layers = row["tp"], row["dp"], row["pp"], layers_of(row)
    stages = []
    for stage in range(pp):
        units = [{"microbatches": [row["mb"]] * row["n_mb"],
                  "ranks": [{"device": devices[(stage * dp + d) * tp + t], "tp_share": 1 / tp, "shard_ratio": 1 / (dp * tp),
                             "recompute": row["recompute"]} for t in range(tp)]} for d in range(dp)]
        stages.append({"ministages": [[stage * layers // pp, (stage + 1) * layers // pp - 1]], "zero_stage": row["zero"],
                       "units": units})
    return {"strategy": "hand", "global_batch": row["batch"], "seq_len": row["seq"], "dtype": row["dtype"], "schedule": "1f1b",
            "pipelines": [{"stages": stages}]}


def simulate(motley, row, folder, part=None):
    path = {name: os.path.join(folder, name) for name in ("cluster.toml", "config.json", "plan.json")}
    for name, text in (("cluster.toml", cluster_toml(row, part)), ("config.json", json.dumps(MODELS[row["model"]])),
                       ("plan.json", json.dumps(plan_json(row)))):
        with open(path[name], "w", encoding="utf-8") as file:
            file.write(text)
    run = subprocess.run([motley, "simulate", path["plan.json"], "--cluster", path["cluster.toml"], "--model", path["config.json"],
                          "--runnable" if row["as_run"] == "1" else "--no-runnable", "-o", "json"], capture_output=True, text=True)
    if run.returncode not in (0, 65) or not run.stdout:  # 65: it lacks memory, which says nothing about its time
        sys.exit(f"coldstart: row {row['id']}: motley simulate ends with {run.returncode}: {run.stderr[-400:]}")
    return json.loads(run.stdout)["predicted"]


def priced(motley, row, part, folder):
    """The row with its prediction, and a + b / part, which the step is of the card's matrix part."""
    now = simulate(motley, row, folder)
    step = now["step_seconds"]
    half = simulate(motley, row, folder, part / 2)["step_seconds"]
    b = (half - step) * part
    rest = row["seconds"] - (step - b / part)
    # Faster than without any product: the part cannot explain it.
    implied = min(1.0, b / rest) if rest > 0 else 1.0
    return row | {"step": step, "low": now["low_seconds"], "high": now["high_seconds"], "ratio": step / row["seconds"], "b": b,
                  "part": part, "implied": implied,
                  "rate": row["batch"] * row["seq"] / (row["nodes"] * row["per_node"])}


def error(rows, step="step"):
    return statistics.mean(abs(row[step] / row["seconds"] - 1) for row in rows)


def by(rows, key):
    groups = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return dict(sorted(groups.items()))


def pairs_in_order(rows):
    """Right, asked, and words for those that are wrong."""
    right, asked, wrong = 0, 0, []
    for source, of_source in by(rows, "source").items():
        for i, a in enumerate(of_source):
            for b in of_source[i + 1:]:
                if not a["group"] or a["group"] != b["group"]:
                    continue
                measured = a["rate"] / a["seconds"] * b["seconds"] / b["rate"]
                predicted = a["rate"] / a["step"] * b["step"] / b["rate"]
                if abs(math.log(measured)) < SAME_RATE:
                    continue
                asked += 1
                if (measured > 1) == (predicted > 1):
                    right += 1
                else:
                    wrong.append(f"{source}: {a['id']} over {b['id']}: {measured:.2f} measured, {predicted:.2f} predicted")
    return right, asked, wrong


def leave_out(rows):
    """Each source by constants of the others: of each family the median part that its rows imply."""
    left_out = {}
    for source, of_source in by(rows, "source").items():
        steps = []
        for row in of_source:
            others = [r["implied"] for r in rows if r["family"] == row["family"] and r["source"] != source]
            part = statistics.median(others) if others else UNMEASURED_PART
            steps.append(row | {"without": row["step"] + row["b"] * (1 / part - 1 / row["part"]), "others": part})
        left_out[source] = {"error": error(steps, "without"),
                            "parts": {r["family"]: round(r["others"], 3) for r in steps}}
    return left_out


def show(rows):
    right, asked, wrong = pairs_in_order(rows)
    inside = sum(row["low"] <= row["seconds"] <= row["high"] for row in rows)
    width = statistics.mean(row["high"] / row["low"] for row in rows)
    sources = {source: error(of_source) for source, of_source in by(rows, "source").items()}
    left_out = leave_out(rows)
    print(f"\nmean error {100 * error(rows):.1f} % of {len(rows)} rows; median predicted over measured "
          f"{statistics.median(row['ratio'] for row in rows):.2f}")
    print(f"in the range of nine in ten: {inside} of {len(rows)}; it is {width:.2f} times as high as low on average")
    print(f"pairs in order: {right} of {asked}" + "".join("\n  wrong: " + text for text in wrong))
    print("\nsource         rows   error   left out   by parts of the others")
    for source, of_source in by(rows, "source").items():
        without = left_out[source]
        print(f"{source:14} {len(of_source):4} {100 * sources[source]:6.1f} % {100 * without['error']:8.1f} %   "
              + ", ".join(f"{family} {part:.2f}" for family, part in without["parts"].items()))
    print("\nfamily                  rows  its part  median implied  by source")
    families = {}
    for family, of_family in by(rows, "family").items():
        families[family] = statistics.median(row["implied"] for row in of_family)
        print(f"{family:22} {len(of_family):5} {of_family[0]['part']:9.2f} {families[family]:15.2f}  "
              + ", ".join(f"{source} {statistics.median(r['implied'] for r in some):.2f}"
                          for source, some in by(of_family, "source").items()))
    return {"rows": len(rows), "mean_error": error(rows), "inside": inside, "high_over_low": width, "pairs_right": right,
            "pairs": asked, "sources": sources, "left_out": left_out, "implied": families}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cache", help=argparse.SUPPRESS)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--rows", default=ROWS)
    parser.add_argument("--only", default="", help="rows whose source, id or card has this text")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = read_rows(arguments.rows)
    motley = os.path.join(arguments.bin, "motley")
    answer = subprocess.run([motley, "cards", "-o", "json"], capture_output=True, text=True, check=True)
    cards = {card["name"]: card for card in json.loads(answer.stdout)["cards"]}
    results = []
    print(f"{'row':30} {'card':13} measured predicted ratio      low     high")
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        for row in rows:
            if not row["seconds"] or arguments.only not in f"{row['source']} {row['id']} {row['card']}":
                continue
            if row["card"] not in cards:
                sys.exit(f"coldstart: row {row['id']}: card '{row['card']}' is not in the device table")
            card = cards[row["card"]]
            row = priced(motley, row | {"family": card["family"]}, card["matrix_part"], folder)
            counted = row["id"] not in NOT_COUNTED
            where = "in" if row["low"] <= row["seconds"] <= row["high"] else "OUT"
            print(f"{row['id']:30} {row['card']:13} {row['seconds']:8.4f} {row['step']:9.4f} {row['ratio']:5.2f} {row['low']:8.3f} "
                  f"{row['high']:8.3f} {where if counted else 'not counted'}", flush=True)
            if counted:
                results.append(row)
    if not results:
        sys.exit("coldstart: no row has a measured step" + (f" and '{arguments.only}' in it" if arguments.only else ""))
    summary = show(results)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(summary, file, indent=2)


if __name__ == "__main__":
    main()
