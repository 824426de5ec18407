#include "worker/engine/model/instruction_flops.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/model/layer_table.h"

namespace motley::engine {
namespace {

class InstructionFlopsTest : public testing::Test {
 protected:
  InstructionFlopsTest() {
    program_.num_units = static_cast<int32_t>(model_.num_layers) + 2;
    program_.microbatches.push_back({.samples = 3});
  }
  InstructionFlops Flops() const { return {model_, slice_, 64, program_, owned_}; }
  double Of(const Operation& op) const { return Flops().Of(op).value_or(-1); }

  const ModelShape model_ = *ModelFlavor("gpt2", "124M");
  ModelSlice slice_;
  Program program_;
  const std::vector<int64_t> owned_ = {10, 20, 30, 40};  // by unit
};

TEST_F(InstructionFlopsTest, HalvesOfABackwardAreTheWhole) {
  for (const int32_t unit : {0, 1, program_.num_units - 1}) {
    EXPECT_DOUBLE_EQ(Of(BackwardInput{.unit = unit}) + Of(BackwardWeight{.unit = unit}), Of(Backward{.unit = unit}));
  }
  EXPECT_DOUBLE_EQ(Of(Backward{.unit = 1}), BackwardFlops(model_, UnitKind::kLayer, 3, 64));
  EXPECT_EQ(Of(BackwardWeight{.unit = program_.num_units - 1}), 0) << "the head makes both at once";
}

TEST_F(InstructionFlopsTest, RecomputationIsOfWhatRuns) {
  const double forward = Of(Forward{.unit = 1});
  EXPECT_DOUBLE_EQ(forward, ForwardFlops(model_, UnitKind::kLayer, 3, 64));
  EXPECT_EQ(Of(Recompute{.unit = 1}), forward);
  const OpSet out = OpSet().With(Op::kAttnOut), both = out.With(Op::kResidual1);
  EXPECT_EQ(Of(Recompute{.unit = 1, .operators = out.InProgram()}), Of(Recompute{.unit = 1, .operators = both.InProgram()}));
  EXPECT_LT(Of(Recompute{.unit = 1, .operators = out.InProgram()}), forward / 4);
  EXPECT_EQ(Of(Recompute{.unit = 1, .operators = OpSet().With(Op::kDown).InProgram()}), 0) << "nothing misses its output";
}

TEST_F(InstructionFlopsTest, AWholeHeadTrainsInItsBackward) {
  const int32_t head = program_.num_units - 1;
  for (const Keep keep : {Keep::kAll, Keep::kBoundary}) {
    EXPECT_FALSE(Flops().Of(Forward{.unit = head, .keep = keep}).has_value()) << "nothing is launched";
  }
  EXPECT_FALSE(Flops().Of(Recompute{.unit = head}).has_value());
  EXPECT_DOUBLE_EQ(Of(Forward{.unit = head, .keep = Keep::kNothing}), ForwardFlops(model_, UnitKind::kHead, 3, 64));
  EXPECT_DOUBLE_EQ(Of(Backward{.unit = head}), BackwardFlops(model_, UnitKind::kHead, 3, 64));
  EXPECT_NEAR(Of(Backward{.unit = head}), 3 * Of(Forward{.unit = head, .keep = Keep::kNothing}), 1);
}

// Segments add up to the whole; of a slice the counts are a smaller model's, and what would make sums does not run again.
TEST_F(InstructionFlopsTest, SegmentsAreOfTheirOperators) {
  const int32_t head = program_.num_units - 1;
  for (const ModelSlice& slice : {ModelSlice(), ModelSlice{3, 9, 12}}) {
    slice_ = slice;
    const ModelShape part = ShapeOf(model_, slice);
    const auto attention = UnitSegment::kAttention, mlp = UnitSegment::kMlp;
    EXPECT_DOUBLE_EQ(Of(Forward{.unit = 1, .segment = attention}) + Of(Forward{.unit = 1, .segment = mlp}),
                     ForwardFlops(part, UnitKind::kLayer, 3, 64));
    EXPECT_DOUBLE_EQ(Of(Backward{.unit = 1, .segment = attention}) + Of(Backward{.unit = 1, .segment = mlp}),
                     BackwardFlops(part, UnitKind::kLayer, 3, 64));
    EXPECT_LT(Of(Forward{.unit = 1, .segment = attention}), Of(Forward{.unit = 1, .segment = mlp}));
    EXPECT_EQ(Of(Forward{.unit = head, .segment = UnitSegment::kLogits}), ForwardFlops(part, UnitKind::kHead, 3, 64));
    EXPECT_EQ(Of(Forward{.unit = head, .segment = UnitSegment::kLoss}), 0);
  }
  double sums = 0, norm = 0;
  for (const OpCost& op : UnitOperators(ShapeOf(model_, slice_), UnitKind::kLayer, 3, 64, DType::kFloat32)) {
    const bool makes_sum = op.op == Op::kAttnOut || op.op == Op::kResidual1 || op.op == Op::kDown || op.op == Op::kResidual2;
    sums += makes_sum ? op.forward_flops : 0;
    norm += op.op == Op::kNorm1 ? op.forward_flops : 0;
  }
  EXPECT_NEAR(Of(Recompute{.unit = 1}), Of(Forward{.unit = 1}) - sums, 1);
  EXPECT_EQ(Of(Recompute{.unit = head}), norm);
  EXPECT_EQ(Of(Recompute{.unit = 1, .operators = OpSet().With(Op::kAttnOut).InProgram()}), 0);
}

TEST_F(InstructionFlopsTest, WhatDoesNotComputeHasNone) {
  EXPECT_FALSE(Flops().Of(Gather{}).has_value());
  EXPECT_FALSE(Flops().Of(ZeroGrad{}).has_value());
}

TEST_F(InstructionFlopsTest, AStepIsOfWhatTheRankOwnsOfItsUnits) {
  EXPECT_EQ(Of(OptimizerStep{}), 100 * kOptimizerFlopsPerElement);
  EXPECT_EQ(Of(OptimizerStep{.first_unit = 0}), 10 * kOptimizerFlopsPerElement);
  EXPECT_EQ(Of(OptimizerStep{.first_unit = 1, .more_units = 1}), 50 * kOptimizerFlopsPerElement);
}

}  // namespace
}  // namespace motley::engine
