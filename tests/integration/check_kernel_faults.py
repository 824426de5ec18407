#!/usr/bin/env python3
"""Kernels that are wrong fail their tests: each fault below is planted into a copy of its header, and the tests of kernels are compiled
against it. Prints "ok NAME" or "FAIL NAME: why". A new kernel has its rows here: an index, a tail, and a barrier where it has one.
"""
import concurrent.futures
import os
import subprocess
import tempfile

from harness import ROOT, Results, expect

KERNELS, TESTS = "worker/engine/kernels", "tests/worker/engine/kernels"
FLAGS = ["-std=c++20", "-O0", "-w"]
AT_ONCE = min(4, os.cpu_count() or 1)

# Name, header, its test, what stands there, what stands there instead.
FAULTS = [
    ("a pack that the last row lacks", "gated.h", "gated_kernel_test", "if (at >= arguments.packs) return;", "if (at + 1 >= arguments.packs) return;"),
    ("threads beyond the last pack", "gated.h", "gated_kernel_test", "if (at >= arguments.packs) return;",
     "if (arguments.packs == 0 || at >= arguments.packs + 8) return;"),
    ("up where the row before has it", "gated.h", "gated_kernel_test", "return {narrow, gate, gate + columns};", "return {narrow, gate, narrow + columns};"),
    ("places of 32 bits", "gated.h", "gated_kernel_test", "const int64_t gate = narrow + int64_t{pack / packs_of_row} * columns;",
     "const int64_t gate = static_cast<int>(narrow + int64_t{pack / packs_of_row} * columns);"),
    ("a product that is not rounded between", "gated.h", "gated_kernel_test", "Rounded<T>(Gate::Value(Wide(gate.of[k])))", "Gate::Value(Wide(gate.of[k]))"),
    ("a gradient that is not rounded between", "gated.h", "gated_kernel_test", "Rounded<T>(dy * Wide(up.of[k]))", "(dy * Wide(up.of[k]))"),
    ("gradients that change places", "gated.h", "gated_kernel_test", "Store(grad_input + place.gate, grad_gate);", "Store(grad_input + place.gate, grad_up);"),
    ("another slope of GELU", "gated.h", "gated_kernel_test", "1 + 3 * kKappa * square", "1 + kKappa * square"),
    ("angles of the position before", "rotary.h", "rotary_kernel_test", "(row % arguments.table_rows)", "((row + arguments.table_rows - 1) % arguments.table_rows)"),
    ("a head that the last row lacks", "rotary.h", "rotary_kernel_test", "if (at >= arguments.packs) return;", "if (at + 1 >= arguments.packs) return;"),
    ("threads beyond the last head", "rotary.h", "rotary_kernel_test", "if (at >= arguments.packs) return;",
     "if (arguments.packs == 0 || at >= arguments.packs + 8) return;"),
    ("heads that lie where those of 32 bits do", "rotary.h", "rotary_kernel_test", "int64_t{of_all_rows} * 2 * half", "static_cast<int>(int64_t{of_all_rows} * 2 * half)"),
    ("gradients turned forward", "rotary.h", "rotary_kernel_test", "-1);", "1);"),
    ("values that are turned, too", "rotary.h", "rotary_kernel_test", "if (is_turned) {", "if (true) {"),
    ("keys of the first head alone", "rotary.h", "rotary_kernel_test", "is_turned ? head - heads : head - turned", "is_turned ? 0 : head - turned"),
    ("a turn that is not rounded between", "rotary.h", "rotary_kernel_test", "Rounded<T>(b * c)", "(b * c)"),
    ("sums before all threads have theirs", "bias_gradient.h", "bias_gradient_kernel_test", "  __syncthreads();\n", ""),
    ("a row that the last part lacks", "bias_gradient.h", "bias_gradient_kernel_test", "row < end; row += kSumRows", "row + 1 < end; row += kSumRows"),
    ("columns beyond the last", "bias_gradient.h", "bias_gradient_kernel_test", "if (mine >= kColumns || first_column + mine >= arguments.columns) return;",
     "if (mine >= kColumns) return;"),
    ("a part where the first one is", "bias_gradient.h", "bias_gradient_kernel_test", "const uint32_t begin = part * arguments.rows_of_part;", "const uint32_t begin = 0;"),
    ("a gradient that is not added to", "bias_gradient.h", "bias_gradient_kernel_test", "arguments.adds != 0 ? *output + sum : sum", "sum"),
    ("a row that the last block lacks", "norm.h", "norm_kernel_test", "of.team < of.teams() && row < arguments.rows", "of.team < of.teams() && row + 1 < arguments.rows"),
    ("the end of a wide row", "norm.h", "norm_kernel_test", "uint32_t pack = of.lane + kNormHeld * of.threads; pack < packs; pack += of.threads) {\n    body(",
     "uint32_t pack = of.lane + (kNormHeld + 1) * of.threads; pack < packs; pack += of.threads) {\n    body("),
    ("rows at places of 32 bits", "norm.h", "norm_kernel_test", "mine ? row * packs * Pack<T>::kElements : 0",
     "mine ? static_cast<int>(row * packs * Pack<T>::kElements) : 0"),
    ("scratch at places of 32 bits", "norm.h", "norm_kernel_test", "arguments.partial + int64_t{blockIdx.x} * numbers",
     "arguments.partial + static_cast<int>(blockIdx.x * numbers)"),
    ("a row's mean before all its warps gave theirs", "norm.h", "norm_kernel_test", "] = of_warp;\n    __syncthreads();", "] = of_warp;"),
    ("a weight that is not 1 + w", "norm.h", "norm_kernel_test", "dy * (Wide(w.of[k]) + weight_plus)", "dy * Wide(w.of[k])"),
    ("a team's sums that are left out", "norm.h", "norm_kernel_test", "one < teams; ++one", "one + 1 < teams; ++one"),
    ("sums of other columns", "norm.h", "norm_kernel_test", "four / packs * 4 + in_part % 4", "in_part % 4"),
    ("a row's sums before all warps gave theirs", "norm.h", "norm_kernel_test", "__syncthreads();\n    if (!mine) continue;", "if (!mine) continue;"),
    ("a block's sums before all teams have theirs", "norm.h", "norm_kernel_test", "if (arguments.sums_in_shared == 0) return;\n  __syncthreads();",
     "if (arguments.sums_in_shared == 0) return;"),
    ("all blocks' sums before all warps have theirs", "norm.h", "norm_kernel_test", "of_warps[threadIdx.x] = sum;\n  __syncthreads();",
     "of_warps[threadIdx.x] = sum;"),
    ("a carried gradient that is not there at the end of a wide row", "norm.h", "norm_kernel_test", "carried == nullptr ? Pack<T>{} : Load(carried + at)", "Pack<T>{}"),
    ("a row that begins where another one does", "head_loss.h", "head_loss_kernel_test", "int64_t{blockIdx.x} * arguments.columns, target",
     "int64_t{blockIdx.x} * arguments.words, target"),
    ("rows of 32 bits", "head_loss.h", "head_loss_kernel_test", "const int64_t first = int64_t{blockIdx.x} * arguments.columns, target",
     "const int64_t first = static_cast<int>(blockIdx.x * arguments.columns), target"),
    ("the end of a row that is not summed", "head_loss.h", "head_loss_kernel_test", "if (at + i * apart < columns) some",
     "if (at + i * apart + 32 < columns) some"),
    ("the end of a row that has no gradient", "head_loss.h", "head_loss_kernel_test", "mine + (arguments.columns - 1 - mine) / apart * apart",
     "mine + (arguments.columns - 1 - mine) / apart * apart - apart"),
    ("blocks behind the last row", "head_loss.h", "head_loss_kernel_test", "if (blockIdx.x >= arguments.rows) return;",
     "if (arguments.rows == 0) return;"),
    ("warps that do not wait for the others", "head_loss.h", "head_loss_kernel_test", "  __syncthreads();\n", ""),
    ("a target's logit that is read when the gradient may stand there", "head_loss.h", "head_loss_kernel_test", "(of_target - all.greatest)",
     "((is_word ? Wide(row[target]) : of_target) - all.greatest)"),
    ("a target that is no word", "head_loss.h", "head_loss_kernel_test", "target >= 0 && target < int64_t{arguments.words}", "target >= 0"),
    ("exponentials of what is not -inf less -inf", "head_loss.h", "head_loss_kernel_test", "greatest == -Infinity() ? 0 : greatest", "greatest"),
    ("a gradient without its target", "head_loss.h", "head_loss_kernel_test", "k == of_word ? softmax - 1 : softmax", "softmax"),
    ("elements that the last thread lacks", "adamw.h", "adamw_kernel_test", "if (at >= arguments.elements) return;",
     "if (at + 3 >= arguments.elements) return;"),
    ("elements behind the range", "adamw.h", "adamw_kernel_test", "left < AdamWArguments::kTogether ? static_cast<int>(left) : AdamWArguments::kTogether",
     "AdamWArguments::kTogether"),
    ("elements before the range", "adamw.h", "adamw_kernel_test", "at < 0 ? static_cast<int>(-at) : 0", "0"),
    ("packs that are not aligned", "adamw.h", "adamw_kernel_test", "within.whole() && reinterpret_cast<size_t>(from) % sizeof(Together<T>) == 0",
     "within.whole()"),
    ("elements of 32 bits", "adamw.h", "adamw_kernel_test", "const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * AdamWArguments::kTogether - lead;",
     "const int64_t at = static_cast<int>((blockIdx.x * kThreads + threadIdx.x) * AdamWArguments::kTogether) - lead;"),
    ("a range that begins behind its first elements", "adamw.h", "adamw_kernel_test", "kTogether - lead;", "kTogether + lead;"),
    ("a gradient that is not clipped", "adamw.h", "adamw_kernel_test", "gradient.of[k] * arguments.clip", "gradient.of[k]"),
    ("a cast of the second moment", "adamw.h", "adamw_kernel_test", "parameter.Write(cast + at, within)", "square.Write(cast + at, within)"),
    ("a gradient that is never zero", "adamw.h", "adamw_kernel_test", "if (arguments.zero != 0)", "if (false)"),
    ("a pack of the last residual", "residual.h", "residual_kernel_test", "if (at >= arguments.packs) return;", "if (at + 1 >= arguments.packs) return;"),
    ("residuals at places of 32 bits", "residual.h", "residual_kernel_test", "const int64_t begin = int64_t{at} * Pack<T>::kElements;",
     "const int64_t begin = static_cast<int>(at * Pack<T>::kElements);"),
    ("an infinity that is no mark", "residual.h", "residual_kernel_test", "largest >= 0x7f800000u", "largest > 0x7f800000u"),
    ("a check of the last element alone", "residual.h", "residual_kernel_test", "largest = size > largest ? size : largest;", "largest = size;"),
    ("a sum over half a warp", "kernel_types.h", "emulated_card_test", "int apart = 16;", "int apart = 8;"),
    ("half types that are cut off", "kernel_types.h", "half_types_test", "(bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16", "bits >> 16"),
]


CXX = os.environ.get("CXX", "c++")
# What every test has before its kernels, compiled once, as the emulated card is.
COMMON = "".join(f"#include {header}\n" for header in
                 ("<gtest/gtest.h>", "<algorithm>", "<cmath>", "<limits>", "<memory>", "<random>", "<vector>", f'"{TESTS}/emulated_card.h"'))


def run_compiler(what, *arguments):
    done = subprocess.run([CXX, *FLAGS, *arguments], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"{what} does not compile: {done.stderr[:600]}")


class Common:
    def __init__(self, folder):
        self.header, self.card = f"{folder}/common.h", f"{folder}/emulated_card.o"
        with open(self.header, "w", encoding="utf-8") as file:
            file.write(COMMON)
        run_compiler("what tests have in common", f"-I{ROOT}", "-x", "c++-header", self.header, "-o", f"{self.header}.gch")
        run_compiler("the emulated card", f"-I{ROOT}", "-c", f"{ROOT}/{TESTS}/emulated_card.cc", "-o", self.card)

    def compiled(self, out, test, *includes):
        run_compiler(test, *(f"-I{folder}" for folder in (*includes, ROOT)), "-include", self.header, f"{ROOT}/{TESTS}/{test}.cc", self.card,
                     "-lgtest_main", "-lgtest", "-lpthread", "-o", out)
        return out


def passes(program):
    return subprocess.run([program, "--gtest_brief=1", "--gtest_fail_fast"], capture_output=True, text=True, check=False, timeout=300).returncode == 0


def is_found(common, header, test, there, instead):
    with open(f"{ROOT}/{KERNELS}/{header}", encoding="utf-8") as file:
        text = file.read()
    expect(there in text, f"{header} has no line {there}: this fault wants another one")
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/{KERNELS}")
        with open(f"{folder}/{KERNELS}/{header}", "w", encoding="utf-8") as file:
            file.write(text.replace(there, instead))
        expect(not passes(common.compiled(f"{folder}/tests", test, folder)), f"with {instead} in {header} all tests of {test} pass")


def passes_without(common, test):
    with tempfile.TemporaryDirectory() as folder:
        expect(passes(common.compiled(f"{folder}/tests", test)), f"{test} fails without a fault, too")


def main():
    results = Results("kernel faults")
    checks = [(f"without a fault {test} passes", passes_without, (test,)) for test in sorted({fault[2] for fault in FAULTS})]
    checks += [(f"{name} ({header})", is_found, (header, *rest)) for name, header, *rest in FAULTS]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        common = Common(folder)
        begun = [(name, pool.submit(check, common, *arguments)) for name, check, arguments in checks]
        for name, running in begun:
            results.run(name, running.result)
    results.exit()


if __name__ == "__main__":
    main()
