#!/usr/bin/env python3
"""Jobs that begin with a folder of HuggingFace's: what is not trained comes out as it was, what is trained is as PyTorch trains it.

Runs in the oracle's Python. transformers writes tiny folders of each family, in each type, whole and in shards, with keys of its
versions 4 and 5; a job on two unlike emulated devices begins with each. Its checkpoint of step 0, exported, has the folder's tensors
and small files byte for byte. The first step's loss is transformers' on the folder to 1e-12 in float64 and 1e-6 in float32, and
twenty steps are PyTorch's within the limits of check_plans.py. The trained model loads, and its card says what the step records say.
Folders of weights and of tokens that are damaged or not supported (damaged.py) are refused by name.

usage: check_weights.py [--long]   # --long: each family in each type, whole and in shards
"""
import glob
import json
import math
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch  # noqa: E402
from huggingface_hub import ModelCard  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402
from transformers.utils.logging import disable_progress_bar  # noqa: E402

import damaged  # noqa: E402
import reference  # noqa: E402
from harness import Results, TestCluster, expect, job_sections, published_checkpoints  # noqa: E402
from rows import chats  # noqa: E402

FAST = {"kind": "emulated", "model": "fast", "flops_per_second": 3e11, "memory_bytes": 1 << 30, "link_bytes_per_second": 1e9}
SLOW = {"kind": "emulated", "model": "slow", "flops_per_second": 1e11, "memory_bytes": 1 << 30, "link_bytes_per_second": 1e9}
NODES = {"n1": [FAST], "n2": [SLOW]}
SEQ_LEN = 32
SIZES = {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "intermediate_size": 160, "max_position_embeddings": 256}
LLAMA3_ROPE = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64}
PLAIN_ROPE = {"rope_type": "default", "rope_theta": 1e6}
NO_TOKENS = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}  # the defaults are beyond the vocabulary
CONFIGS = {
    "llama3.2": {"model_type": "llama", **SIZES, "tie_word_embeddings": True, "rms_norm_eps": 1e-5, "rope_parameters": LLAMA3_ROPE},
    "qwen2.5": {"model_type": "qwen2", **SIZES, "tie_word_embeddings": False, "rope_parameters": PLAIN_ROPE},
    "mistral": {"model_type": "mistral", **SIZES, "head_dim": 32, "sliding_window": 64},
    "qwen3": {"model_type": "qwen3", **SIZES, "head_dim": 24, "tie_word_embeddings": True, "rope_parameters": PLAIN_ROPE},
    "phi4": {"model_type": "phi3", **SIZES, "tie_word_embeddings": False, "rms_norm_eps": 1e-5, "rope_parameters": PLAIN_ROPE,
             "original_max_position_embeddings": 256, **NO_TOKENS},
    "smollm3": {"model_type": "smollm3", **SIZES, "no_rope_layer_interval": 2, "tie_word_embeddings": True, "rope_parameters": PLAIN_ROPE,
                **NO_TOKENS},
    "olmo2": {"model_type": "olmo2", **SIZES, "tie_word_embeddings": False, "rope_parameters": PLAIN_ROPE, **NO_TOKENS},
    "mistral-window": {"model_type": "mistral", **SIZES, "sliding_window": 9},
    "gemma3": {"model_type": "gemma3_text", **SIZES, "head_dim": 16, "query_pre_attn_scalar": 20, "sliding_window": 9,
               "layer_types": ["sliding_attention", "full_attention"], "pad_token_id": None},
    "gpt2": {"model_type": "gpt2", "vocab_size": 256, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "resid_pdrop": 0.0,
             "embd_pdrop": 0.0, "attn_pdrop": 0.0},
}
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
# Of each family: the type of its files, whether they are shards, what the job trains in. Each type and each form is somewhere twice.
CASES = [
    ("llama3.2", "bfloat16", True, "float64"), ("llama3.2", "float16", False, "float32"),
    ("qwen2.5", "bfloat16", False, "float32"), ("qwen2.5", "float32", True, "float64"),
    ("mistral", "float16", True, "float64"), ("mistral", "bfloat16", False, "float32"),
    ("mistral-window", "float32", False, "float64"),
    ("gemma3", "bfloat16", True, "float64"), ("gemma3", "float16", False, "float32"),
    ("gpt2", "float32", False, "float64"), ("gpt2", "bfloat16", True, "float32"),
    ("qwen3", "bfloat16", True, "float64"), ("qwen3", "float32", False, "float32"),
    ("phi4", "bfloat16", False, "float64"), ("phi4", "float16", True, "float32"),
    ("smollm3", "bfloat16", True, "float32"), ("smollm3", "float32", False, "float64"),
    ("olmo2", "float16", False, "float64"), ("olmo2", "bfloat16", True, "float32"),
]
ALL_CASES = CASES + [(family, dtype, sharded, "float32") for family in CONFIGS for dtype in DTYPES for sharded in (False, True)
                     if (family, dtype, sharded) not in {case[:3] for case in CASES}]
STEPS = 20
FIRST_LIMITS = {"float64": 1e-12, "float32": 1e-6}
LIMITS = {"float64": 1e-10, "float32": 1e-5}
OTHER_VALUES = 0.2  # how far norms and biases are from what a seed gives them: nothing is right by being left out


def randomise(model):
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * OTHER_VALUES)


def make_folder(path, family, dtype, sharded):
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**CONFIGS[family]))
    randomise(model)
    model.to(DTYPES[dtype])
    total = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    model.save_pretrained(path, max_shard_size=total * 2 // 5 if sharded else "5GB")
    shards = glob.glob(os.path.join(path, "model-*.safetensors"))
    expect(len(shards) >= 3 if sharded else not shards, f"transformers wrote {sorted(os.listdir(path))}")
    for name, text in (("tokenizer_config.json", "{}\n"), ("chat_template.jinja", "{{ messages }}"),
                       ("README.md", "---\nlicense: mit\n---\n# Theirs\n")):
        with open(os.path.join(path, name), "w", encoding="utf-8") as file:
            file.write(text)


def as_version_4(path):
    """The same config with the keys of transformers 4."""
    name = os.path.join(path, "config.json")
    with open(name, encoding="utf-8") as file:
        config = json.load(file)
    config["torch_dtype"] = config.pop("dtype")
    rope = config.pop("rope_parameters", None)
    if rope and "full_attention" in rope:
        config["rope_theta"], config["rope_local_base_freq"] = (rope[of]["rope_theta"] for of in ("full_attention", "sliding_attention"))
        config["rope_scaling"] = None
    elif rope:
        config["rope_theta"] = rope.pop("rope_theta")
        config["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    with open(name, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)


def as_published_gpt2(path):
    """Names without their prefix, and the masks that old versions stored."""
    name = os.path.join(path, "model.safetensors")
    tensors = {key.removeprefix("transformer."): value.clone() for key, value in load_file(name).items()}
    for layer in range(CONFIGS["gpt2"]["n_layer"]):
        tensors[f"h.{layer}.attn.bias"] = torch.ones(1, 1, 64, 64).tril()
    save_file(tensors, name, metadata={"format": "pt"})


def tensors_of(path):
    """{name: (dtype, shape, bytes)} of all files of a folder, without GPT-2's masks."""
    found = {}
    for name in sorted(glob.glob(os.path.join(path, "*.safetensors"))):
        for key, value in load_file(name).items():
            expect(key not in found, f"{key} is twice in {path}")
            if not key.endswith(".attn.bias"):
                found[key] = (value.dtype, tuple(value.shape), value.contiguous().view(torch.uint8).numpy().tobytes())
    return found


def small_files_of(path):
    names = [name for name in os.listdir(path) if ".safetensors" not in name]
    return {name: open(os.path.join(path, name), "rb").read() for name in names}


def export(cluster, job_id, step):
    folder = cluster.checkpoints(job_id)
    name = [name for _, of, name in published_checkpoints(folder) if of == step][-1]
    out = os.path.join(cluster.top, "export", f"{job_id}-{step}")
    done = cluster.run_motley("export", "--checkpoint", os.path.join(folder, name), "--out", out)
    expect(done.returncode == 0, f"motley export: {done.stderr}")
    return out


def check_untouched(cluster, job_id, path):
    out = export(cluster, job_id, 0)
    was, now = tensors_of(path), tensors_of(out)
    expect(set(was) == set(now), f"missing {sorted(set(was) - set(now))}, unknown {sorted(set(now) - set(was))}")
    other = [name for name in was if was[name] != now[name]]
    expect(not other, f"{len(other)} of {len(was)} tensors differ: {[(name, was[name][:2], now[name][:2]) for name in other[:3]]}")
    was, now = small_files_of(path), small_files_of(out)
    now.pop("README.md")
    now["README.md"] = now.pop("README.base.md")
    expect(was == now, f"other small files: {sorted(was)}, exported {sorted(now)}")


def check_card(out, path, job, sections, records):
    """As the hub's library reads it; with numbers of the step records."""
    card = ModelCard.load(os.path.join(out, "README.md"))
    data = card.data.to_dict()
    expect(data["base_model"] == os.path.basename(path) and data["library_name"] == "transformers" and data["license"] == "mit", data)
    expect("motley" in data["tags"], data)
    rows = dict(re.findall(r"^\| (.+?) \| (.+) \|$", card.text, re.MULTILINE))
    last, training = records[-1], sections["training"]
    tokens = STEPS * training["seq_len"] * training["global_batch_size"]
    wanted = {"job": f"{job['id']}, uid {job['uid']}", "base model": os.path.basename(path), "steps": f"{STEPS}", "license": "as the base's",
              "tokens trained": f"{tokens} ", "data": f"{os.path.basename(sections['data']['path'])}, digest ",
              "training loss": f"{last['loss']:.6g} at step {STEPS}",
              "validation loss": f"{last['validation_loss']:.6g} (perplexity {math.exp(last['validation_loss']):.6g}) at step {STEPS}"}
    for name, value in wanted.items():
        expect(rows.get(name, "").startswith(value), f"{name}: {rows.get(name)!r}, {value!r} expected")
    expect(re.fullmatch(r"20\d\d-\d\d-\d\d", rows["exported"]) and f"# {job['spec'].get('name') or job['id']}\n" in card.text, card.text)


def check_trained_export(cluster, job_id, dtype, path, sections):
    out = os.path.join(cluster.top, "export", job_id)
    done = cluster.run_motley("export", job_id, "--out", out)
    expect(done.returncode == 0, f"motley export: {done.stderr}")
    check_card(out, path, cluster.job(job_id), sections, cluster.steps(job_id))
    model = AutoModelForCausalLM.from_pretrained(out, dtype="auto")
    expect(model.dtype == DTYPES[dtype], f"the trained model is {model.dtype}, the folder {dtype}")


def compare(records, expected, trains_in):
    expect(len(records) == STEPS, f"{len(records)} step records, {STEPS} expected")
    first = abs(records[0]["loss"] - expected[0]["loss"]) / expected[0]["loss"]
    expect(first <= FIRST_LIMITS[trains_in], f"first loss {records[0]['loss']!r}, transformers' {expected[0]['loss']!r}: {first:.1e} apart")
    worst, where = 0.0, ""
    for ours, theirs in zip(records, expected):
        for key, scale in (("loss", 1), ("grad_norm", 10), ("validation_loss", 1)):
            if key in theirs:
                difference = abs(ours[key] - theirs[key]) / abs(theirs[key]) / scale
                if not difference <= worst:
                    worst, where = difference, f"{key} of step {ours['step']}: {ours[key]!r}, PyTorch {theirs[key]!r}"
    expect(worst <= LIMITS[trains_in], f"relative difference {worst:.2e} above {LIMITS[trains_in]:.0e} at {where}")


def sections_of(cluster, path, trains_in):
    sections = job_sections(cluster, training__steps=STEPS, training__seq_len=SEQ_LEN, training__dtype=trains_in, planner__strategy="cephalo",
                            checkpoint__initial=path, checkpoint__enable_step_zero_checkpoint=True, checkpoint__keep_latest_k=10,
                            data__validation_interval=10)
    sections["model"].clear()  # the folder's own
    return sections


def train_in_torch(path, trains_in, sections):
    model = AutoModelForCausalLM.from_pretrained(path, dtype=reference.DTYPES[trains_in], attn_implementation="sdpa")
    return list(reference.train(reference.make_exact(model), sections))


def check_case(results, cluster, family, dtype, sharded, trains_in):
    name = f"{family} in {dtype}{', in shards' if sharded else ''}, trained in {trains_in}"
    job_id = f"{family.replace('.', '-')}-{dtype}-{'shards' if sharded else 'whole'}"
    path = os.path.join(cluster.top, "models", job_id)
    make_folder(path, family, dtype, sharded)
    if dtype == "bfloat16":
        as_version_4(path)
    if family == "llama3.2" and dtype == "float16" and not sharded:
        with_both_ropes(path)
    if family == "gpt2" and not sharded:
        as_published_gpt2(path)
    sections = sections_of(cluster, path, trains_in)
    cluster.submit_job(job_id, sections)
    expected = train_in_torch(path, trains_in, sections)
    cluster.wait_for_state(job_id, "SUCCEEDED")
    results.run(f"{name}: untouched, exported", check_untouched, cluster, job_id, path)
    results.run(f"{name}: {STEPS} steps", compare, cluster.steps(job_id), expected, trains_in)
    results.run(f"{name}: trained, exported", check_trained_export, cluster, job_id, dtype, path, sections)


def goes_on_from_an_export(cluster):
    """Motley's own export, of a job that began from a seed, is a folder like others."""
    sections = job_sections(cluster, "llama3", training__steps=2, training__dtype="float32")
    cluster.submit_job("seed", sections)
    cluster.wait_for_state("seed", "SUCCEEDED")
    path = os.path.join(cluster.top, "models", "own")
    done = cluster.run_motley("export", "seed", "--out", path)
    expect(done.returncode == 0, f"motley export: {done.stderr}")
    by_weights = job_sections(cluster, training__steps=2, checkpoint__initial=path)
    by_weights["model"].clear()
    cluster.submit_job("by-weights", by_weights)
    cluster.submit_job("by-job", job_sections(cluster, "llama3", training__steps=2, checkpoint__initial="seed"))
    for job_id in ("by-weights", "by-job"):
        cluster.wait_for_state(job_id, "SUCCEEDED")
    ours, theirs = ([record["loss"] for record in cluster.steps(job_id)] for job_id in ("by-weights", "by-job"))
    expect(all(abs(a - b) <= 1e-6 * b for a, b in zip(ours, theirs)) and len(ours) == 2, f"losses {ours}, of the checkpoint {theirs}")


def with_both_ropes(path):
    """The older key stands for all of the newer one, which has another base and no scaling."""
    rope = CONFIGS["llama3.2"]["rope_parameters"]
    damaged.with_config(rope_scaling=rope, rope_parameters={"rope_type": "default", "rope_theta": 7.0})(path)


def refused(cluster, job_id, path, said, model=None, data=None):
    """What the client sees it says at once; what only the nodes or ranks see, as the job's end."""
    sections = sections_of(cluster, path, "float32")
    sections["model"].update(model or {})
    sections["data"]["path"] = data or sections["data"]["path"]
    done = cluster.run_motley("submit", cluster.job_file(job_id, sections), "--id", job_id)
    text = done.stderr if done.returncode != 0 else cluster.wait_for_state(job_id, "FAILED")["reason"]
    expect(said in text, f"no {said!r} in: {text}")


def refused_weights(cluster, name, number):
    damage, said = damaged.WEIGHTS[name]
    path = os.path.join(cluster.top, "models", f"damaged-{number}")
    shutil.copytree(os.path.join(cluster.top, "models", "good"), path)
    damage(path)
    refused(cluster, f"damaged-{number}", path, said)


def refused_tokens(cluster, name, number):
    make, said = damaged.TOKENS[name]
    path = os.path.join(cluster.top, "models", "good-with-tokenizer")
    data = make(cluster.top, chats(cluster.text, SEQ_LEN, 60, 0.5))
    refused(cluster, f"tokens-{number}", path, said.replace("{}", path), data=data)


def check_refusals(results, cluster, is_long):
    path = os.path.join(cluster.top, "models", "good")
    make_folder(path, "llama3.2", "float32", True)
    shutil.copytree(path, path + "-with-tokenizer")
    damaged.write_file(os.path.join(path + "-with-tokenizer", "tokenizer.json"), b"{}")
    results.run("refused: another model", refused, cluster, "other-model", path, "leave out [model]", {"name": "gpt2", "flavor": "debug"})
    for number, name in enumerate(damaged.WEIGHTS):
        if is_long or name not in damaged.AT_LENGTH:
            results.run(f"refused: {name}", refused_weights, cluster, name, number)
    for number, name in enumerate(damaged.TOKENS):
        results.run(f"refused: {name}", refused_tokens, cluster, name, number)


def main():
    if sys.argv[1:] not in ([], ["--long"]):
        sys.exit(__doc__)
    is_long = bool(sys.argv[1:])
    torch.set_num_threads(1)
    disable_progress_bar()
    results = Results("weights")
    with TestCluster() as cluster:
        cluster.start(NODES)
        for case in ALL_CASES if is_long else CASES:
            results.prepare(" ".join(str(word) for word in case), check_case, results, cluster, *case)
        results.run("an export of Motley as a start", goes_on_from_an_export, cluster)
        results.prepare("refusals", check_refusals, results, cluster, is_long)
    results.exit()


if __name__ == "__main__":
    main()
