#include "planner/costs/rank_bytes.h"

#include <gtest/gtest.h>

#include "common/model/operators.h"
#include "tests/planner/costs/costs_fixture.h"

namespace motley::planner {
namespace {

constexpr int64_t kSamples = 3, kSeqLen = 64;

Costs MakeCosts(ModelShape model, DType dtype = DType::kFloat32) {
  Workload workload = WorkloadOf("llama-7b", dtype, kSeqLen);
  workload.model = std::move(model);
  return Costs::Create(ClusterOf({"L4"}), workload, nullptr).value();
}

// Four heads of keys and values; the MLP's columns and the vocabulary cannot be divided by four.
ModelShape Shape(ModelFamily family, int64_t intermediate_size) {
  return {.family = family,
          .vocab_size = 103,
          .hidden_size = 64,
          .num_layers = 2,
          .num_heads = 8,
          .num_kv_heads = 4,
          .head_dim = 8,
          .intermediate_size = intermediate_size,
          .max_positions = kSeqLen,
          .tie_embeddings = false};
}

// Where the MLP is narrow attention is the fullest moment of the half by input, as nothing that the weights read is freed before.
TEST(RankBytesTest, AHalfByInputHoldsWhatTheWeightsWillRead) {
  for (const ModelFamily family : {ModelFamily::kGpt2, ModelFamily::kLlama}) {
    for (const int64_t columns : {67, 256}) {
      const ModelShape shape = Shape(family, columns);
      const Costs costs = MakeCosts(shape);
      const RankBytes bytes(costs, 0, {});
      const int64_t whole = bytes.Workspace(UnitKind::kLayer, kSamples);
      EXPECT_EQ(whole, costs.WorkspaceBytes(0, UnitKind::kLayer, kSamples));
      const int64_t more = bytes.BackwardInputWorkspace(UnitKind::kLayer, kSamples) - whole;
      const int64_t activated = ValueBytes(shape, LayerValue::kActivated, kSamples, kSeqLen, DType::kFloat32);
      const int64_t up = ValueBytes(shape, LayerValue::kUp, kSamples, kSeqLen, DType::kFloat32);
      EXPECT_GE(more, activated);
      EXPECT_LE(more, activated + up + 2 * costs.BoundaryBytes(kSamples));
      if (columns == 67) EXPECT_GT(more, activated + activated / 10) << "attention comes later than the MLP";
    }
  }
}

TEST(RankBytesTest, OnlyHalfTypesMakeAProductBeforeTheyAddIt) {
  const ModelShape shape = Shape(ModelFamily::kLlama, 256);
  const Costs wide = MakeCosts(shape), half = MakeCosts(shape, DType::kBFloat16);
  EXPECT_EQ(RankBytes(wide, 0, {}).BackwardWeightWorkspace(UnitKind::kLayer, kSamples), 0);
  EXPECT_EQ(RankBytes(half, 0, {}).BackwardWeightWorkspace(UnitKind::kLayer, kSamples), 2 * 64 * 256)
      << "the first product; what it has read is gone before the larger one behind it";
  EXPECT_EQ(RankBytes(half, 0, {}).BackwardWeightWorkspace(UnitKind::kHead, kSamples), 0);
}

// What the division leaves over is the last slice's, of which a share knows nothing.
TEST(RankBytesTest, SlicesHaveTheirColumns) {
  const ModelShape shape = Shape(ModelFamily::kLlama, 67);
  const Costs costs = MakeCosts(shape);
  const RankBytes first(costs, 0, {0, 1, 4}), last(costs, 0, {3, 4, 4});
  const int64_t rows = kSamples * kSeqLen * 4;  // of one column
  EXPECT_EQ(last.Saved(UnitKind::kLayer, OpSet::None(), kSamples) - first.Saved(UnitKind::kLayer, OpSet::None(), kSamples),
            3 * 3 * rows);
  EXPECT_EQ(last.Waiting(UnitKind::kLayer, kSamples) - first.Waiting(UnitKind::kLayer, kSamples), 3 * 3 * rows);
  EXPECT_EQ(last.Elements(UnitKind::kLayer) - first.Elements(UnitKind::kLayer), 3 * 3 * 64);
  EXPECT_EQ(last.Elements(UnitKind::kHead) - first.Elements(UnitKind::kHead), 3 * 64);
  const auto fullest = [&](const RankBytes& bytes) {
    return bytes.Saved(UnitKind::kLayer, OpSet::None(), kSamples) + bytes.Workspace(UnitKind::kLayer, kSamples);
  };
  EXPECT_GE(fullest(last), fullest(first));
  EXPECT_LT(fullest(last), fullest(RankBytes(costs, 0, {})));
  // A head's norm is not divided, however small its part of the vocabulary.
  const int64_t less = costs.WorkspaceBytes(0, UnitKind::kHead, kSamples) - first.Workspace(UnitKind::kHead, kSamples);
  EXPECT_LT(less, rows * (103 - 25));
}

}  // namespace
}  // namespace motley::planner
