#include "planner/costs/roofline.h"

#include <gtest/gtest.h>

#include "planner/costs/layer_operators.h"
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
  EXPECT_GT(seconds, flops / (card.parts.matrix * card.fp16_flops));
  EXPECT_LT(seconds, 1.6 * flops / (card.parts.matrix * card.fp16_flops));
}

TEST(Roofline, ATinySampleIsBoundByLaunchAndWeights) {
  const Workload workload = WorkloadOf("llama-7b", DType::kFloat16, 1);
  const CardKind card = KindNamed("L4");
  const Roofline roofline(card, workload, UnitKind::kLayer);
  const double weights = 2.0 * 202375168 / (kMemoryEfficiency * card.memory_bytes_per_second);
  EXPECT_NEAR(roofline.ForwardSeconds(1), weights + roofline.forward_launch(), 0.05 * weights);
  EXPECT_LT(roofline.ForwardSeconds(4), 1.1 * roofline.ForwardSeconds(1));
}

TEST(Roofline, LaunchesHideWhereTheHostGoesAheadOfACardThatWasCompared) {
  const Workload tiny = WorkloadOf("gpt2-124m", DType::kFloat16, 1);
  const CardKind card = KindNamed("H200");
  CardKind told = card;
  told.launches_ahead = false;
  const Roofline ahead(card, tiny, UnitKind::kLayer);
  EXPECT_EQ(ahead.ForwardSeconds(1), ahead.forward_launch()) << "the card waits for the host";
  EXPECT_EQ(ahead.BackwardSeconds(1), ahead.backward_launch());
  EXPECT_GT(Roofline(told, tiny, UnitKind::kLayer).ForwardSeconds(1), ahead.forward_launch());
  const Workload large = WorkloadOf("llama-7b", DType::kFloat16, 4096);
  const Roofline large_ahead(card, large, UnitKind::kLayer), large_told(told, large, UnitKind::kLayer);
  EXPECT_NEAR(large_told.ForwardSeconds(8) - large_ahead.ForwardSeconds(8), large_told.forward_launch(), 1e-9);
}

TEST(Roofline, PartsAreThoseOfTheCard) {
  CardKind card = KindNamed("RTX 4090"), fast = card;
  fast.parts.matrix = fast.parts.attention = 1;
  card.parts.matrix = card.parts.attention = 0.5;
  const auto seconds = [](const CardKind& of, DType dtype) {
    return Roofline(of, WorkloadOf("llama-7b", dtype, 2048), UnitKind::kLayer).ForwardSeconds(16);
  };
  EXPECT_NEAR(seconds(card, DType::kBFloat16) / seconds(fast, DType::kBFloat16), 1.8, 0.15);
  EXPECT_EQ(seconds(card, DType::kFloat32), seconds(fast, DType::kFloat32)) << "they are the half types'";
  CardKind slow_memory = card;
  slow_memory.parts.memory = card.parts.memory / 4;
  EXPECT_GT(seconds(slow_memory, DType::kBFloat16), 1.05 * seconds(card, DType::kBFloat16));
}

TEST(Roofline, AttentionOverAShortSequenceIsSlow) {
  const CardKind card = KindNamed("H200");
  CardKind flat = card;
  flat.parts.attention_tokens = 1e-9;  // whatever the length
  const auto ratio = [&](int64_t tokens) {
    const Workload workload = WorkloadOf("llama-7b", DType::kBFloat16, tokens);
    return Roofline(card, workload, UnitKind::kLayer).ForwardSeconds(4) /
           Roofline(flat, workload, UnitKind::kLayer).ForwardSeconds(4);
  };
  EXPECT_GT(ratio(1024), 1.02);
  EXPECT_LT(ratio(65536), 1.02) << "nearly all is attention, and a long one";
}

TEST(Roofline, TheLossPassesOverTheLogitsBesideTheHeadsProducts) {
  const Workload workload = WorkloadOf("llama-7b", DType::kBFloat16, 4096);
  const auto least = [&](const CardKind& card) {
    double seconds = 0;
    for (const OpCost& work : OperatorsOf(workload, UnitKind::kHead)) {
      if (work.op != Op::kLmHeadLoss) continue;
      seconds += work.matrix_flops() / (card.parts.matrix * card.bf16_flops) +
                 (work.activation_bytes + work.weight_bytes) / (card.parts.memory * card.memory_bytes_per_second);
    }
    return seconds;
  };
  const CardKind compared = KindNamed("H200"), other = KindNamed("A6000");
  EXPECT_GT(Roofline(compared, workload, UnitKind::kHead).ForwardSeconds(1), least(compared));
  EXPECT_LT(Roofline(other, workload, UnitKind::kHead).ForwardSeconds(1), least(other));
}

TEST(Roofline, SmallModelsPassOverMemoryMore) {
  const CardKind card = KindNamed("H200");
  EXPECT_GT(Roofline(card, WorkloadOf("gpt2-124m", DType::kBFloat16), UnitKind::kLayer).PassesPart(8),
            2 * Roofline(card, WorkloadOf("llama-65b", DType::kBFloat16), UnitKind::kLayer).PassesPart(8));
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
