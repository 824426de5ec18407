// AdamW: Loshchilov & Hutter, Decoupled Weight Decay Regularization (ICLR'19), algorithm 2, in the order of operations of
// torch.optim.AdamW's single-tensor path, so that rounding agrees too.
#include "worker/engine/model/optimizer.h"

#include <algorithm>
#include <cmath>

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {
namespace {

constexpr int64_t kGrainElements = 32768;

template <typename T>
void Update(const OptimizerSection& options, double lr, int64_t step, double clip, int64_t count, const T* gradient, T* parameter,
            T* exp_avg, T* exp_avg_sq) {
  const double correction1 = 1 - std::pow(options.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(options.beta2, static_cast<double>(step));
  const T step_size = static_cast<T>(lr / correction1), root2 = static_cast<T>(std::sqrt(correction2));
  const T keep = static_cast<T>(1 - lr * options.weight_decay), eps = static_cast<T>(options.eps), scale = static_cast<T>(clip);
  const T weight1 = static_cast<T>(1 - options.beta1), beta2 = static_cast<T>(options.beta2),
          weight2 = static_cast<T>(1 - options.beta2);
  at::parallel_for(0, count, kGrainElements, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T g = gradient[i] * scale;
      const T m = exp_avg[i] + weight1 * (g - exp_avg[i]);
      const T v = exp_avg_sq[i] * beta2 + weight2 * g * g;
      exp_avg[i] = m;
      exp_avg_sq[i] = v;
      parameter[i] = parameter[i] * keep - step_size * (m / (std::sqrt(v) / root2 + eps));
    }
  });
}

// The operator makes a copy in float64 first: of a piece, not of the whole.
at::Tensor SquaredNormInPieces(const at::Tensor& gradient) {
  constexpr int64_t kPieceElements = int64_t{4} << 20;
  at::Tensor sum = at::zeros({}, gradient.options().dtype(at::kDouble));
  for (const at::Tensor& piece : gradient.split(kPieceElements)) {
    sum.add_(at::linalg_vector_norm(piece, 2, std::nullopt, /*keepdim=*/false, at::kDouble).square_());
  }
  return sum;
}

}  // namespace

double ClipCoefficient(double norm, double max_norm) { return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0; }

at::Tensor SquaredNorm(const at::Tensor& gradient) {
  if (!gradient.is_cpu()) return SquaredNormInPieces(gradient);
  double sum = 0;
  AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "squared_norm", [&] {
    const scalar_t* data = gradient.const_data_ptr<scalar_t>();
    for (int64_t i = 0, n = gradient.numel(); i < n; ++i) sum += static_cast<double>(data[i]) * static_cast<double>(data[i]);
  });
  return at::scalar_tensor(sum, at::kDouble);
}

void AdamWStep(const OptimizerSection& options, double lr, int64_t step, double clip, at::Tensor& gradient, at::Tensor& parameter,
               at::Tensor& exp_avg, at::Tensor& exp_avg_sq) {
  if (!parameter.is_cpu()) {
    FusedAdamWStep(options, lr, step, clip, gradient, parameter, exp_avg, exp_avg_sq);
    return;
  }
  AT_DISPATCH_FLOATING_TYPES(parameter.scalar_type(), "adamw", [&] {
    Update<scalar_t>(options, lr, step, clip, parameter.numel(), gradient.const_data_ptr<scalar_t>(),
                     parameter.mutable_data_ptr<scalar_t>(), exp_avg.mutable_data_ptr<scalar_t>(),
                     exp_avg_sq.mutable_data_ptr<scalar_t>());
  });
}

void FusedAdamWStep(const OptimizerSection& options, double lr, int64_t step, double clip, at::Tensor& gradient,
                    at::Tensor& parameter, at::Tensor& exp_avg, at::Tensor& exp_avg_sq) {
  // Its own scale of gradients is a float32, which would show in float64.
  if (clip != 1) gradient.mul_(clip);
  const at::Tensor steps = at::full({}, static_cast<double>(step), parameter.options().dtype(at::kFloat));
  at::TensorList none;
  at::_fused_adamw_(parameter, gradient, exp_avg, exp_avg_sq, none, steps, lr, options.beta1, options.beta2, options.weight_decay,
                    options.eps, /*amsgrad=*/false, /*maximize=*/false);
}

}  // namespace motley::engine
