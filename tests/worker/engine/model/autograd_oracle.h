// For the operators' tests: random tensors, and autograd as the oracle of the explicit backward functions.
#pragma once

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <string>
#include <vector>

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {

inline double Tolerance(at::ScalarType dtype) { return dtype == at::kDouble ? 1e-10 : 1e-5; }

// Normal numbers, the same at every run.
inline at::Tensor Random(at::IntArrayRef shape, at::ScalarType dtype, double scale = 1.0) {
  static at::Generator generator = at::detail::createCPUGenerator(7);
  return at::normal(0.0, scale, shape, generator, at::TensorOptions().dtype(at::kDouble)).to(dtype);
}

inline at::Tensor Leaf(const at::Tensor& value) { return value.detach().clone().set_requires_grad(true); }

// |actual - expected| / |expected| in the Euclidean norm.
inline void ExpectNear(const at::Tensor& actual, const at::Tensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  const at::Tensor want = expected.detach().to(at::kDouble);
  const double distance = (actual.detach().to(at::kDouble) - want).norm().item<double>();
  EXPECT_LE(distance, tolerance * (want.norm().item<double>() + 1e-30)) << what;
}

inline std::vector<at::Tensor> AutogradOf(const at::Tensor& output, const std::vector<at::Tensor>& inputs,
                                          const at::Tensor& grad_output) {
  return torch::autograd::grad({output}, inputs, {grad_output});
}

// Tests that run in float64 and in float32.
class OperatorTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  at::ScalarType dtype() const { return GetParam(); }
  double tolerance() const { return Tolerance(GetParam()); }
  at::Tensor Make(at::IntArrayRef shape, double scale = 1.0) const { return Random(shape, dtype(), scale); }
};

}  // namespace motley::engine

#define MOTLEY_BOTH_DTYPES(suite)                                                     \
  INSTANTIATE_TEST_SUITE_P(Dtypes, suite, ::testing::Values(at::kDouble, at::kFloat), \
                           [](const auto& info) { return std::string(at::toString(info.param)); })
