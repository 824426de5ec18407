// Every kernel, each for bfloat16, float16 and float32. A new one has a header, its arguments and a row here.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

#include "worker/engine/kernels/kernel_arguments.h"

namespace motley::kernels {

struct KernelRow {
  std::string_view name;
  std::string_view function;  // a template of the element type, in motley::kernels
  std::string_view header;    // where it stands, in this folder
  size_t argument_bytes;
  unsigned threads;  // of a block
};

template <typename Arguments>
constexpr unsigned BlockThreadsOf() {
  if constexpr (requires { Arguments::kBlockThreads; }) return Arguments::kBlockThreads;
  return kThreads;
}

template <typename Arguments>
constexpr KernelRow Row(std::string_view function, std::string_view header) {
  return {Arguments::kKernel, function, header, sizeof(Arguments), BlockThreadsOf<Arguments>()};
}

inline constexpr KernelRow kKernels[] = {
    Row<SwiGluForwardArguments>("SwiGluForward", "gated.h"),
    Row<SwiGluBackwardArguments>("SwiGluBackward", "gated.h"),
    Row<GeGluForwardArguments>("GeGluForward", "gated.h"),
    Row<GeGluBackwardArguments>("GeGluBackward", "gated.h"),
    Row<RotaryArguments>("Rotary", "rotary.h"),
    Row<PackHeadsArguments>("PackHeads", "rotary.h"),
    Row<BiasGradientArguments>("BiasGradient", "bias_gradient.h"),
    Row<ResidualForwardArguments>("ResidualForward", "residual.h"),
    Row<NormForwardArguments>("NormForward", "norm.h"),
    Row<NormBackwardArguments>("NormBackward", "norm.h"),
    Row<NormWeightGradientsArguments>("NormWeightGradients", "norm.h"),
    Row<HeadLossArguments>("HeadLoss", "head_loss.h"),
    Row<AdamWArguments>("AdamW", "adamw.h"),
};

// The place of the row whose kernel takes them. A kernel without a row does not compile.
template <typename Arguments>
consteval size_t RowOf() {
  for (size_t row = 0; row < std::size(kKernels); ++row) {
    if (kKernels[row].name == Arguments::kKernel) return row;
  }
  throw "kernel_table.h has no row for these arguments";
}

// As common/base/dtype.h spells it, and the type of the kernels' sources.
struct KernelType {
  std::string_view name, type;
};
inline constexpr KernelType kKernelTypes[] = {{"bfloat16", "BFloat16Bits"}, {"float16", "Float16Bits"}, {"float32", "float"}};

}  // namespace motley::kernels
