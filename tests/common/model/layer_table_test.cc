#include "common/model/layer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/program/segment_operators.h"

namespace motley {
namespace {

using ::testing::ElementsAre;

std::vector<Op> OpsOf(ModelFamily family, bool rotary = true) {
  std::vector<Op> ops;
  for (const LayerOperator& row : LayerOperatorsOf(TraitsOf(family), rotary)) ops.push_back(row.op);
  return ops;
}

OpSet Set(std::initializer_list<Op> ops) {
  OpSet set;
  for (const Op op : ops) set = set.With(op);
  return set;
}

TEST(LayerTableTest, AFamilyHasTheRowsOfItsParts) {
  EXPECT_THAT(OpsOf(ModelFamily::kQwen3),
              ElementsAre(Op::kNorm1, Op::kQkv, Op::kHeadNorm, Op::kRotary, Op::kAttention, Op::kAttnOut, Op::kResidual1,
                          Op::kNorm2, Op::kUp, Op::kActivation, Op::kDown, Op::kResidual2));
  const auto without = [](std::vector<Op> ops, Op op) {
    std::erase(ops, op);
    return ops;
  };
  const std::vector<Op> llama = without(OpsOf(ModelFamily::kQwen3), Op::kHeadNorm);
  for (const ModelFamily family : {ModelFamily::kLlama, ModelFamily::kQwen2, ModelFamily::kPhi3, ModelFamily::kSmolLm3}) {
    EXPECT_EQ(OpsOf(family), llama);
    EXPECT_EQ(OpsOf(family, false), without(llama, Op::kRotary));
  }
  EXPECT_THAT(OpsOf(ModelFamily::kOlmo2),
              ElementsAre(Op::kQkv, Op::kHeadNorm, Op::kRotary, Op::kAttention, Op::kAttnOut, Op::kNorm1, Op::kResidual1, Op::kUp,
                          Op::kActivation, Op::kDown, Op::kNorm2, Op::kResidual2));
  EXPECT_THAT(OpsOf(ModelFamily::kGemma3),
              ElementsAre(Op::kNorm1, Op::kQkv, Op::kHeadNorm, Op::kRotary, Op::kAttention, Op::kAttnOut, Op::kBehind1,
                          Op::kResidual1, Op::kNorm2, Op::kUp, Op::kActivation, Op::kDown, Op::kBehind2, Op::kResidual2));
  EXPECT_EQ(OpsOf(ModelFamily::kGpt2), without(llama, Op::kRotary));
  EXPECT_EQ(OpsOf(ModelFamily::kQwen3, false), without(OpsOf(ModelFamily::kQwen3), Op::kRotary));
}

// Programs name operators by number, so a row's place says nothing about its number.
TEST(LayerTableTest, StoredProgramsKeepTheirNumbersAndSegmentsTheirRows) {
  EXPECT_EQ(static_cast<int>(Op::kLmHeadLoss), 13);
  EXPECT_EQ(static_cast<int>(Op::kHeadNorm), 14);
  EXPECT_EQ(static_cast<int>(Op::kBehind1), 15);
  EXPECT_EQ(static_cast<int>(Op::kBehind2), 16);
  bool attention = true;
  for (const Op op : AllLayerOps()) {
    EXPECT_EQ(RunsIn(UnitSegment::kAttention, op), attention) << OpName(op);
    EXPECT_EQ(RunsIn(UnitSegment::kMlp, op), !attention) << OpName(op);
    EXPECT_TRUE(RunsIn(UnitSegment::kWhole, op)) << OpName(op);
    if (op == Op::kResidual1) attention = false;
  }
  EXPECT_FALSE(attention);
}

// What an operator changed in place is what it read no more: it runs again behind the one that made it, and with all that
// change it.
TEST(LayerTableTest, RunningAgainClosesOverWhatIsChangedInPlace) {
  const OpSet heads = Set({Op::kQkv, Op::kHeadNorm, Op::kRotary});
  const FamilyTraits &qwen = TraitsOf(ModelFamily::kQwen3), &olmo = TraitsOf(ModelFamily::kOlmo2);
  EXPECT_EQ(RunAgainFor(Set({Op::kHeadNorm}), qwen), heads);
  EXPECT_EQ(RunAgainFor(Set({Op::kQkv}), qwen), heads);
  EXPECT_EQ(RunAgainFor(Set({Op::kQkv}), TraitsOf(ModelFamily::kLlama)), Set({Op::kQkv, Op::kRotary}));
  EXPECT_EQ(RunAgainFor(Set({Op::kRotary}), qwen), OpSet::None()) << "alone it frees nothing";
  EXPECT_EQ(RunAgainFor(Set({Op::kAttnOut}), qwen), Set({Op::kAttnOut, Op::kResidual1}));
  EXPECT_EQ(RunAgainFor(Set({Op::kNorm1, Op::kUp}), qwen), Set({Op::kNorm1, Op::kUp}));
  EXPECT_EQ(MadeBy(Set({Op::kHeadNorm}), qwen), ValueSet::Of(LayerValue::kRawHeads, LayerValue::kHeadsRstd));
  // The norm behind attention makes what the residual is added to.
  EXPECT_EQ(RunAgainFor(Set({Op::kNorm1}), olmo), Set({Op::kNorm1, Op::kResidual1}));
  EXPECT_EQ(RunAgainFor(Set({Op::kAttnOut}), olmo), Set({Op::kAttnOut}));
  EXPECT_EQ(RunAgainFor(Set({Op::kNorm2}), olmo), Set({Op::kNorm2}));
  const FamilyTraits& gemma = TraitsOf(ModelFamily::kGemma3);
  EXPECT_EQ(RunAgainFor(Set({Op::kBehind1}), gemma), Set({Op::kBehind1, Op::kResidual1}));
  EXPECT_EQ(RunAgainFor(Set({Op::kAttnOut, Op::kNorm2}), gemma), Set({Op::kAttnOut, Op::kNorm2}));
  EXPECT_EQ(RunAgainFor(Set({Op::kBehind2}), gemma), Set({Op::kBehind2}));
}

}  // namespace
}  // namespace motley
