#include "tests/worker/engine/equivalence/difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/model/parameters.h"
#include "tests/worker/engine/equivalence/tiny_job.h"

namespace motley::engine {
namespace {

using testing::HasSubstr;

class DifferenceTest : public testing::Test {
 protected:
  void SetUp() override {
    expected_.steps = {{.step = 1, .loss = 5, .grad_norm = 2}, {.step = 2, .loss = 4, .grad_norm = 3}};
    for (const int64_t step : {1, 2}) {
      TrainingState& state = expected_.states[step];
      for (const UnitSpec& unit : ParameterLayout(model_)) state.emplace_back(3, std::vector<double>(unit.num_elements, 0.5));
    }
  }
  Differences Of(const TrainingRun& run) const { return Compare(run, expected_, model_); }
  std::string Of(const TrainingRun& run, DType dtype) const { return Complaint(Of(run), LimitsOf(dtype)); }

  const ModelShape model_ = MakeTinyJob(ModelFamily::kGpt2, {3, 8}, DType::kFloat64, "/nowhere").model;
  TrainingRun expected_;
};

TEST_F(DifferenceTest, EqualRunsHaveNone) {
  EXPECT_EQ(Of(expected_).curve.relative, 0);
  EXPECT_EQ(Of(expected_).state.relative, 0);
  EXPECT_EQ(Of(expected_, DType::kFloat64), "");
}

// The norm of what overflowed is no number, whoever added it up.
TEST_F(DifferenceTest, ASkippedStepIsSkippedInBoth) {
  TrainingRun run = expected_;
  run.steps[1].skipped = true;
  EXPECT_EQ(Of(run).curve.where, "the skipping of step 2");
  expected_.steps[1].skipped = true;
  run.steps[1].grad_norm = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Of(run).curve.relative, 0);
}

TEST_F(DifferenceTest, TheCurvesWorstStepIsNamed) {
  TrainingRun run = expected_;
  run.steps[1].grad_norm *= 1 + 1e-7;
  run.steps[0].loss *= 1 + 1e-8;
  EXPECT_NEAR(Of(run).curve.relative, 1e-7, 1e-12);
  EXPECT_THAT(Of(run, DType::kFloat64), HasSubstr("grad_norm of step 2 differs by "));
  EXPECT_EQ(Of(run, DType::kFloat32), "");
}

// One gradient in one tensor of one unit.
TEST_F(DifferenceTest, OneElementOfOneArrayIsNamedWithItsTensor) {
  TrainingRun run = expected_;
  const UnitSpec unit = ParameterLayout(model_)[2];
  const TensorSpec& tensor = unit.tensors[3];
  run.states[1][2][1][tensor.offset_elements] += 1e-3;
  EXPECT_NEAR(Of(run).state.relative, 1e-3 / (0.5 * std::sqrt(unit.num_elements)), 1e-12);
  EXPECT_EQ(Of(run).state.where, "exp_avg of unit 2 after step 1, most in " + tensor.name);
}

TEST_F(DifferenceTest, WhatIsNoNumberOrMissingIsInfinite) {
  TrainingRun run = expected_;
  run.steps[0].loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isinf(Of(run).curve.relative));
  run = expected_;
  run.states[2][0][0][0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isinf(Of(run).state.relative));
  run = expected_;
  run.states.erase(2);
  EXPECT_TRUE(std::isinf(Of(run).state.relative));
  run = expected_;
  run.steps.pop_back();
  EXPECT_TRUE(std::isinf(Of(run).curve.relative));
}

}  // namespace
}  // namespace motley::engine
