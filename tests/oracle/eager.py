#!/usr/bin/env python3
"""Eager PyTorch's time for a step of a job's model, to compare with: prints {"seconds": [...]} a line each time a line comes in.

usage: eager.py JOB.json THREADS STEPS        JOB.json: {"model": HuggingFace's config, "training": {...}, ...} as reference.py takes it
"""
import json
import sys
import time

import torch
from transformers import AutoModelForCausalLM, GPT2Config

import reference


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    torch.set_num_threads(int(sys.argv[2]))
    model = AutoModelForCausalLM.from_config(GPT2Config(**job["model"]), attn_implementation="sdpa")
    model.train()
    for _ in sys.stdin:
        seconds, begin = [], time.perf_counter()
        for _ in reference.train(model, job, int(sys.argv[3])):
            now = time.perf_counter()
            seconds.append(now - begin)
            begin = now
        print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
