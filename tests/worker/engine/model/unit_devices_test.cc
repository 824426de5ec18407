// Every tensor that a unit makes is on the device of its arguments, and nothing is read back: on PyTorch's device without memory
// ("meta") an operator that is given tensors of two devices fails, and so does a look at a value. What a card would say, said by
// any machine.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <array>
#include <initializer_list>
#include <optional>
#include <tuple>
#include <vector>

#include "tests/worker/engine/equivalence/tiny_job.h"
#include "worker/engine/model/optimizer.h"
#include "worker/engine/model/unit_bench.h"

namespace motley::engine {
namespace {

const c10::Device kNowhere(c10::kMeta);
constexpr int64_t kTokens = 16;

// ---- operators for which libtorch has no kernel there: shapes alone ----

void ExpectNowhere(std::initializer_list<at::Tensor> tensors) {
  for (const at::Tensor& tensor : tensors) TORCH_CHECK(!tensor.defined() || tensor.is_meta(), "a tensor is on ", tensor.device());
}

at::Tensor IndexSelect(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  ExpectNowhere({self, index});
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes[dim] = index.numel();
  return at::empty(sizes, self.options());
}

at::Tensor& Abs(const at::Tensor& self, at::Tensor& out) {
  ExpectNowhere({self, out});
  return out;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> LayerNorm(const at::Tensor& input, at::IntArrayRef,
                                                         const std::optional<at::Tensor>& weight,
                                                         const std::optional<at::Tensor>& bias, double) {
  ExpectNowhere({input, weight.value_or(at::Tensor()), bias.value_or(at::Tensor())});
  std::vector<int64_t> rows = input.sizes().vec();
  rows.back() = 1;
  const at::Tensor statistic = at::empty(rows, input.options().dtype(at::kFloat));
  return {at::empty_like(input), statistic, statistic};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> LayerNormBackward(const at::Tensor& grad, const at::Tensor& input, at::IntArrayRef,
                                                                 const at::Tensor& mean, const at::Tensor& rstd,
                                                                 const std::optional<at::Tensor>& weight,
                                                                 const std::optional<at::Tensor>& bias, std::array<bool, 3>) {
  ExpectNowhere({grad, input, mean, rstd, *weight, *bias});
  return {at::empty_like(input), at::empty_like(*weight), at::empty_like(*bias)};
}

TORCH_LIBRARY_IMPL(aten, Meta, library) {
  library.impl("index_select", IndexSelect);
  library.impl("abs.out", Abs);
  library.impl("native_layer_norm", LayerNorm);
  library.impl("native_layer_norm_backward", LayerNormBackward);
}

class UnitDevicesTest : public testing::TestWithParam<std::tuple<ModelFamily, DType>> {};

TEST_P(UnitDevicesTest, AUnitStaysOnItsDevice) {
  const auto [family, compute] = GetParam();
  const ModelShape shape = MakeTinyJob(family, kTinySizes[0], compute, "").model;
  const Precision precision{.master = DType::kFloat32, .compute = compute};
  UnitModel model(shape, kTokens, compute, kNowhere);
  for (const UnitKind kind : {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kHead}) {
    UnitBench unit(model, shape, kTokens, precision, kNowhere, kind);
    unit.Prepare(2);
    ASSERT_NO_THROW(unit.Forward()) << static_cast<int>(kind);
    ASSERT_NO_THROW(unit.Backward()) << static_cast<int>(kind);
    unit.Prepare(2);
    unit.Forward();
    ASSERT_NO_THROW(unit.BackwardInput()) << static_cast<int>(kind);
    ASSERT_NO_THROW(unit.BackwardWeight()) << static_cast<int>(kind);
  }
}

TEST(UnitDevices, ANormStaysOnItsDevice) {
  EXPECT_TRUE(SquaredNorm(at::empty({8}, at::TensorOptions().device(kNowhere))).is_meta());
}

// That the test sees what it is for.
TEST(UnitDevices, TablesOnTheHostAreFound) {
  const ModelShape shape = MakeTinyJob(ModelFamily::kLlama, kTinySizes[0], DType::kFloat32, "").model;
  UnitModel model(shape, kTokens, DType::kFloat32, c10::kCPU);
  UnitBench layer(model, shape, kTokens, Precision(), kNowhere, UnitKind::kLayer);
  layer.Prepare(2);
  EXPECT_THROW(layer.Forward(), c10::Error);
}

INSTANTIATE_TEST_SUITE_P(All, UnitDevicesTest,
                         testing::Combine(testing::Values(ModelFamily::kGpt2, ModelFamily::kLlama),
                                          testing::Values(DType::kFloat32, DType::kBFloat16)));

}  // namespace
}  // namespace motley::engine
