#include "worker/engine/check_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "common/program/engine_subset.h"
#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"
#include "tests/worker/engine/equivalence/sliced_job.h"

namespace motley::engine {
namespace {

using ::testing::HasSubstr;

class CheckSliceTest : public testing::Test {
 protected:
  CheckSliceTest() {
    SlicedJob job;
    job.model = {.family = ModelFamily::kLlama,
                 .vocab_size = 9,
                 .hidden_size = 8,
                 .num_layers = 1,
                 .num_heads = 4,
                 .num_kv_heads = 4,
                 .head_dim = 2,
                 .intermediate_size = 9,
                 .max_positions = 8,
                 .tie_embeddings = false};
    job.config.training.global_batch_size = 4;
    job.config.data.validation_samples = 2;
    job.stages = {{0, 2, {0.75, 0.25}}};
    job.microbatches = 1;
    ranks_ = AssignmentsOf(job);
  }
  // Of rank 1 whose program was changed: edit(op) of every operation of this kind, until it says that it did.
  template <typename Op, typename Edit>
  std::string Refusal(const Edit& edit) const {
    Program program = ranks_[1].program;
    for (Instruction& instruction : program.instructions) {
      auto* const op = std::get_if<Op>(&instruction.op);
      if (op != nullptr && edit(*op, instruction.op)) return std::string(CheckSlice(ranks_[1], program).message());
    }
    return "nothing to edit";
  }

  std::vector<RankAssignment> ranks_;
};

TEST_F(CheckSliceTest, WhatFitsPasses) {
  for (const RankAssignment& rank : ranks_) {
    for (const Program* program : {&rank.program, &rank.evaluation}) {
      EXPECT_EQ(Validate(*program), absl::OkStatus());
      EXPECT_EQ(RunsInEngine(*program), absl::OkStatus());
      EXPECT_EQ(CheckSlice(rank, *program), absl::OkStatus());
    }
  }
}

TEST_F(CheckSliceTest, ElementsThatNobodyOwnsOrTheRankHasNot) {
  const auto beyond = [](auto& op, Operation&) { return op.elements.first > 0 && (op.elements.count += 1, true); };
  EXPECT_THAT(Refusal<Gather>(beyond), HasSubstr("the rank has"));
  // What is not divided both ranks own: the rank's own group does not have all of it.
  const auto alone = [](auto& op, Operation&) { return op.elements.first > 0 && (op.group = 2, true); };
  EXPECT_THAT(Refusal<Gather>(alone), HasSubstr("(gather): of 16 elements of unit 1 group 2 owns 8"));
  EXPECT_THAT(Refusal<ReduceScatter>(alone), HasSubstr("(reduce_scatter): of 8 elements of unit 2 group 2 owns 4"));
}

TEST_F(CheckSliceTest, UnitsWithoutTheirSums) {
  const auto whole = [](auto& op, Operation&) { return op.unit > 0 && (op.segment = UnitSegment::kWhole, true); };
  EXPECT_THAT(Refusal<Forward>(whole), HasSubstr("(forward): unit 1 runs whole, and the rank has a part of it"));
  const auto of_layer = [](auto& op, Operation&) { return op.unit == 1 && (op.segment = UnitSegment::kWhole, true); };
  EXPECT_THAT(Refusal<Backward>(of_layer), HasSubstr("(backward): unit 1 runs whole"));
  const auto gone = [](AllReduceActivation& op, Operation& all) { return op.unit == 0 && (all = Release{0}, true); };
  EXPECT_THAT(Refusal<AllReduceActivation>(gone), HasSubstr("what its slice makes in unit 0 of microbatch 0 is never summed"));
}

TEST_F(CheckSliceTest, GroupsThatAnotherSliceLeads) {
  const auto other = [](AllReduceActivation& op, Operation&) { return op.group = 2, true; };
  EXPECT_THAT(Refusal<AllReduceActivation>(other), HasSubstr("group 2 begins otherwise"));
  RankAssignment whole = ranks_[1];
  whole.slice = {};
  whole.ownership = {};
  for (Instruction& instruction : whole.program.instructions) {
    if (std::holds_alternative<Gather>(instruction.op)) instruction.op = Release{0};
  }
  EXPECT_THAT(std::string(CheckSlice(whole, whole.program).message()), HasSubstr("nothing to be added or handed on"));
}

TEST_F(CheckSliceTest, WhatTheRankOwnsIsInItsSlice) {
  RankAssignment other = ranks_[1];
  other.slice = ranks_[0].slice;
  EXPECT_THAT(std::string(CheckSlice(other, other.program).message()), HasSubstr("which are not in its slice"));
}

TEST(CheckShardsTest, AShardHasWhatTheRankKeeps) {
  int shards = 0;
  for (int n = 0; n < 40; ++n) {
    const PlannedJob planned = DrawSeveralPipelinesJob(3, n, "/nowhere");
    const auto ranks = AssignmentsOf(planned.job.model, planned.job.config, planned.plan, FourSamples(planned.plan));
    ASSERT_TRUE(ranks.ok()) << ranks.status();
    for (RankAssignment rank : *ranks) {
      ASSERT_EQ(CheckSlice(rank, rank.program), absl::OkStatus());
      for (std::vector<UnitBuffer>* buffers : {&rank.program.parameter_buffers, &rank.program.gradient_buffers}) {
        const auto shard = std::find_if(buffers->begin(), buffers->end(), [](const UnitBuffer& b) { return b.IsShard(); });
        if (shard == buffers->end()) continue;
        ++shards;
        ++shard->elements;
        EXPECT_THAT(std::string(CheckSlice(rank, rank.program).message()), HasSubstr(" elements for its shard of unit "));
        --shard->elements;
      }
    }
  }
  EXPECT_GE(shards, 20);
}

}  // namespace
}  // namespace motley::engine
