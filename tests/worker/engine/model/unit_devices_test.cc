// Every tensor that a unit makes is on the device of its arguments, and nothing is read back: on PyTorch's device without memory
// ("meta") an operator that is given tensors of two devices fails, and so does a look at a value. What a card would say, said by
// any machine.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <tuple>

#include "tests/worker/engine/equivalence/tiny_job.h"
#include "tests/worker/engine/model/meta_kernels.h"
#include "worker/engine/model/optimizer.h"
#include "worker/engine/model/unit_bench.h"

namespace motley::engine {
namespace {

constexpr int64_t kTokens = 16;

class UnitDevicesTest : public testing::TestWithParam<std::tuple<ModelFamily, DType>> {
  MetaKernels kernels_;
};

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
