#include "planner/strategies/auto/auto_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "planner/pricing/evaluate.h"
#include "planner/search/turn_stages.h"
#include "tests/planner/strategies/stages_fixture.h"

namespace motley::planner {
namespace {

std::unique_ptr<Setting> Boxes(PlanRequest request = {}, double nic_gbit_per_second = 10) {
  return SettingOf(
      ClusterText({{"n1", Cards("A100-40GB", 2)}, {"n2", Cards("T4", 4)}, {"n3", Cards("V100-16GB", 2)}}, nic_gbit_per_second),
      "gpt2-1.5b", 64, 512, std::move(request));
}

TEST(AutoTurnsTest, BestFirstEachFitsAndCostsWhatItSays) {
  const auto setting = Boxes();
  SearchBudget budget = BudgetOf(setting->request);
  const std::vector<TurnPlan> plans = FindTurnPlans(*setting, CandidateGroupings(*setting), 12, &budget);
  ASSERT_GT(plans.size(), 3u);
  EXPECT_LE(plans.size(), 12u);
  std::set<std::string> seen;
  for (size_t i = 0; i < plans.size(); ++i) {
    EXPECT_GE(plans[i].seconds, plans[i > 0 ? i - 1 : 0].seconds);
    const auto price = EstimatePlan(*setting, plans[i].plan);
    ASSERT_TRUE(price.ok()) << price.status();
    EXPECT_EQ(price->step_seconds, plans[i].seconds);
    EXPECT_LE(price->worst_memory, 1);
    EXPECT_EQ(Validate(plans[i].plan, setting->workload.model), absl::OkStatus());
    EXPECT_FALSE(plans[i].origin.empty());
    EXPECT_TRUE(seen.insert(ToJson(plans[i].plan)).second) << "twice: " << plans[i].origin;
  }
}

// Single devices as units leave so few candidates that all of them are varied.
TEST(AutoTurnsTest, NeverWorseThanAPlainChoice) {
  PlanRequest request;
  request.max_tp = 1;
  for (const double gbit : {1.0, 10.0, 100.0}) {
    const auto setting = Boxes(request, gbit);
    const std::vector<Grouping> groupings = CandidateGroupings(*setting);
    ASSERT_LE(groupings.size(), 16u);
    SearchBudget budget = BudgetOf(setting->request);
    const std::vector<TurnPlan> plans = FindTurnPlans(*setting, groupings, 1, &budget);
    ASSERT_EQ(plans.size(), 1u);
    int fit = 0;
    for (const Grouping& grouping : groupings) {
      for (const int64_t rounds : {4, 8, 16, 32}) {
        TurnChoice choice;
        choice.groups = grouping.groups;
        choice.tp.assign(grouping.groups.size(), 1);
        choice.rounds = rounds;
        choice.in_flight_factor = 2;
        const auto plain = PlanTurns(*setting, choice);
        if (!plain.ok()) continue;
        const auto price = EstimatePlan(*setting, *plain);
        ASSERT_TRUE(price.ok()) << price.status();
        if (price->worst_memory > 1) continue;
        ++fit;
        EXPECT_GE(price->step_seconds, plans[0].seconds) << grouping.from;
      }
    }
    EXPECT_GT(fit, 3);
  }
}

TEST(AutoTurnsTest, EqualBudgetsGiveEqualAnswers) {
  const auto setting = Boxes();
  for (const int64_t nodes : {3'000, 30'000, 1'000'000}) {
    std::vector<std::string> answers[2];
    int64_t left[2];
    for (int i = 0; i < 2; ++i) {
      SearchBudget budget;
      budget.nodes = nodes;
      for (const TurnPlan& plan : FindTurnPlans(*setting, CandidateGroupings(*setting), 8, &budget))
        answers[i].push_back(ToJson(plan.plan));
      left[i] = budget.nodes;
    }
    EXPECT_EQ(answers[0], answers[1]) << nodes;
    EXPECT_EQ(left[0], left[1]);
    EXPECT_FALSE(answers[0].empty()) << nodes;
    EXPECT_GE(left[0], 0);
    EXPECT_LT(left[0], nodes);
  }
}

TEST(AutoTurnsTest, NoBudgetGivesNothing) {
  const auto setting = Boxes();
  for (const int64_t nodes : {0, 1, 27}) {
    SearchBudget budget;
    budget.nodes = nodes;
    EXPECT_TRUE(FindTurnPlans(*setting, CandidateGroupings(*setting), 8, &budget).empty()) << nodes;
    EXPECT_GE(budget.nodes, 0);
  }
  SearchBudget budget = BudgetOf(setting->request);
  EXPECT_TRUE(FindTurnPlans(*setting, {}, 8, &budget).empty()) << "no groupings";
  EXPECT_TRUE(FindTurnPlans(*setting, CandidateGroupings(*setting), 0, &budget).empty()) << "none asked for";
}

TEST(AutoTurnsTest, KeepsToWhatTheRequestSays) {
  PlanRequest request;
  request.zero_stage = 2;
  request.max_tp = 1;
  const auto setting = Boxes(request);
  SearchBudget budget = BudgetOf(setting->request);
  const std::vector<TurnPlan> plans = FindTurnPlans(*setting, CandidateGroupings(*setting), 50, &budget);
  ASSERT_FALSE(plans.empty());
  for (const TurnPlan& found : plans) {
    for (const StagePlan& stage : found.plan.pipelines[0].stages) {
      EXPECT_EQ(stage.zero_stage, 2);
      for (const UnitPlan& unit : stage.units) EXPECT_EQ(unit.ranks.size(), 1u);
    }
  }
}

// From a poor division alone the search finds its way to another one.
TEST(AutoTurnsTest, ClimbsOverTheGroupsThemselves) {
  const auto setting = Boxes({}, 4);
  const Grouping poor{{{2, 3}, {0, 4, 6}, {1, 5, 7}}, "by chance"};
  SearchBudget budget = BudgetOf(setting->request);
  const std::vector<TurnPlan> plans = FindTurnPlans(*setting, {poor}, 50, &budget);
  std::set<std::set<std::set<std::string>>> divisions;
  for (const TurnPlan& found : plans) {
    std::set<std::set<std::string>> stages;
    for (const StagePlan& stage : found.plan.pipelines[0].stages) {
      std::set<std::string> devices;
      for (const UnitPlan& unit : stage.units) {
        for (const RankPlan& rank : unit.ranks) devices.insert(rank.device.value());
      }
      stages.insert(devices);
    }
    divisions.insert(stages);
  }
  ASSERT_GE(divisions.size(), 2u);
  EXPECT_LT(plans.front().seconds, 0.9 * plans.back().seconds);
}

TEST(AutoTurnsTest, WhatFitsNowhereIsNotAnError) {
  const auto setting = SettingOf(ClusterText({{"n1", Cards("T4", 1)}, {"n2", Cards("T4", 1)}}), "llama2-70b", 16, 512);
  SearchBudget budget = BudgetOf(setting->request);
  EXPECT_TRUE(FindTurnPlans(*setting, CandidateGroupings(*setting), 8, &budget).empty());
}

}  // namespace
}  // namespace motley::planner
