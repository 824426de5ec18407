#!/usr/bin/env python3
"""Every plan trains like PyTorch: real coordinator, workers and ranks against transformers' models in plain PyTorch.

Runs in the oracle's Python (torch, transformers, safetensors). For each model family and data type: export the initial weights,
train them in PyTorch, then run the same job under many plans and compare every step's loss, gradient norm and learning rate.
Limits on the relative difference: float64 1e-10 over 50 steps, float32 1e-5 over 10, mixed precision in a half type 2e-2 over 20.
Then the exported model's logits.

usage: check_plans.py [--long]   # --long: all plans by hand for each family and type; else for one, three for two others, and of
                                 # the relatives of Llama (RELATIVES) one and one over tensor-parallel groups, in float64
"""
import copy
import functools
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch  # noqa: E402

import reference  # noqa: E402
from harness import CPU_DEVICE, Results, TestCluster, expect, job_sections  # noqa: E402
from plans import HAND_PLANS, make_plan, make_tensor_parallel_plan  # noqa: E402
from sample_order import Text  # noqa: E402

NODES = {"n1": [CPU_DEVICE, CPU_DEVICE], "n2": [CPU_DEVICE], "n3": [CPU_DEVICE]}
SLOW = {"kind": "emulated", "model": "slow", "flops_per_second": 2e9, "memory_bytes": 1 << 30, "link_bytes_per_second": 1e9}
SLOW_NODES = {node: [SLOW] * len(devices) for node, devices in NODES.items()}
CASES = {"float64": (50, 1e-10), "float32": (10, 1e-5)}  # steps, limit
HALF_CASES = {"bfloat16": (20, 2e-2), "float16": (20, 2e-2)}
ALL_BY_HAND = ("gpt2", "float64")
SOME_BY_HAND = ("uneven batches and shards", "other operators recomputed on each device", "zero bubble")
# With what else their jobs say.
RELATIVES = {"qwen3": {"optimizer__decay": "matrices"}, "phi4": {}, "smollm3": {}, "olmo2": {}, "gemma3": {},
             "mistral-window": {}, "qwen3-window": {}}
UNDIVIDED = ("olmo2", "gemma3")  # a rank has all heads of a layer or none
OF_RELATIVES, OF_BOTH_NORMS = "norms of heads recomputed", "norms behind others recomputed"
SMALLEST_LR = 1e-300  # a step that changes no weight: its checkpoint holds the initial weights
LOGITS_LIMIT = 1e-4
# Models that are no flavor. Of eight frequencies the scaling keeps one, mixes one and divides the others; windows are shorter than
# the sequences.
OWN_CONFIGS = {
    "mistral-window": {
        "model_type": "mistral", "vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 192, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "sliding_window": 9,
    },
    "qwen3-window": {
        "model_type": "qwen3", "vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 192, "max_position_embeddings": 256,
        "use_sliding_window": True, "sliding_window": 9, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    },
    "llama3-scaled": {
        "model_type": "llama", "vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 192, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64},
    },
}


class Oracle:
    """Initial weights as Motley exports them, and what PyTorch makes of them: of text, or of `rows` in a folder."""

    def __init__(self, cluster, model, dtype, steps=None, rows=None, rows_folder=None):
        self.cluster, self.model, self.dtype = cluster, model, dtype
        self.half = dtype in HALF_CASES
        self.steps, self.limit = {**CASES, **HALF_CASES}[dtype]
        self.steps = steps or self.steps
        self.data = {"data__path": rows_folder} if rows else {}
        job_id = f"initial-{model}-{dtype}"
        sections = self.sections(training__steps=1, optimizer__lr=SMALLEST_LR, lr_scheduler__warmup_steps=0, data__path=cluster.text)
        cluster.submit_job(job_id, sections)
        cluster.wait_for_state(job_id, "SUCCEEDED")
        self.template = cluster.motley("plan", job_id)["plan"]
        self.folder = export(cluster, job_id)
        self.trained = reference.load_model(self.folder, "float32" if self.half else dtype, self.half)
        self.records = list(reference.train(self.trained, self.sections(), losses=rows))

    def sections(self, **changes):
        precision = {"training__mixed_precision_param" if self.half else "training__dtype": self.dtype}
        model = {"model__config_json": json.dumps(OWN_CONFIGS[self.model])} if self.model in OWN_CONFIGS else {}
        settings = {**model, **precision, **RELATIVES.get(self.model, {}), **changes}
        return job_sections(self.cluster, self.model, **{"training__steps": self.steps, "data__validation_interval": 5, **self.data, **settings})

    def compare(self, job_id):
        """Raises with the worst relative difference when it is above the limit."""
        records = self.cluster.steps(job_id)
        expect(len(records) == self.steps, f"{len(records)} step records, {self.steps} expected")
        worst, where = 0.0, ""
        for ours, theirs in zip(records, self.records):
            for key in ("loss", "grad_norm", "validation_loss"):
                if key in theirs:
                    difference = abs(ours[key] - theirs[key]) / abs(theirs[key])
                    # The norm sums squares of many small numbers: ten times looser than the loss.
                    difference /= 10 if key == "grad_norm" else 1
                    if not difference <= worst:
                        worst, where = difference, f"{key} of step {ours['step']}: {ours[key]!r}, PyTorch {theirs[key]!r}"
            expect(abs(ours["lr"] - theirs["lr"]) <= 1e-12 * theirs["lr"] + 1e-18, f"learning rate of step {ours['step']}: {ours['lr']}, PyTorch {theirs['lr']}")
        expect(worst <= self.limit, f"relative difference {worst:.2e} above {self.limit:.0e} at {where}")


def export(cluster, job_id):
    folder = os.path.join(cluster.top, "export", job_id)
    done = cluster.run_motley("export", job_id, "--out", folder)
    expect(done.returncode == 0, f"motley export: {done.stderr}")
    return folder


def run_to_end(oracle, job_id, **changes):
    oracle.cluster.submit_job(job_id, oracle.sections(**changes))
    oracle.cluster.wait_for_state(job_id, "SUCCEEDED")
    oracle.compare(job_id)


def run_hand_plan(oracle, job_id, plan):
    run_to_end(oracle, job_id, planner__plan_json=make_plan(oracle.template, *plan))


def run_tensor_parallel(oracle, job_id):
    """Shares of 3/4 and 1/4 where the model has four key-value heads (GPT-2's), else halves."""
    config = oracle.trained.config
    parts = getattr(config, "num_key_value_heads", config.num_attention_heads)
    run_to_end(oracle, job_id, planner__plan_json=make_tensor_parallel_plan(oracle.template, parts))
    ranks = [rank for unit in oracle.cluster.motley("plan", job_id)["plan"]["pipelines"][0]["stages"][0]["units"] for rank in unit["ranks"]]
    expect(sorted(rank["tp_share"] for rank in ranks) == sorted([1 - 1 / parts, 1 / parts] * 2), f"the job ran with {ranks}")


def run_with_replan(oracle, cluster, job_id):
    """A node is drained at step 20 and comes back later: two replans, one curve. On devices so slow that the job is not over before."""
    oracle = copy.copy(oracle)
    oracle.cluster = cluster
    cluster.submit_job(job_id, oracle.sections(planner__strategy="cephalo", checkpoint__interval=20))
    cluster.wait_for_step(job_id, 20)
    cluster.motley("nodes", "drain", "n2")
    try:
        cluster.wait_for(lambda: int(cluster.job(job_id)["generation"]) >= 2, 30, "the second generation")
    finally:
        cluster.motley("nodes", "undrain", "n2")
    cluster.wait_for_state(job_id, "SUCCEEDED")
    expect(int(cluster.job(job_id)["generation"]) >= 2, "the job was not replanned")
    oracle.compare(job_id)


def check_export(oracle, job_id):
    """The exported model in unpatched transformers against the model that PyTorch trained: same logits, and our validation loss."""
    from transformers import AutoModelForCausalLM
    exported = AutoModelForCausalLM.from_pretrained(export(oracle.cluster, job_id))
    data = oracle.sections()["data"]
    text = Text(data["path"], oracle.sections()["training"]["seq_len"], data["validation_fraction"])
    tokens = reference.tokens_of([text.validation_sample(i) for i in range(data["validation_samples"])])
    with torch.no_grad():
        ours, theirs = exported(input_ids=tokens[:, :-1]).logits, oracle.trained(input_ids=tokens[:, :-1]).logits
        worst = (ours - theirs).abs().max().item()
        loss = reference.mean_loss(exported, tokens).item()
    expect(worst <= LOGITS_LIMIT, f"logits differ by {worst:.2e}, limit {LOGITS_LIMIT:.0e}")
    reported = oracle.cluster.steps(job_id)[-1]["validation_loss"]
    expect(abs(loss - reported) <= LOGITS_LIMIT, f"validation loss of the exported model {loss}, reported {reported}")


def check_family(results, cluster, slow_cluster, model, dtype, names):
    oracle = Oracle(cluster, model, dtype)
    name = f"{model} {dtype}"
    for number, what in enumerate(names):
        plan = HAND_PLANS[what]
        results.run(f"{name}: {what}", run_hand_plan, oracle, f"{model}-{dtype}-hand-{number}", plan)
    layouts = {strategy: functools.partial(run_to_end, planner__strategy=strategy) for strategy in ("even", "cephalo")}
    if model not in UNDIVIDED:
        layouts["tensor-parallel"] = run_tensor_parallel
    for layout, run in layouts.items():
        job_id = f"{model}-{dtype}-{layout}"
        results.run(f"{name}: {layout}", run, oracle, job_id)
        if dtype == "float64":
            continue
        results.run(f"{name}: exported model of {layout}", check_export, oracle, job_id)
    if dtype == "float64":
        results.run(f"{name}: replan at step 20", run_with_replan, oracle, slow_cluster, f"{model}-{dtype}-replan")


def check_relative(results, cluster, model, dtype):
    oracle = Oracle(cluster, model, dtype)
    results.run(f"{model} {dtype}: {OF_RELATIVES}", run_hand_plan, oracle, f"{model}-{dtype}-hand", HAND_PLANS[OF_RELATIVES])
    if model == "gemma3":
        plan = HAND_PLANS[OF_BOTH_NORMS]
        results.run(f"{model} {dtype}: {OF_BOTH_NORMS}", run_hand_plan, oracle, f"{model}-{dtype}-both-norms", plan)
    if model not in UNDIVIDED:
        results.run(f"{model} {dtype}: tensor-parallel", run_tensor_parallel, oracle, f"{model}-{dtype}-tensor-parallel")


def check_scaled_positions(results, cluster, model, dtype):
    oracle = Oracle(cluster, model, dtype)
    job_id = f"{model}-{dtype}-cephalo"
    results.run(f"{model} {dtype}: cephalo", functools.partial(run_to_end, planner__strategy="cephalo"), oracle, job_id)
    if dtype != "float64":
        results.run(f"{model} {dtype}: exported model", check_export, oracle, job_id)


def check_half(results, cluster, model, dtype):
    oracle = Oracle(cluster, model, dtype)
    plans = list(HAND_PLANS.items())
    for number in (1, len(plans) - 1):
        what, plan = plans[number]
        results.run(f"{model} {dtype}: {what}", run_hand_plan, oracle, f"{model}-{dtype}-hand-{number}", plan)
    for strategy in ("even", "cephalo", "zorse"):
        run = functools.partial(run_to_end, planner__strategy=strategy)
        results.run(f"{model} {dtype}: {strategy}", run, oracle, f"{model}-{dtype}-{strategy}")


def main():
    if sys.argv[1:] not in ([], ["--long"]):
        sys.exit(__doc__)
    torch.set_num_threads(1)
    results = Results("oracle")
    with TestCluster() as cluster, TestCluster() as slow_cluster:
        cluster.start(NODES)
        slow_cluster.start(SLOW_NODES)
        for dtype in CASES:
            for model in ("gpt2", "llama3", "qwen2"):
                names = HAND_PLANS if sys.argv[1:] or (model, dtype) == ALL_BY_HAND else SOME_BY_HAND
                results.prepare(f"{model} {dtype}", check_family, results, cluster, slow_cluster, model, dtype, names)
            for model in RELATIVES if sys.argv[1:] else ():
                results.prepare(f"{model} {dtype}", check_family, results, cluster, slow_cluster, model, dtype, SOME_BY_HAND)
            results.prepare(f"llama3-scaled {dtype}", check_scaled_positions, results, cluster, "llama3-scaled", dtype)
        for model in RELATIVES:
            if not sys.argv[1:]:
                results.prepare(f"{model} float64", check_relative, results, cluster, model, "float64")
        for dtype in HALF_CASES:
            for model in ("gpt2", "llama3"):
                results.prepare(f"{model} {dtype}", check_half, results, cluster, model, dtype)
    results.exit()


if __name__ == "__main__":
    main()
