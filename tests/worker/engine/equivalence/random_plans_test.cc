#include "tests/worker/engine/equivalence/random_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/worker/engine/equivalence/equivalence.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"

namespace motley::engine {
namespace {

TEST(RandomEnginePlanTest, AllAreLoweredAndEverythingOccurs) {
  std::map<std::string, int> seen;
  for (int n = 0; n < 4000; ++n) {
    const PlannedJob planned = DrawPlannedJob(11, n, "/nowhere");
    const planner::Plan& plan = planned.plan;
    const absl::Status valid = planner::ValidateForEngine(plan, planned.job.model);
    ASSERT_TRUE(valid.ok()) << valid << "\n" << ToText(planned);
    const auto assignments = AssignmentsOf(planned.job.model, planned.job.config, plan, FourSamples(plan));
    ASSERT_TRUE(assignments.ok()) << assignments.status() << "\n" << ToText(planned);
    const std::vector<planner::StagePlan>& stages = plan.pipelines[0].stages;
    const size_t rounds = stages[0].ministages.size();
    const std::string schedule(planner::ScheduleName(plan.schedule));
    ++seen[schedule + (stages.size() > 1 ? ", several stages" : ", one stage")];
    if (rounds > 2 && stages.size() > 1) ++seen[schedule + ", three ministages"];
    ++seen["stages " + std::to_string(stages.size())];
    ++seen["ranks " + std::to_string(assignments->size())];
    for (const planner::StagePlan& stage : stages) {
      ++seen["zero " + std::to_string(stage.zero_stage)];
      seen["in flight"] += stage.in_flight > 0;
      seen["ownership"] += plan.ownership.has_value();
      for (const planner::UnitPlan& unit : stage.units) {
        seen["no samples"] += unit.microbatches.empty();
        seen["no share"] += stage.zero_stage > 0 && unit.ranks[0].shard_ratio == 0;
        const planner::OpSet recompute = unit.ranks[0].recompute;
        seen["recompute"] += recompute.all();
        seen["recompute by operator"] += !recompute.all() && !recompute.empty();
        seen["unlike microbatches"] += !unit.microbatches.empty() && unit.microbatches.front() != unit.microbatches.back();
      }
    }
  }
  EXPECT_EQ(seen.size(), 12u + 2u + 4u + 8u + 4u + 7u);
  for (const auto& [what, count] : seen) EXPECT_GE(count, 5) << what;
}

TEST(RandomEnginePlanTest, TensorParallelUnitsOfEveryKindOccur) {
  std::map<std::string, int> seen;
  for (int n = 0; n < 2000; ++n) {
    const PlannedJob planned = DrawTensorParallelJob(11, n, "/nowhere");
    const planner::Plan& plan = planned.plan;
    const absl::Status valid = planner::ValidateForEngine(plan, planned.job.model);
    ASSERT_TRUE(valid.ok()) << valid << "\n" << ToText(planned);
    const auto assignments = AssignmentsOf(planned.job.model, planned.job.config, plan, FourSamples(plan));
    ASSERT_TRUE(assignments.ok()) << assignments.status() << "\n" << ToText(planned);
    for (const planner::StagePlan& stage : plan.pipelines[0].stages) {
      const size_t width = stage.units[0].ranks.size();
      if (width == 1) continue;
      ++seen["degree " + std::to_string(width)];
      seen["unlike units"] += std::any_of(stage.units.begin(), stage.units.end(),
                                          [width](const planner::UnitPlan& unit) { return unit.ranks.size() != width; });
      ++seen["zero " + std::to_string(stage.zero_stage)];
      ++seen["family " + std::to_string(static_cast<int>(planned.job.model.family))];
      ++seen["heads " + std::to_string(planned.job.model.num_kv_heads)];
      ++seen[std::string(planner::ScheduleName(plan.schedule))];
      seen["several units"] += stage.units.size() > 1;
      seen["ownership"] += plan.ownership.has_value();
      seen["tied"] += planned.job.model.tie_embeddings;
      seen["unlike shares"] += stage.units[0].ranks[0].tp_share != stage.units[0].ranks[1].tp_share;
    }
  }
  EXPECT_EQ(seen.size(), 3u + 4u + 6u + 2u + 6u + 5u);
  for (const auto& [what, count] : seen) EXPECT_GE(count, 20) << what;
}

TEST(RandomEnginePlanTest, SeveralPipelinesOfEveryKindOccur) {
  std::map<std::string, int> seen;
  for (int n = 0; n < 2000; ++n) {
    const PlannedJob planned = DrawSeveralPipelinesJob(11, n, "/nowhere");
    const planner::Plan& plan = planned.plan;
    const absl::Status valid = planner::ValidateForEngine(plan, planned.job.model);
    ASSERT_TRUE(valid.ok()) << valid << "\n" << ToText(planned);
    const auto assignments = AssignmentsOf(planned.job.model, planned.job.config, plan, FourSamples(plan));
    ASSERT_TRUE(assignments.ok()) << assignments.status() << "\n" << ToText(planned);
    ++seen["pipelines " + std::to_string(plan.pipelines.size())];
    ++seen[std::string(planner::ScheduleName(plan.schedule))];
    ++seen["between pipelines zero " + std::to_string(plan.pipelines_zero_stage)];
    seen["ownership"] += plan.ownership.has_value();
    const auto& first = plan.pipelines[0].stages;
    for (const planner::PipelinePlan& pipeline : plan.pipelines) {
      seen["unlike numbers of stages"] += pipeline.stages.size() != first.size();
      for (const planner::StagePlan& stage : pipeline.stages) {
        ++seen["degree " + std::to_string(stage.units[0].ranks.size())];
        seen["several units"] += stage.units.size() > 1;
        if (stage.units.size() > 1) ++seen["several units, zero " + std::to_string(stage.zero_stage)];
        seen["degrees unlike the first pipeline's"] += stage.units[0].ranks.size() != first[0].units[0].ranks.size();
      }
    }
  }
  EXPECT_EQ(seen.size(), 2u + 6u + 3u + 4u + 4u + 4u);
  for (const auto& [what, count] : seen) EXPECT_GE(count, 20) << what;
}

TEST(RandomEnginePlanTest, OffloadOfEveryKindOccurs) {
  constexpr DrawJob kDraws[] = {DrawOffloading<DrawPlannedJob>, DrawOffloading<DrawTensorParallelJob>,
                                DrawOffloading<DrawSeveralPipelinesJob>};
  std::map<std::string, int> seen;
  for (int n = 0; n < 300; ++n) {
    const PlannedJob planned = kDraws[n % 3](11, n / 3, "/nowhere", /*half=*/n % 2 == 0);
    const absl::Status valid = planner::ValidateForEngine(planned.plan, planned.job.model);
    ASSERT_TRUE(valid.ok()) << valid << "\n" << ToText(planned);
    const auto assignments = AssignmentsOf(planned.job.model, planned.job.config, planned.plan, FourSamples(planned.plan));
    ASSERT_TRUE(assignments.ok()) << assignments.status() << "\n" << ToText(planned);
    const bool several = planned.plan.pipelines.size() > 1;
    for (const std::string& word : OffloadWords(planned.plan)) ++seen[absl::StrCat(word, several ? ", several pipelines" : "")];
    ++seen[planned.job.config.training.max_norm > 0 ? "clipped" : "unclipped"];
    seen["overflowing"] += planned.job.overflowing_step >= 0;
  }
  EXPECT_EQ(seen.size(), 6u + 3u + 3u);
  for (const auto& [what, count] : seen) EXPECT_GE(count, 10) << what;
}

// What a plan of several pipelines has, by kind: of one kind a plan has one.
std::map<std::string, std::string> FeaturesOf(const PlannedJob& planned) {
  const planner::Plan& plan = planned.plan;
  std::map<std::string, std::string> has = {
      {"schedule", std::string(planner::ScheduleName(plan.schedule))},
      {"pipelines", std::to_string(plan.pipelines.size())},
      {"between", std::to_string(plan.pipelines_zero_stage)},
      {"family", absl::StrCat(static_cast<int>(planned.job.model.family), planned.job.model.tie_embeddings ? " tied" : "")},
      {"ownership", plan.ownership ? "yes" : "no"}};
  const auto occurs = [&](const char* what, bool does) {
    if (does) has[what] = "yes";
  };
  for (const planner::PipelinePlan& pipeline : plan.pipelines) {
    occurs("stages", pipeline.stages.size() > 1);
    for (const planner::StagePlan& stage : pipeline.stages) {
      occurs("ministages", stage.ministages.size() > 1);
      occurs("in flight", stage.in_flight > 0);
      occurs("several units", stage.units.size() > 1);
      occurs("gradients in shards", stage.units.size() > 1 && stage.zero_stage == 2);
      occurs("parameters in shards", stage.units.size() > 1 && stage.zero_stage == 3);
      for (const planner::UnitPlan& unit : stage.units) {
        const planner::RankPlan& rank = unit.ranks.front();
        occurs("wide", unit.ranks.size() > 1);
        occurs("unlike shares", unit.ranks.size() > 1 && rank.tp_share != unit.ranks.back().tp_share);
        occurs("unlike units", unit.ranks.size() != stage.units.front().ranks.size());
        occurs("no samples", unit.microbatches.empty());
        occurs("unlike microbatches", !unit.microbatches.empty() && unit.microbatches.front() != unit.microbatches.back());
        occurs("recompute", rank.recompute.all());
        occurs("recompute by operator", !rank.recompute.all() && !rank.recompute.empty());
      }
    }
  }
  return has;
}

// Only some schedules have ministages, and only others a limit of what is in flight.
bool IsOfTheSchedule(const std::string& kind) { return kind == "schedule" || kind == "ministages" || kind == "in flight"; }

TEST(RandomEnginePlanTest, EveryPairOfFeaturesOfSeveralPipelinesOccurs) {
  std::map<std::string, int> pairs;
  std::map<std::string, std::string> kinds;  // by feature
  for (int n = 0; n < 12000; ++n) {
    std::vector<std::string> has;
    for (const auto& [kind, value] : FeaturesOf(DrawSeveralPipelinesJob(12, n, "/nowhere"))) {
      has.push_back(absl::StrCat(kind, " ", value));
      kinds[has.back()] = kind;
    }
    for (size_t a = 0; a < has.size(); ++a) {
      for (size_t b = 0; b < a; ++b) ++pairs[absl::StrCat(has[b], ", ", has[a])];
    }
  }
  for (const auto& [one, its_kind] : kinds) {
    for (const auto& [other, kind] : kinds) {
      if (kind <= its_kind || (IsOfTheSchedule(its_kind) && IsOfTheSchedule(kind))) continue;
      const int count = pairs[absl::StrCat(one, ", ", other)];
      EXPECT_GE(count, 5) << one << ", " << other;
    }
  }
}

// Those that tests/oracle/check_row_plans.py compares with PyTorch, of its own seed.
TEST(RandomEnginePlanTest, PlansOfFamiliesOnRowsHaveEverything) {
  constexpr uint64_t kSeed = 2;
  constexpr int kPlans = 24;
  std::map<std::string, int> seen;
  for (int n = 0; n < kPlans; ++n) {
    const PlannedJob planned = DrawFamilyOnRowsJob(kSeed, n, "/nowhere");
    const planner::Plan& plan = planned.plan;
    const absl::Status valid = planner::ValidateForEngine(plan, planned.job.model);
    ASSERT_TRUE(valid.ok()) << valid << "\n" << ToText(planned);
    const auto assignments = AssignmentsOf(planned.job.model, planned.job.config, plan, FourSamples(plan));
    ASSERT_TRUE(assignments.ok()) << assignments.status() << "\n" << ToText(planned);
    const std::string family(TraitsOf(planned.job.model.family).model_type);
    ++seen[family + ", " + planned.job.config.training.dtype];
    seen["several pipelines"] += plan.pipelines.size() > 1;
    seen["split backwards"] += std::any_of(assignments->begin(), assignments->end(), [](const RankAssignment& assignment) {
      return std::any_of(assignment.program.instructions.begin(), assignment.program.instructions.end(),
                         [](const Instruction& i) { return std::holds_alternative<BackwardWeight>(i.op); });
    });
    bool stages = false, wide = false, by_operator = false;
    for (const planner::PipelinePlan& pipeline : plan.pipelines) {
      stages |= pipeline.stages.size() > 1;
      for (const planner::StagePlan& stage : pipeline.stages) {
        for (const planner::UnitPlan& unit : stage.units) {
          wide |= unit.ranks.size() > 1;
          for (const planner::RankPlan& rank : unit.ranks) by_operator |= !rank.recompute.all() && !rank.recompute.empty();
        }
      }
    }
    seen["stages"] += stages;
    seen["tensor parallel"] += wide;
    seen["recompute by operator"] += by_operator;
    seen["one or two ranks"] += assignments->size() < 3;
    seen["seven or eight ranks"] += assignments->size() > 6;
  }
  EXPECT_EQ(seen.size(), 8u + 7u);
  for (const auto& [what, count] : seen) EXPECT_GE(count, 3) << what;
}

// What one device computes is kept by the name.
TEST(RandomEnginePlanTest, JobsOfOneNameHaveOneModel) {
  std::map<std::string, ModelShape> models;
  for (int n = 0; n < 600; ++n) {
    constexpr DrawJob kDraws[] = {DrawPlannedJob, DrawTensorParallelJob, DrawOffloading<DrawSeveralPipelinesJob>};
    const TinyJob job = kDraws[n % 3](11, n / 3, "/nowhere", /*half=*/false).job;
    const auto [named, is_new] = models.emplace(job.Name(), job.model);
    EXPECT_TRUE(named->second == job.model) << job.Name();
  }
}

TEST(RandomEnginePlanTest, TheSeedGivesThePlan) {
  EXPECT_EQ(ToText(DrawPlannedJob(1, 3, "/a")), ToText(DrawPlannedJob(1, 3, "/b")));
  EXPECT_NE(ToText(DrawPlannedJob(1, 3, "/a")), ToText(DrawPlannedJob(2, 3, "/a")));
}

}  // namespace
}  // namespace motley::engine
