#include "coordinator/state/prediction_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::coordinator {
namespace {

using testing::HasSubstr;

DeviceDescription Device(const char* id, double declared = 0) {
  DeviceDescription device;
  device.id = DeviceId(id);
  device.flops_per_second = declared;
  return device;
}

PredictionWatch Watching() {
  PredictionWatch watch;
  watch.Begin({Device("a/cpu0"), Device("b/cpu0")});
  return watch;
}

TEST(PredictionWatchTest, TenStepsInARowThatAreOffAreSaidOnce) {
  PredictionWatch watch = Watching();
  for (int step = 1; step < 10; ++step) EXPECT_FALSE(watch.OnStep(20, 1)) << step;
  EXPECT_EQ(watch.sentence(), "");
  EXPECT_TRUE(watch.OnStep(20, 1));
  EXPECT_THAT(watch.sentence(), HasSubstr("10 steps in a row took less than predicted (the last 1 s, not 20 s)"));
  EXPECT_TRUE(watch.Doubts(DeviceId("a/cpu0")) && watch.Doubts(DeviceId("b/cpu0")) && watch.doubts_together());
  for (int step = 0; step < 30; ++step) EXPECT_FALSE(watch.OnStep(20, 1)) << "once a generation";
}

TEST(PredictionWatchTest, SlowerIsOffToo) {
  PredictionWatch watch = Watching();
  for (int step = 1; step < 10; ++step) watch.OnStep(1, 1.4);
  EXPECT_TRUE(watch.OnStep(1, 1.4));
  EXPECT_THAT(watch.sentence(), HasSubstr("took longer"));
}

TEST(PredictionWatchTest, AStepAsPredictedBeginsTheCountAnew) {
  PredictionWatch watch = Watching();
  for (int round = 0; round < 20; ++round) {
    for (int step = 1; step < 10; ++step) EXPECT_FALSE(watch.OnStep(1, 2));
    EXPECT_FALSE(watch.OnStep(1, 1.3)) << "less than a third off";
  }
}

TEST(PredictionWatchTest, WhatAHostAddsToAShortStepIsNotDoubted) {
  PredictionWatch watch = Watching();
  for (int step = 0; step < 30; ++step) EXPECT_FALSE(watch.OnStep(0.0055, 0.0085));
}

TEST(PredictionWatchTest, DeclaredSpeedsAndUnknownPredictionsAreNotDoubted) {
  PredictionWatch declared;
  declared.Begin({Device("a/gpu0", 1e9), Device("b/cpu0")});
  PredictionWatch unknown = Watching();
  for (int step = 0; step < 30; ++step) {
    EXPECT_FALSE(declared.OnStep(20, 1));
    EXPECT_FALSE(unknown.OnStep(0, 1));
  }
}

TEST(PredictionWatchTest, DoubtsOutliveTheGenerationUntilMeasured) {
  PredictionWatch watch = Watching();
  for (int step = 0; step < 10; ++step) watch.OnStep(20, 1);
  watch.Begin({Device("a/cpu0"), Device("b/cpu0")});
  EXPECT_EQ(watch.sentence(), "") << "it is of another plan";
  EXPECT_TRUE(watch.Doubts(DeviceId("a/cpu0")));
  watch.Measured(DeviceId("a/cpu0"));
  EXPECT_FALSE(watch.Doubts(DeviceId("a/cpu0")));
  EXPECT_TRUE(watch.Doubts(DeviceId("b/cpu0")) && watch.doubts_together());
  watch.Measured(DeviceId());
  EXPECT_FALSE(watch.doubts_together());
}

}  // namespace
}  // namespace motley::coordinator
