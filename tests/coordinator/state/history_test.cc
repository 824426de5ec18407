#include "coordinator/state/history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace motley::coordinator {
namespace {

StepStats Step(int64_t number, double loss) {
  StepStats step;
  step.step = number;
  step.loss = loss;
  step.tokens_per_second = 10;
  step.step_seconds = 0.5;
  step.grad_norm = 1;
  step.lr = 1e-3;
  return step;
}

History Of(int64_t steps, double (*loss)(int64_t)) {
  History history;
  for (int64_t s = 1; s <= steps; ++s) history.Add(Step(s, loss(s)));
  return history;
}

double Falling(int64_t step) { return 100.0 / static_cast<double>(step); }

TEST(History, StepsAreWholeWhileTheyAreFew) {
  const History history = Of(400, Falling);
  EXPECT_EQ(history.steps_per_bucket(), 1);
  ASSERT_EQ(history.buckets().size(), 400u);
  EXPECT_FLOAT_EQ(history.buckets()[3].loss, 25);
  EXPECT_FLOAT_EQ(history.buckets()[3].least_loss, 25);
}

TEST(History, BucketsAreMeansOfTheirSteps) {
  const History history = Of(401, [](int64_t step) { return static_cast<double>(step); });
  EXPECT_EQ(history.steps_per_bucket(), 2);
  ASSERT_EQ(history.buckets().size(), 201u);
  EXPECT_FLOAT_EQ(history.buckets()[0].loss, 1.5);
  EXPECT_FLOAT_EQ(history.buckets()[0].least_loss, 1);
  EXPECT_FLOAT_EQ(history.buckets()[0].most_loss, 2);
  EXPECT_FLOAT_EQ(history.buckets()[199].loss, 399.5);
  EXPECT_FLOAT_EQ(history.buckets()[200].loss, 401);
  EXPECT_FLOAT_EQ(history.buckets()[200].tokens_per_second, 10);
}

TEST(History, ALongRunKeepsBeginEndAndExtremes) {
  History history;
  for (int64_t s = 1; s <= 100000; ++s)
    history.Add(Step(s, s == 71234 ? 500.0 : s == 40001 ? 0.25 : 2 + 1.0 / static_cast<double>(s)));
  EXPECT_EQ(history.last_step(), 100000);
  EXPECT_LE(history.buckets().size(), History::kMostBuckets);
  EXPECT_GT(history.buckets().size(), History::kMostBuckets / 2);
  float least = 1e9F, most = 0;
  for (const HistoryBucket& bucket : history.buckets()) {
    least = std::fmin(least, bucket.least_loss);
    most = std::fmax(most, bucket.most_loss);
    EXPECT_NEAR(bucket.step_seconds, 0.5, 1e-6);
  }
  EXPECT_FLOAT_EQ(least, 0.25);
  EXPECT_FLOAT_EQ(most, 500);
  EXPECT_FLOAT_EQ(history.buckets()[0].most_loss, 3);  // step 1
  EXPECT_LT(history.ToBytes().size(), 13u << 10);
}

TEST(History, WhatIsNotFiniteCountsForNothing) {
  History history;
  history.Add(Step(1, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_TRUE(std::isnan(history.buckets()[0].loss));
  EXPECT_TRUE(std::isnan(history.buckets()[0].least_loss));
  EXPECT_FLOAT_EQ(history.buckets()[0].tokens_per_second, 10);
  for (int64_t s = 2; s <= 800; ++s) history.Add(Step(s, s % 2 == 0 ? 4.0 : std::numeric_limits<double>::infinity()));
  for (const HistoryBucket& bucket : history.buckets()) {
    EXPECT_FLOAT_EQ(bucket.loss, 4);
    EXPECT_FLOAT_EQ(bucket.most_loss, 4);
  }
}

TEST(History, MissingStepsLeaveAGap) {
  History history;
  history.Add(Step(1, 5));
  history.Add(Step(5, 3));
  ASSERT_EQ(history.buckets().size(), 5u);
  EXPECT_TRUE(std::isnan(history.buckets()[2].loss));
  EXPECT_FLOAT_EQ(history.buckets()[4].loss, 3);
}

TEST(History, StepsThatAreDoneAgainReplaceWhatCameLater) {
  History history = Of(300, Falling);
  history.Add(Step(101, 7));
  EXPECT_EQ(history.last_step(), 101);
  ASSERT_EQ(history.buckets().size(), 101u);
  EXPECT_FLOAT_EQ(history.buckets()[99].loss, 1);
  EXPECT_FLOAT_EQ(history.buckets()[100].loss, 7);
  EXPECT_FLOAT_EQ(history.buckets()[100].least_loss, 7);
  History wide = Of(800, [](int64_t) { return 2.0; });  // two steps a bucket
  wide.Add(Step(400, 5));
  EXPECT_FLOAT_EQ(wide.buckets().back().loss, 3.5) << "step 399 stays";
  wide.Add(Step(399, 1));
  EXPECT_FLOAT_EQ(wide.buckets().back().loss, 1);
  EXPECT_FLOAT_EQ(wide.buckets().back().most_loss, 1);
}

TEST(History, AMeanIsOfItsFiniteValues) {
  History history;
  for (int64_t s = 1; s <= 4000; ++s) {
    StepStats step = Step(s, 1);
    step.grad_norm = s % 4 == 0 ? static_cast<double>(s % 3) : std::numeric_limits<double>::infinity();
    history.Add(step);
  }
  EXPECT_EQ(history.steps_per_bucket(), 16);
  // 4, 8, 12 and 16 modulo 3: 1, 2, 0, 1.
  EXPECT_NEAR(history.buckets()[0].grad_norm, 1, 1e-5);
  EXPECT_FLOAT_EQ(history.buckets()[7].loss, 1);
}

TEST(History, NumbersBeyondAFloatAreItsLargest) {
  History history;
  history.Add(Step(1, 1e300));
  EXPECT_FLOAT_EQ(history.buckets()[0].loss, std::numeric_limits<float>::max());
  history.Add(Step(std::numeric_limits<int64_t>::max(), 1));
  EXPECT_EQ(history.last_step(), 1);
}

TEST(History, TheNewestValidationOfABucketStays) {
  History history;
  for (int64_t s = 1; s <= 1600; ++s) {
    StepStats step = Step(s, 1);
    if (s % 100 == 0) step.validation_loss = static_cast<double>(s);
    history.Add(step);
  }
  EXPECT_EQ(history.steps_per_bucket(), 4);
  EXPECT_FLOAT_EQ(history.buckets()[24].validation_loss, 100);
  EXPECT_TRUE(std::isnan(history.buckets()[25].validation_loss));
}

TEST(History, IsReadAsItWasStored) {
  const History history = Of(1234, Falling);
  const auto read = History::FromBytes(history.ToBytes());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ToBytes(), history.ToBytes());
  History on = *read, other = history;
  on.Add(Step(1235, 9));
  other.Add(Step(1235, 9));
  EXPECT_EQ(on.ToBytes(), other.ToBytes());
}

TEST(History, WhatWasNotStoredIsRefused) {
  const std::string bytes = Of(10, Falling).ToBytes();
  EXPECT_TRUE(History::FromBytes(bytes).ok());
  for (const std::string& wrong :
       {std::string(), std::string("x"), bytes.substr(1), bytes + "x", bytes.substr(0, bytes.size() - 4)}) {
    EXPECT_EQ(History::FromBytes(wrong).status().code(), absl::StatusCode::kDataLoss);
  }
  for (size_t i = 0; i < 40; ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x80);
    const auto read = History::FromBytes(flipped);
    if (!read.ok()) continue;
    History history = *read;
    history.Add(Step(11, 1));  // whatever it says, it goes on
    EXPECT_LE(history.buckets().size(), History::kMostBuckets);
  }
}

}  // namespace
}  // namespace motley::coordinator
