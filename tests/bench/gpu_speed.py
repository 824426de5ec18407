"""How fast one card is: kernels beside a copy, steps with kernels of our own and without, attention by cuDNN and by flash, PyTorch
beside, and where the time of a step goes. Parts are short, and the ones whose failure says most come first."""
import os
import re

GPT2 = {"family": "gpt2", "vocab_size": 50257}
SMALL = {**GPT2, "hidden_size": 768, "num_layers": 12, "num_heads": 12, "num_kv_heads": 12, "intermediate_size": 3072}
LARGE = {**GPT2, "hidden_size": 1600, "num_layers": 48, "num_heads": 25, "num_kv_heads": 25, "intermediate_size": 6400}
# 8 layers stand for 8B: with float32 masters, moments and gradients the whole does not fit one card.
LLAMA = {"family": "llama3", "vocab_size": 128256, "hidden_size": 4096, "num_layers": 8, "num_heads": 32, "num_kv_heads": 8,
         "intermediate_size": 14336}
# name: (flavor, shape for the baseline, sequence length, samples a step, microbatches, layers or 0)
STEPS = {
    "gpt2-124M": ("gpt2:124M", SMALL, 1024, 32, 2, 0),
    "gpt2-1.5B": ("gpt2:1.5B", LARGE, 1024, 16, 4, 0),
    "llama3-8B-8-layers": ("llama3:8B", LLAMA, 1024, 16, 2, 8),
    "gpt2-1.5B-in-one": ("gpt2:1.5B", LARGE, 1024, 16, 1, 0),
}
LARGE_STEPS = {
    "llama3-8B-8-layers-64-samples": ("llama3:8B", LLAMA, 1024, 64, 8, 8),
    "llama3-8B-8-layers-8192-tokens": ("llama3:8B", LLAMA, 8192, 8, 8, 8),
    "gpt2-1.5B-128-samples": ("gpt2:1.5B", LARGE, 1024, 128, 8, 0),
}
BESIDE = (("gpt2-124M", True), ("gpt2-124M", False), ("llama3-8B-8-layers", True), ("llama3-8B-8-layers", False),
          ("gpt2-1.5B", True), ("gpt2-1.5B", False))  # compiled or eager
# The first that a kernel's name matches.
CLASSES = (("kernels of our own", "motley::kernels"), ("attention", "flash|fmha|sdpa|attention|cudnn"),
           ("products", "gemm|nvjet|cutlass|xmma|splitK|cublas"), ("copies", "Memcpy|Memset"))


def by_class(rows):
    """Of a recorded step's rows: milliseconds and launches by class, and the longest of what belongs to none."""
    sums, others = {}, []
    for row, milliseconds in rows.items():
        found = re.match(r"kernel ([0-9.e+]+) x (.*)", row)
        if not found:
            continue
        launches, name = float(found[1]), found[2]
        kind = next((kind for kind, pattern in CLASSES if re.search(pattern, name)), "others")
        before = sums.get(kind, [0, 0])
        sums[kind] = [before[0] + milliseconds, before[1] + launches]
        if kind == "others":
            others.append((milliseconds, name[:120]))
    return {"ms and launches a step": {kind: [round(value, 2) for value in both] for kind, both in sums.items()},
            "others": [[round(value, 2), name] for value, name in sorted(others, reverse=True)[:12]]}


class Speed:
    def __init__(self, bench):
        self.bench, self.args = bench, bench.args
        if self.args.device == "cuda":
            self.args.steps = {**STEPS, **LARGE_STEPS}

    def tests(self, names):
        return {"tests": self.bench.program("engine_tests", f"--gtest_filter={names}", "--gtest_brief=1").strip().splitlines()[-1]}

    def attention(self, *options):
        return self.bench.rows("--only", "attention", "--dtype", self.bench.dtype(), *options)

    def recorded(self, name, kernels=True):
        measure = self.bench.motley if kernels else self.bench.motley_without_kernels
        rows = measure(name, "--recorded", "yes")
        with open(os.path.join(self.args.work, f"recorded-{name}-{'with' if kernels else 'without'}.txt"), "w", encoding="utf-8") as file:
            file.writelines(f"{value:9.4f} {row}\n" for row, value in rows.items())
        return by_class(rows)

    def parts(self):
        """Names and what to call."""
        yield "tests of kernels", lambda: self.tests("*CardKernelsTest*:*CardOwnNormsTest*")
        yield "tests", lambda: self.tests("*Card*Test.*-FakeCard*:*CardKernelsTest*:*CardOwnNormsTest*:*RandomCardPlansTest*")
        yield "kernels", self.bench.kernels
        steps = list(STEPS) if self.args.device == "cuda" else list(self.args.steps)
        for name in steps:
            yield f"{name} motley", lambda name=name: self.bench.motley(name)
            yield f"{name} motley without kernels", lambda name=name: self.bench.motley_without_kernels(name)
            yield f"{name} recorded", lambda name=name: self.recorded(name)
        yield f"{steps[0]} recorded without kernels", lambda: self.recorded(steps[0], kernels=False)
        yield "attention", self.attention
        yield "attention without cuDNN", lambda: self.attention("--without-cudnn", "yes")
        for name, compiled in BESIDE if self.args.device == "cuda" else [(name, False) for name in steps]:
            yield f"{name} {'compiled' if compiled else 'eager'}", lambda name=name, compiled=compiled: self.bench.baseline(name, compiled)
        for name in LARGE_STEPS if self.args.device == "cuda" else ():
            yield f"{name} motley", lambda name=name: self.bench.motley(name)
        yield "random plans", lambda: self.tests("*RandomCardPlansTest*")
