#!/usr/bin/env python3
"""One training step of GPT-2 or Llama in plain PyTorch, eager or compiled: what Motley's step on one device is measured beside.
Needs torch alone. Prints {"seconds": median of a step, "peak_bytes": of the device}.

usage: gpu_baseline.py --model SHAPE.json --seq-len N --samples N --microbatches N --steps N --dtype bfloat16 --device cuda [--compile]

SHAPE.json: {"family": "gpt2" or "llama3", "vocab_size", "hidden_size", "num_layers", "num_heads", "num_kv_heads",
"intermediate_size"}. Weights, moments and gradients are float32; products run in --dtype under autocast, as is usual.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        hidden, self.heads, self.kv = shape["hidden_size"], shape["num_heads"], shape["num_kv_heads"]
        self.dim, self.llama = hidden // self.heads, shape["family"] != "gpt2"
        bias = not self.llama
        norm = (lambda: nn.RMSNorm(hidden)) if self.llama else (lambda: nn.LayerNorm(hidden))
        self.norm1, self.norm2 = norm(), norm()
        self.qkv = nn.Linear(hidden, (self.heads + 2 * self.kv) * self.dim, bias=bias)
        self.out = nn.Linear(hidden, hidden, bias=bias)
        self.up = nn.Linear(hidden, shape["intermediate_size"] * (2 if self.llama else 1), bias=bias)
        self.down = nn.Linear(shape["intermediate_size"], hidden, bias=bias)

    def rotate(self, heads, cos, sin):
        first, second = heads.chunk(2, -1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).to(heads.dtype)

    def forward(self, x, cos, sin):
        samples, length, hidden = x.shape
        parts = self.qkv(self.norm1(x)).split([self.heads * self.dim, self.kv * self.dim, self.kv * self.dim], -1)
        q, k, v = (part.view(samples, length, -1, self.dim).transpose(1, 2) for part in parts)
        if self.llama:
            q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.kv != self.heads)
        x = x + self.out(a.transpose(1, 2).reshape(samples, length, hidden))
        up = self.up(self.norm2(x))
        if self.llama:
            gate, up = up.chunk(2, -1)
            return x + self.down(F.silu(gate) * up)
        return x + self.down(F.gelu(up, approximate="tanh"))


class Model(nn.Module):
    def __init__(self, shape, length):
        super().__init__()
        hidden = shape["hidden_size"]
        self.tokens = nn.Embedding(shape["vocab_size"], hidden)
        self.positions = nn.Embedding(length, hidden) if shape["family"] == "gpt2" else None
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape["num_layers"]))
        self.norm = nn.LayerNorm(hidden) if shape["family"] == "gpt2" else nn.RMSNorm(hidden)
        self.head = nn.Linear(hidden, shape["vocab_size"], bias=False)
        if shape["family"] == "gpt2":
            self.head.weight = self.tokens.weight
        dim = hidden // shape["num_heads"]
        angles = torch.outer(torch.arange(length), 1 / 500000.0 ** (torch.arange(0, dim, 2) / dim))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions.weight
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), targets.flatten())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    for name in ("--seq-len", "--samples", "--microbatches", "--steps"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--compile", action="store_true")
    a = parser.parse_args()
    with open(a.model, encoding="utf-8") as file:
        shape = json.load(file)
    torch.manual_seed(0)
    with torch.device(a.device):
        model = Model(shape, a.seq_len)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
    run = torch.compile(model) if a.compile else model
    half = a.dtype != "float32"

    def sync():
        if a.device == "cuda":
            torch.cuda.synchronize()

    def step():
        for _ in range(a.microbatches):
            batch = torch.randint(shape["vocab_size"], (a.samples // a.microbatches, a.seq_len + 1), device=a.device)
            with torch.autocast(a.device, dtype=getattr(torch, a.dtype), enabled=half):
                loss = run(batch[:, :-1].contiguous(), batch[:, 1:].contiguous()) / a.microbatches
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    seconds = []
    for _ in range(a.steps):
        sync()
        begin = time.perf_counter()
        step()
        sync()
        seconds.append(time.perf_counter() - begin)
    peak = torch.cuda.max_memory_allocated() if a.device == "cuda" else None
    print(json.dumps({"seconds": statistics.median(seconds[len(seconds) // 3:]), "peak_bytes": peak}))


if __name__ == "__main__":
    main()
