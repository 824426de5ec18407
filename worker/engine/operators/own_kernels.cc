#include "worker/engine/operators/own_kernels.h"

#include <algorithm>
#include <limits>

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {
namespace {

constexpr int64_t kColumnsAtOnce = 8;
// A thread a pack, whose number has 32 bits.
constexpr int64_t kMostPacks = std::numeric_limits<uint32_t>::max() - kernels::kThreads;

// Whether each row has its elements side by side and begins where packs begin.
bool RowsBeginAtPacks(const at::Tensor& tensor) {
  for (int64_t dim = 0; dim < tensor.dim() - 1; ++dim) {
    if (tensor.size(dim) > 1 && tensor.stride(dim) % kColumnsAtOnce != 0) return false;
  }
  return tensor.stride(-1) == 1;
}

}  // namespace

std::optional<DType> KernelTypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kBFloat16:
      return DType::kBFloat16;
    case at::kHalf:
      return DType::kFloat16;
    case at::kFloat:
      return DType::kFloat32;
    default:
      return std::nullopt;
  }
}

Packs PacksOf(const at::Tensor& tensor) {
  const auto elements = static_cast<int64_t>(kernels::kPackBytes / tensor.element_size());
  return {static_cast<uint32_t>(tensor.numel() / elements), static_cast<uint32_t>(tensor.size(-1) / elements)};
}

bool TakenByKernels(const KernelLauncher* kernels, std::initializer_list<at::Tensor> tensors, int64_t columns) {
  return RowsTakenByKernels(kernels, tensors, columns) &&
         std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) { return tensor.is_contiguous(); });
}

bool RowsTakenByKernels(const KernelLauncher* kernels, std::initializer_list<at::Tensor> tensors, int64_t columns) {
  if (kernels == nullptr || columns % kColumnsAtOnce != 0) return false;
  for (const at::Tensor& tensor : tensors) {
    if (!KernelTypeOf(tensor) || tensor.scalar_type() != tensors.begin()->scalar_type() || tensor.dim() == 0) return false;
    if (tensor.numel() == 0 || tensor.numel() * tensor.element_size() / kernels::kPackBytes > kMostPacks) return false;
    if (reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % kernels::kPackBytes != 0 || !RowsBeginAtPacks(tensor))
      return false;
  }
  return true;
}

}  // namespace motley::engine
