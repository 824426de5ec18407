// AdamW: Loshchilov & Hutter, Decoupled Weight Decay Regularization (ICLR'19), algorithm 2.
#include "worker/engine/model/optimizer.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "common/base/in_parallel.h"
#include "worker/engine/base/torch_pch.h"

namespace motley::engine {
namespace {

// Of a device that is not the host. linalg_vector_norm would make a copy in float64 first.
at::Tensor SquaredNormByOperators(const at::Tensor& gradient) {
  return at::_foreach_norm({gradient}, 2, at::kDouble)[0].square();
}

// Several sums side by side: each addition waits for the one before it.
template <typename T>
double SumOfSquares(std::span<const T> values) {
  std::array<double, 8> sums{};
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<double>(values[i]);
    sums[i % sums.size()] += value * value;
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// Pieces, not threads, decide the order of the sum. Not at::parallel_for: outside libtorch, which is compiled with OpenMP, it is
// a loop.
at::Tensor SquaredNormOnHost(const at::Tensor& gradient) {
  constexpr size_t kPieceElements = size_t{1} << 18;
  const auto elements = static_cast<size_t>(gradient.numel());
  std::vector<double> sums((elements + kPieceElements - 1) / kPieceElements);
  AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "squared_norm", [&] {
    const std::span<const scalar_t> all(gradient.const_data_ptr<scalar_t>(), elements);
    const auto sum = [&](size_t i) {
      const size_t begin = i * kPieceElements;
      sums[i] = SumOfSquares(all.subspan(begin, std::min(kPieceElements, elements - begin)));
    };
    InParallel(sums.size(), sum, static_cast<size_t>(at::get_num_threads()));
  });
  return at::scalar_tensor(std::accumulate(sums.begin(), sums.end(), 0.0), at::kDouble);
}

}  // namespace

double ClipCoefficient(double norm, double max_norm) { return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0; }

at::Tensor SquaredNorm(const at::Tensor& gradient) {
  return gradient.is_cpu() ? SquaredNormOnHost(gradient) : SquaredNormByOperators(gradient);
}

std::vector<DecayRun> DecayRunsOf(const OptimizerSection& options, const UnitSpec& unit, int64_t begin, int64_t end) {
  std::vector<DecayRun> runs;
  for (const TensorSpec& tensor : unit.tensors) {
    const int64_t from = std::max(begin, tensor.offset_elements);
    const int64_t to = std::min(end, tensor.offset_elements + tensor.num_elements);
    if (from >= to) continue;
    const bool decayed = options.decay == "all" || tensor.shape.size() > 1;
    if (!runs.empty() && runs.back().decayed == decayed) {
      runs.back().end = to - begin;
    } else {
      runs.push_back({from - begin, to - begin, decayed});
    }
  }
  return runs;
}

void AdamWStep(const OptimizerSection& options, double lr, int64_t step, double clip, const AdamWRange& range,
               const KernelLauncher* kernels) {
  if (AdamWTakenByKernels(kernels, range)) {
    const auto steps = static_cast<double>(step);
    const AdamWFactors factors = {.clip = clip,
                                  .decay = lr * options.weight_decay,
                                  .beta1 = options.beta1,
                                  .beta2 = options.beta2,
                                  .step = lr / (1 - std::pow(options.beta1, steps)),
                                  .root2 = std::sqrt(1 - std::pow(options.beta2, steps)),
                                  .eps = options.eps};
    OwnAdamW(*kernels, factors, range);
    return;
  }
  // The operator's own scale of gradients is a float32, which would show in float64.
  if (clip != 1) range.gradient.mul_(clip);
  const at::Tensor steps = at::full({}, static_cast<double>(step), range.parameter.options().dtype(at::kFloat));
  at::TensorList none;
  at::_fused_adamw_(range.parameter, range.gradient, range.exp_avg, range.exp_avg_sq, none, steps, lr, options.beta1,
                    options.beta2, options.weight_decay, options.eps, /*amsgrad=*/false, /*maximize=*/false);
  if (range.cast.defined()) range.cast.copy_(range.parameter);
  if (range.zeroes_gradient) range.gradient.zero_();
}

}  // namespace motley::engine
