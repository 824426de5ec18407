#include "worker/engine/operators/own_kernels.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {
namespace {

// Nothing: no kernel is made for it.
std::optional<DType> TypeOf(const at::Tensor& tensor) {
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

constexpr int64_t kColumnsAtOnce = 8;
// A thread a pack, whose number has 32 bits.
constexpr int64_t kMostPacks = std::numeric_limits<uint32_t>::max() - kernels::kThreads;

// Of a launch of one thread a pack.
struct Packs {
  uint32_t all, of_row;
  unsigned blocks() const { return (all + kernels::kThreads - 1) / kernels::kThreads; }
};
Packs PacksOf(const at::Tensor& tensor) {
  const auto elements = static_cast<int64_t>(kernels::kPackBytes / tensor.element_size());
  return {static_cast<uint32_t>(tensor.numel() / elements), static_cast<uint32_t>(tensor.size(-1) / elements)};
}

void Check(const absl::Status& status) { TORCH_CHECK(status.ok(), std::string(status.message())); }

}  // namespace

bool TakenByKernels(const KernelLauncher* kernels, std::initializer_list<at::Tensor> tensors, int64_t columns) {
  if (kernels == nullptr || columns % kColumnsAtOnce != 0) return false;
  for (const at::Tensor& tensor : tensors) {
    if (!TypeOf(tensor) || tensor.scalar_type() != tensors.begin()->scalar_type() || !tensor.is_contiguous()) return false;
    if (tensor.numel() == 0 || tensor.numel() * tensor.element_size() / kernels::kPackBytes > kMostPacks) return false;
    if (reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % kernels::kPackBytes != 0) return false;
  }
  return true;
}

at::Tensor OwnSwiGluForward(const KernelLauncher& kernels, const at::Tensor& input) {
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes.back() /= 2;
  at::Tensor output = at::empty(sizes, input.options());
  const Packs packs = PacksOf(output);
  const kernels::SwiGluForwardArguments arguments = {input.const_data_ptr(), output.mutable_data_ptr(), packs.all, packs.of_row};
  Check(kernels.Launch(*TypeOf(input), packs.blocks(), arguments));
  return output;
}

at::Tensor OwnSwiGluBackward(const KernelLauncher& kernels, const at::Tensor& grad_output, const at::Tensor& input) {
  at::Tensor grad_input = at::empty_like(input, at::MemoryFormat::Contiguous);
  const Packs packs = PacksOf(grad_output);
  const kernels::SwiGluBackwardArguments arguments = {grad_output.const_data_ptr(), input.const_data_ptr(),
                                                      grad_input.mutable_data_ptr(), packs.all, packs.of_row};
  Check(kernels.Launch(*TypeOf(input), packs.blocks(), arguments));
  return grad_input;
}

}  // namespace motley::engine
