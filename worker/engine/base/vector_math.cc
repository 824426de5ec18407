#include "worker/engine/base/vector_math.h"

#include <ATen/ATen.h>

#include <mutex>

namespace motley::engine {

void ChooseVectorKernels() {
  static std::once_flag chosen;
  std::call_once(chosen, [] {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor one = at::full({1}, 0.5, type);  // too small to be divided among threads
      for (at::Tensor (*function)(const at::Tensor&) :
           {&at::exp, &at::log, &at::sqrt, &at::tanh, &at::erf, &at::sin, &at::cos, &at::expm1, &at::log1p}) {
        function(one);
      }
    }
  });
}

}  // namespace motley::engine
