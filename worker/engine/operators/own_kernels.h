// The one place that says when kernels of our own (docs/inside/kernels.md) take what PyTorch's operators took, and how operators
// launch them (own_*.h). May throw c10::Error.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/base/dtype.h"
#include "worker/engine/kernels/kernel_launcher.h"

namespace motley::engine {

// Whether the device has kernels, and they take tensors of rows of so many columns: of one type that they are made for, without
// gaps, rows of a multiple of 8 elements, beginning at 16 bytes, something in them, and not more than one launch counts.
bool TakenByKernels(const KernelLauncher* kernels, std::initializer_list<at::Tensor> tensors, int64_t columns);
// The same of tensors whose rows, the last dimension, may lie as they like, as long as each begins at 16 bytes.
bool RowsTakenByKernels(const KernelLauncher* kernels, std::initializer_list<at::Tensor> tensors, int64_t columns);

// Of a launch of one thread a pack.
struct Packs {
  uint32_t all, of_row;
  unsigned blocks() const { return (all + kernels::kThreads - 1) / kernels::kThreads; }
};
// Of a tensor that is taken.
Packs PacksOf(const at::Tensor& tensor);

// The type that a tensor's kernel is made for. Nothing: none is.
std::optional<DType> KernelTypeOf(const at::Tensor& tensor);

// The kernel of `like`'s type.
template <typename Arguments>
void LaunchOwn(const KernelLauncher& kernels, const at::Tensor& like, unsigned blocks, const Arguments& arguments,
               unsigned shared_bytes = 0) {
  const absl::Status launched = kernels.Launch(*KernelTypeOf(like), blocks, arguments, shared_bytes);
  TORCH_CHECK(launched.ok(), std::string(launched.message()));
}

}  // namespace motley::engine
