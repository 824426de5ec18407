"""The oracle: transformers' own GPT-2, Llama, Mistral, Qwen 2 and 3, Phi-3, SmolLM 3, OLMo 2 and Gemma 3, trained by plain PyTorch on one device with one batch.

Starts from an exported model, draws the same samples, and yields what a step line shows. What is patched in transformers, and why,
stands at the patch: in float64 it would otherwise compute parts in float32.

Mixed precision is that of FSDP2's MixedPrecisionPolicy(param_dtype=half, reduce_dtype=float32): float32 parameters are cast before
use, so autograd casts the half gradients back and sums them in float32. float16 has PyTorch's own GradScaler.
"""
import json
import math
import os
import types

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from sample_order import SampleOrder, Text

DTYPES = {"float32": torch.float32, "float64": torch.float64}
HALVES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def exact_rms_norm(self, hidden):
    # transformers casts to float32 here, whatever the model's type.
    variance = hidden.pow(2).mean(-1, keepdim=True)
    return self.weight * (hidden * torch.rsqrt(variance + self.variance_epsilon))


def exact_gemma_norm(self, hidden):
    # Here too; and what is stored is what the weight is short of 1.
    return hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self.eps) * (1.0 + self.weight)


def scaled_as_llama3(frequencies, config):
    """In float64 what transformers computes in float32, which it must be but for rounding."""
    rope = config.rope_parameters
    wavelengths = 2 * math.pi / frequencies
    context, low, high = (rope[key] for key in ("original_max_position_embeddings", "low_freq_factor", "high_freq_factor"))
    smooth = (context / wavelengths - low) / (high - low)
    mixed = (1 - smooth) * frequencies / rope["factor"] + smooth * frequencies
    scaled = torch.where(wavelengths > context / low, frequencies / rope["factor"], mixed)
    scaled = torch.where(wavelengths < context / high, frequencies, scaled)
    torch.testing.assert_close(scaled.float(), ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")[0], rtol=1e-6, atol=0)
    return scaled


class ExactRotary(torch.nn.Module):
    """Tables computed in float64 and then cast; transformers keeps float32 tables."""

    def __init__(self, head_dim, theta, config):
        super().__init__()
        exponents = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim
        self.frequencies = 1.0 / theta**exponents
        if config.rope_parameters["rope_type"] == "llama3":
            self.frequencies = scaled_as_llama3(self.frequencies, config)

    def forward(self, hidden, position_ids):
        angles = position_ids[..., None].double() * self.frequencies
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().to(hidden.dtype), angles.sin().to(hidden.dtype)


class ExactRotaryByType(torch.nn.Module):
    """Of a model whose types of layers have a base each."""

    def __init__(self, head_dim, config):
        super().__init__()
        self.types = {}
        for layer_type, rope in config.rope_parameters.items():
            if rope["rope_type"] != "default":
                raise SystemExit(f"{layer_type} has scaled positions")
            exponents = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim
            self.types[layer_type] = 1.0 / rope["rope_theta"]**exponents

    def forward(self, hidden, position_ids, layer_type):
        angles = position_ids[..., None].double() * self.types[layer_type]
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().to(hidden.dtype), angles.sin().to(hidden.dtype)


def make_exact(model, mixed=False):
    """The parts of a Llama or of its relatives that transformers computes in float32 in the model's own type; attention is to be sdpa."""
    for module in model.modules():
        # In a half type the norm's statistics are float32, as transformers has them.
        if type(module).__name__.endswith("RMSNorm") and not mixed:
            exact = exact_gemma_norm if type(module).__name__.startswith("Gemma3") else exact_rms_norm
            module.forward = types.MethodType(exact, module)
        if hasattr(module, "scalar_embed_scale"):  # a float32 number, were the model float64
            module.embed_scale = torch.tensor(module.scalar_embed_scale, dtype=module.weight.dtype)
    config = model.config
    if hasattr(model.base_model, "rotary_emb"):
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        by_type = "rope_theta" not in config.rope_parameters
        model.base_model.rotary_emb = (ExactRotaryByType(head_dim, config) if by_type
                                       else ExactRotary(head_dim, config.rope_parameters["rope_theta"], config))
    return model


def load_model(folder, dtype, mixed=False):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        values = json.load(file)
    config = AutoConfig.for_model(**values)
    config._attn_implementation = "sdpa"  # eager attention takes its softmax in float32
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").to(DTYPES[dtype])
    state = load_file(os.path.join(folder, "model.safetensors"))
    missing, unexpected = model.load_state_dict(state, strict=False)
    tied = {"lm_head.weight"} if config.tie_word_embeddings else set()
    if set(missing) - tied or unexpected:
        raise SystemExit(f"the exported model does not fit transformers': missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    return make_exact(model, mixed)


def learning_rate(job, step):
    training, optimizer, schedule = job["training"], job["optimizer"], job["lr_scheduler"]
    steps, warmup = training["steps"], min(schedule["warmup_steps"], training["steps"])
    if step < warmup:
        return optimizer["lr"] * ((step + 1) / warmup)
    if schedule["decay_type"] == "constant" or steps == warmup:
        return optimizer["lr"]
    progress = (step - warmup) / (steps - warmup)
    decayed = 0.5 * (1 + math.cos(math.pi * progress)) if schedule["decay_type"] == "cosine" else 1 - progress
    floor = schedule["min_lr_factor"]
    return optimizer["lr"] * (floor + (1 - floor) * decayed)


def tokens_of(samples):
    return torch.tensor([list(sample) for sample in samples], dtype=torch.int64)


def half_of(job):
    """The type that a mixed job computes in; None: the parameters' own."""
    return HALVES.get(job["training"].get("mixed_precision_param"))


def mean_loss(model, tokens, half=None):
    parameters = {} if half is None else {name: parameter.to(half) for name, parameter in model.named_parameters()}
    # Not `labels=`: transformers would cast the logits to float32, of float64 ones too.
    logits = torch.func.functional_call(model, parameters, kwargs={"input_ids": tokens[:, :-1], "use_cache": False}).logits
    logits = logits if half is None else logits.float()
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))


class TextLoss:
    """What a job on text computes: of rows of tokens tests/oracle/rows.py has the same."""

    def __init__(self, job):
        self.text = Text(job["data"]["path"], job["training"]["seq_len"], job["data"]["validation_fraction"])
        self.digest, self.num_train_samples = self.text.digest, self.text.num_train_samples

    def train_loss(self, model, indices, half):
        return mean_loss(model, tokens_of([self.text.train_sample(i) for i in indices]), half)

    def validation_loss(self, model, samples, half):
        return mean_loss(model, tokens_of([self.text.validation_sample(i) for i in range(samples)]), half)


def optimizer_of(model, job):
    settings = job["optimizer"]
    parameters = list(model.parameters())
    if settings.get("decay") == "matrices":  # as transformers' Trainer: without biases and norms
        parameters = [{"params": [p for p in parameters if p.dim() > 1]}, {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}]
    return torch.optim.AdamW(parameters, lr=settings["lr"], betas=(settings["beta1"], settings["beta2"]), eps=settings["eps"],
                             weight_decay=settings["weight_decay"])


def train(model, job, steps=None, optimizer=None, losses=None):
    """Yields {step, loss, grad_norm, lr[, validation_loss]} for each step of the job (a dict of the job file's sections)."""
    training, data = job["training"], job["data"]
    losses = losses or TextLoss(job)
    order = SampleOrder(training["seed"], losses.digest, training["seq_len"], losses.num_train_samples)
    parameters = list(model.parameters())
    optimizer = optimizer or optimizer_of(model, job)
    half = half_of(job)
    scaler = torch.amp.GradScaler("cpu", enabled=half is torch.float16)
    for step in range(steps or training["steps"]):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(job, step)
        optimizer.zero_grad()
        loss = losses.train_loss(model, order.samples(step, training["global_batch_size"]), half)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(parameters, training["max_norm"] or math.inf)
        scaler.step(optimizer)
        scaler.update()
        record = {"step": step + 1, "loss": loss.item(), "grad_norm": norm.item(), "lr": learning_rate(job, step)}
        interval = data["validation_interval"]
        if data["validation_samples"] and (step + 1 == training["steps"] or (interval and (step + 1) % interval == 0)):
            with torch.no_grad():
                record["validation_loss"] = losses.validation_loss(model, data["validation_samples"], half).item()
        yield record
