#include "worker/engine/base/vector_math.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace motley::engine {
namespace {

// Kernels chosen wrongly are off by some 1e-12 in float64. It takes a busy host to see that, and the process's first such call.
TEST(VectorMathTest, TheFirstLargeArrayIsExact) {
  ChooseVectorKernels();
  const at::Tensor x = at::linspace(0.1, 3, 1 << 20, at::kDouble);
  const at::Tensor log = at::log(x), exp = at::exp(x), root = at::sqrt(x);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double at = x.data_ptr<double>()[i];
    ASSERT_NEAR(log.data_ptr<double>()[i], std::log(at), 1e-15) << at;
    ASSERT_NEAR(exp.data_ptr<double>()[i], std::exp(at), 1e-14) << at;
    ASSERT_NEAR(root.data_ptr<double>()[i], std::sqrt(at), 1e-15) << at;
  }
}

}  // namespace
}  // namespace motley::engine
