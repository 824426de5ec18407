#include "planner/costs/roofline.h"

#include <gtest/gtest.h>

#include "tests/planner/costs/costs_fixture.h"

namespace motley::planner {
namespace {

TEST(Roofline, LargeBatchesAreBoundByTheMatrixPeak) {
  const Workload workload = WorkloadOf("llama-7b", DType::kFloat16);
  const CardKind card = KindNamed("A100-80GB");
  const Roofline roofline(card, workload, UnitKind::kLayer);
  double flops = 0;
  for (const OpCost& work : roofline.operators()) flops += work.matrix_flops();
  const double seconds = (roofline.ForwardSeconds(64) - roofline.ForwardSeconds(32)) / 32;
  EXPECT_GT(seconds, flops / (kMatrixEfficiency * card.fp16_flops));
  EXPECT_LT(seconds, 1.6 * flops / (kMatrixEfficiency * card.fp16_flops));
}

TEST(Roofline, ATinySampleIsBoundByLaunchAndWeights) {
  const Workload workload = WorkloadOf("llama-7b", DType::kFloat16, 1);
  const CardKind card = KindNamed("L4");
  const Roofline roofline(card, workload, UnitKind::kLayer);
  const double weights = 2.0 * 202375168 / (kMemoryEfficiency * card.memory_bytes_per_second);
  EXPECT_NEAR(roofline.ForwardSeconds(1), weights + roofline.forward_launch(), 0.05 * weights);
  EXPECT_LT(roofline.ForwardSeconds(4), 1.1 * roofline.ForwardSeconds(1));
}

TEST(Roofline, BackwardIsAboutTwiceForward) {
  for (const char* model : {"gpt-2.7b", "llama-13b", "bert-large"}) {
    const Roofline roofline(KindNamed("A6000"), WorkloadOf(model, DType::kFloat32), UnitKind::kLayer);
    EXPECT_NEAR(roofline.BackwardSeconds(8) / roofline.ForwardSeconds(8), 2, 0.2) << model;
  }
}

TEST(Roofline, SlowerCardsAreSlower) {
  const Workload workload = WorkloadOf("llama-7b", DType::kFloat16);
  const auto seconds = [&workload](const char* card) {
    return Roofline(KindNamed(card), workload, UnitKind::kLayer).ForwardSeconds(8);
  };
  EXPECT_LT(seconds("H200"), seconds("A100-80GB"));
  EXPECT_LT(seconds("A100-80GB"), seconds("L4"));
  EXPECT_LT(seconds("L4"), seconds("P100"));
}

TEST(Roofline, PeakFallsBackToFloat32) {
  EXPECT_TRUE(PeakOf(KindNamed("P40"), DType::kFloat16).falls_back);
  EXPECT_EQ(PeakOf(KindNamed("P40"), DType::kFloat16).flops, KindNamed("P40").fp32_flops);
  EXPECT_TRUE(PeakOf(KindNamed("V100-16GB"), DType::kBFloat16).falls_back);
  EXPECT_FALSE(PeakOf(KindNamed("A100-80GB"), DType::kBFloat16).falls_back);
  // Never tf32.
  EXPECT_EQ(PeakOf(KindNamed("A100-80GB"), DType::kFloat32).flops, 19.5e12);
}

TEST(LayerOperators, WeightsAddUpToTheLayersMatrices) {
  for (const auto& [model, elements] : {std::pair{"llama-7b", 202375168.0}, {"gpt-2.7b", 12.0 * 2560 * 2560}}) {
    double bytes = 0;
    for (const OpCost& work : OperatorsOf(WorkloadOf(model, DType::kFloat16), UnitKind::kLayer)) bytes += work.weight_bytes;
    EXPECT_NEAR(bytes, 2 * elements, 1) << model;
  }
}

TEST(LayerOperators, PairsRunTogether) {
  const FamilyTraits& llama = TraitsOf(ModelFamily::kLlama);
  const OpSet qkv = RecomputedWith(OpSet::None().With(Op::kQkv), llama);
  EXPECT_TRUE(qkv.Has(Op::kRotary));
  EXPECT_TRUE(RecomputedWith(OpSet::None().With(Op::kResidual1), llama).Has(Op::kAttnOut));
  EXPECT_EQ(RecomputedWith(OpSet::None().With(Op::kNorm1), llama), OpSet::None().With(Op::kNorm1));
  EXPECT_EQ(RecomputedWith(OpSet::All(), llama), OpSet::All());
}

}  // namespace
}  // namespace motley::planner
