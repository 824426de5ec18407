// Initial weights, each element drawn on its own: a normal number by Box and Muller's formula from two uniform ones that
// come from mixing (seed, tensor name, element). No generator state, so a rank draws exactly the range it owns.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/base/in_parallel.h"
#include "common/data/sampling.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/model/unit_model.h"

namespace motley::engine {
namespace {

constexpr int64_t kElementsOfAPiece = 1 << 16;  // 60 ns each

// In (0, 1]: the top 53 bits, and never 0, whose logarithm is infinite.
double Uniform(uint64_t bits) { return static_cast<double>((bits >> 11) + 1) * 0x1p-53; }

double NormalAt(uint64_t key, int64_t index) {
  const uint64_t counter = key + 2 * static_cast<uint64_t>(index);
  return std::sqrt(-2 * std::log(Uniform(Mix64(counter)))) * std::cos(2 * std::numbers::pi * Uniform(Mix64(counter + 1)));
}

template <typename T>
void FillTensor(const TensorSpec& tensor, int64_t seed, int64_t begin, int64_t end, T* out, int threads) {
  if (tensor.init != InitKind::kNormal) {
    std::fill(out, out + (end - begin), tensor.init == InitKind::kOnes ? T{1} : T{0});
    return;
  }
  const uint64_t key = Mix64(HashText(tensor.name) ^ Mix64(static_cast<uint64_t>(seed)));
  const auto pieces = static_cast<size_t>((end - begin + kElementsOfAPiece - 1) / kElementsOfAPiece);
  const auto draw = [&](size_t piece) {
    const int64_t from = begin + static_cast<int64_t>(piece) * kElementsOfAPiece;
    for (int64_t i = from; i < std::min(end, from + kElementsOfAPiece); ++i)
      out[i - begin] = static_cast<T>(tensor.init_std * NormalAt(key, tensor.named_element(i)));
  };
  // Not at::parallel_for: outside libtorch, which is compiled with OpenMP, it is a loop.
  InParallel(pieces, draw, static_cast<size_t>(threads));
}

}  // namespace

void InitializeRange(const UnitSpec& unit, int64_t seed, int64_t begin, int64_t end, at::Tensor& out, int threads) {
  TORCH_CHECK(out.numel() == end - begin && out.is_contiguous(), "initial values of ", end - begin, " elements into ",
              out.numel());
  AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "initialize", [&] {
    scalar_t* data = out.mutable_data_ptr<scalar_t>();
    for (const TensorSpec& tensor : unit.tensors) {
      const int64_t from = std::max(begin, tensor.offset_elements);
      const int64_t to = std::min(end, tensor.offset_elements + tensor.num_elements);
      if (from >= to) continue;
      FillTensor(tensor, seed, from - tensor.offset_elements, to - tensor.offset_elements, data + (from - begin), threads);
    }
  });
}

}  // namespace motley::engine
