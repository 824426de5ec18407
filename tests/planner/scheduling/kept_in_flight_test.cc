// How many microbatches the stages of a pipeline keep (StagePlan::in_flight), in its schedule and as simulated.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/lowering/lowered.h"

namespace motley::planner {
namespace {

// Most forwards that have begun while their backward has not ended, as the simulator ran them.
int64_t MostRun(const Lowered& lowered, int actor) {
  std::vector<std::pair<Picoseconds, int>> changes;  // ends come before begins at one time
  std::map<int32_t, std::pair<Picoseconds, Picoseconds>> kept;
  for (size_t t = 0; t < lowered.graph.tasks.size(); ++t) {
    const Task& task = lowered.graph.tasks[t];
    if (task.microbatch < 0 || task.lanes[0] != actor * kNumLanes) continue;
    auto& [begin, end] = kept.try_emplace(task.microbatch, lowered.timeline.spans[t].begin, 0).first->second;
    begin = std::min(begin, lowered.timeline.spans[t].begin);
    if (task.kind == TaskKind::kBackward || task.kind == TaskKind::kBackwardInput)
      end = std::max(end, lowered.timeline.spans[t].end);
  }
  for (const auto& [microbatch, span] : kept) {
    changes.emplace_back(span.first, 1);
    changes.emplace_back(span.second, -1);
  }
  std::sort(changes.begin(), changes.end());
  int64_t now = 0, most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, now += change);
  return most;
}

// By stage of one unit, as the schedule says.
std::vector<int64_t> KeptBy(const PlanView& view, const Plan& plan) {
  const auto walked = MakeTrainingSchedule(view, plan);
  EXPECT_TRUE(walked.ok()) << walked.status();
  std::vector<int64_t> kept;
  for (const StageSchedule& stage : walked->schedule.pipelines[0].stages) kept.push_back(planner::MostInFlight(stage, 0));
  return kept;
}

TEST(KeptInFlightTest, StagesKeepAsManyMicrobatchesAsThePlanSays) {
  for (const auto schedule : {ScheduleFamily::k1F1B, ScheduleFamily::kZeroBubble}) {
    for (const int64_t in_flight : {1, 2, 3, 5, 12}) {
      Uniform u = UniformPipeline(schedule, 3, 1, 8);
      u.plan.pipelines[0].stages[0].in_flight = in_flight;
      const auto view = ViewOf(*u.setting, u.plan);
      ASSERT_TRUE(view.ok()) << view.status();
      const int64_t kept = std::min<int64_t>(in_flight, 8);  // there are no more
      EXPECT_EQ(KeptBy(*view, u.plan)[0], kept + WeightsPutOff(schedule, 0)) << ScheduleName(schedule);
      const Lowered lowered = LowerAndRun(*u.setting, u.plan);
      EXPECT_EQ(MostRun(lowered, 0), kept) << ScheduleName(schedule);
      EXPECT_LE(MostRun(lowered, 1), 2) << ScheduleName(schedule);
      EXPECT_EQ(MostRun(lowered, 2), 1) << ScheduleName(schedule);
    }
  }
}

// The second stage would like to wait for nine, but the first has memory for four.
TEST(KeptInFlightTest, NobodyWaitsForMoreThanComesThrough) {
  Uniform u = UniformPipeline(ScheduleFamily::k1F1B, 3, 1, 12);
  for (const int64_t first : {0, 4}) {
    u.plan.pipelines[0].stages[0].in_flight = first;
    u.plan.pipelines[0].stages[1].in_flight = 9;
    const std::vector<int64_t> kept = KeptBy(*ViewOf(*u.setting, u.plan), u.plan);
    const int64_t most = first > 0 ? first : 3;  // 1F1B's own
    EXPECT_EQ(kept[0], most);
    EXPECT_LE(kept[1], most);
  }
}

}  // namespace
}  // namespace motley::planner
