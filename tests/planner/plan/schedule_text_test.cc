// The text forms of a schedule's parts.
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan/schedule.h"

namespace motley::planner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMost = 10000;

Action F(int32_t v, int64_t first) { return {ActionKind::kForward, v, first, first + 1}; }
Action B(int32_t v, int64_t first) { return {ActionKind::kBackward, v, first, first + 1}; }

TEST(ScheduleTextTest, ActionsRoundTrip) {
  const std::vector<Action> actions = {F(0, 0),
                                       {ActionKind::kForward, 1, 0, 8},
                                       B(12, 3),
                                       {ActionKind::kInputGradient, 1, 2, 3},
                                       {ActionKind::kWeightGradient, 1, 2, 3}};
  EXPECT_EQ(ToText(actions), "0F0 1F0-7 12B3 1I2 1W2");
  EXPECT_EQ(ParseActions(ToText(actions), kMost).value(), actions);
  EXPECT_TRUE(ParseActions("", kMost).value().empty());
}

TEST(ScheduleTextTest, WhatRecursIsWrittenOnce) {
  std::vector<Action> actions = {F(0, 0), F(0, 1)};
  for (int64_t k = 0; k < 250; ++k) {
    actions.push_back(F(0, k + 2));
    actions.push_back(B(0, k));
  }
  actions.push_back(B(0, 250));
  actions.push_back(B(0, 251));
  EXPECT_EQ(ToText(actions), "0F0 0F1 (0F2 0B0)x250+1 0B250 0B251");
  EXPECT_EQ(ParseActions(ToText(actions), kMost).value(), actions);
}

TEST(ScheduleTextTest, VirtualStagesRecurByGroups) {
  EXPECT_EQ(ToText(ParseActions("0F0 0F1 2F0 2F1 0F2 0F3 2F2 2F3 0F4 0F5 2F4 2F5", kMost).value()), "(0F0 0F1 2F0 2F1)x3+2");
}

TEST(ScheduleTextTest, RandomActionsRoundTrip) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    std::vector<Action> actions;
    for (int j = 0; j < 40; ++j) {
      const auto first = static_cast<int64_t>(random() % 3);
      actions.push_back({static_cast<ActionKind>(random() % 4), static_cast<int32_t>(random() % 2), first,
                         first + 1 + static_cast<int64_t>(random() % 2)});
    }
    ASSERT_EQ(ParseActions(ToText(actions), kMost).value(), actions) << ToText(actions);
  }
}

TEST(ScheduleTextTest, WrongActionsAreNamed) {
  for (const char* word : {"F0", "0F", "0X0", "0F1-0", "0F-1", "-1F0", "0F0x", "0F0)", "0F9999999999"}) {
    EXPECT_THAT(ParseActions(word, kMost).status().message(), HasSubstr(word)) << word;
  }
  EXPECT_THAT(ParseActions("(0F0 (0F1)x2+1", kMost).status().message(), HasSubstr("'(0F1)x2+1' is not allowed inside a repeat"));
  EXPECT_THAT(ParseActions("(0F0 0F1", kMost).status().message(), HasSubstr("'(' is not closed"));
  EXPECT_THAT(ParseActions("(0F0)y3+1", kMost).status().message(), HasSubstr("the end of a repeat like )x250+1"));
  EXPECT_THAT(ParseActions("(0F0)x2000000000+0", kMost).status().message(), HasSubstr("10000 actions at most"));
}

TEST(ScheduleTextTest, MicrobatchesRoundTrip) {
  const MemberMicrobatches microbatches = {{0, 4, 0}, {8, 4, 1}, {16, 3, 5}};
  EXPECT_EQ(ToText(microbatches), "4@0 4@8 3@16:5");
  EXPECT_EQ(ParseMicrobatches(ToText(microbatches)).value(), microbatches);
  for (const char* word : {"4", "@3", "4@", "4@0:", "4@0:x", "-4@0"}) {
    EXPECT_THAT(ParseMicrobatches(word).status().message(), HasSubstr(word)) << word;
  }
}

// Two members, the second without a microbatch in the last round.
TEST(ScheduleTextTest, AMembersActionsAreThoseOfItsMicrobatches) {
  StageSchedule stage;
  stage.actions = ParseActions("0F0 0F1 0F2 0B0 0B1 0B2", kMost).value();
  stage.members = {{{0, 2, 0}, {4, 2, 1}, {6, 2, 2}}, {{2, 2, 1}}};
  EXPECT_EQ(ToText(ActionsOf(stage, 0)), "0F0 0F1 0F2 0B0 0B1 0B2");
  EXPECT_EQ(ToText(ActionsOf(stage, 1)), "0F0 0B0");
  EXPECT_EQ(NumRounds(stage), 3);
  EXPECT_EQ(MostInFlight(stage, 0), 3);
  EXPECT_EQ(MostInFlight(stage, 1), 1);
}

TEST(ScheduleTextTest, ASplitBackwardIsInFlightUntilItsWeights) {
  StageSchedule stage;
  stage.actions = ParseActions("0F0 0I0 0F1 0I1 0W0 0W1", kMost).value();
  stage.members = {{{0, 1, 0}, {1, 1, 1}}};
  EXPECT_EQ(MostInFlight(stage, 0), 2);
}

}  // namespace
}  // namespace motley::planner
