// A broken schedule for every rule.
#include "planner/plan/schedule_check.h"

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/scheduling/make_schedule.h"
#include "tests/planner/lowering/lowering_fixture.h"
#include "tests/planner/scheduled.h"

namespace motley::planner {
namespace {

using testing::HasSubstr;

// Two stages of one device each, four microbatches of two samples, 1F1B.
struct Scheduled {
  std::unique_ptr<Setting> setting = MakeSetting(Nodes({{"T4", "T4"}}), WorkOf(MediumModel(4, false), 8));
  Plan plan = PlanOf(*setting, ScheduleFamily::k1F1B,
                     {{{StageOf(*setting, 0, {{2, 2, 2, 2}}, {{0, 1}}), StageOf(*setting, 1, {{2, 2, 2, 2}}, {{2, 3}})}}});
  Schedule schedule = MakeTrainingSchedule(*setting, plan).value();

  PipelineSchedule& pipeline() { return schedule.pipelines[0]; }
  StageSchedule& stage(size_t s) { return pipeline().stages[s]; }
  void Order(size_t s, const char* actions) { stage(s).actions = ParseActions(actions, 100).value(); }
  absl::Status Validity() const { return ValidateSchedule(plan, schedule, true); }
};

struct BrokenSchedule {
  const char* rule;
  std::function<void(Scheduled*)> damage;
};

TEST(ScheduleCheckTest, EveryRule) {
  // clang-format off
  const std::vector<BrokenSchedule> kBroken = {
      {"schedules.training: 2 pipelines, the plan has 1", [](Scheduled* s) { s->schedule.pipelines.push_back(s->pipeline()); }},
      {"[0]: 3 stages, the plan has 2", [](Scheduled* s) { s->pipeline().stages.push_back(s->stage(1)); }},
      {"stage_of: virtual stages must lie", [](Scheduled* s) { s->pipeline().stage_of = {1, 0}; }},
      {"stages[0]: 2 devices, the plan's stage has 1", [](Scheduled* s) { s->stage(0).members.push_back({}); }},
      {"a microbatch of n0/gpu1 has no sample", [](Scheduled* s) { s->stage(1).members[0][1].samples = 0; }},
      {"n0/gpu0 has two microbatches in round 1", [](Scheduled* s) { s->stage(0).members[0][2].round = 1; }},
      {"the rounds of n0/gpu0 go back", [](Scheduled* s) { std::swap(s->stage(0).members[0][1].round, s->stage(0).members[0][2].round); }},
      {"the microbatches of n0/gpu0 are not those of the plan; leave schedules out of the plan", [](Scheduled* s) { s->stage(0).members[0][3].samples = 3; }},
      {"sample 2 is in none", [](Scheduled* s) { s->stage(0).members[0][1].first = 3; }},
      {"sample 0 is in two microbatches", [](Scheduled* s) { s->stage(0).members[0][1].first = 0; }},
      {"1F0: the stage does not hold virtual stage 1", [](Scheduled* s) { s->Order(0, "1F0"); }},
      {"7F0: the stage does not hold virtual stage 7", [](Scheduled* s) { s->Order(0, "7F0"); }},
      {"0F4: there are 4 rounds", [](Scheduled* s) { s->Order(0, "0F4"); }},
      {"0F1, microbatch 1: computed twice", [](Scheduled* s) { s->Order(0, "0F1 0F1"); }},
      {"0B0, microbatch 0: its forward comes first", [](Scheduled* s) { s->Order(0, "0B0"); }},
      {"0B0, microbatch 0: computed twice", [](Scheduled* s) { s->Order(0, "0F0 0B0 0B0"); }},
      {"this family of schedules does not compute backwards so", [](Scheduled* s) { s->Order(0, "0F0 0I0"); }},
      {"0W0, microbatch 0: its input's gradient comes first", [](Scheduled* s) { s->Order(0, "0F0 0W0"); }},
      {"microbatch 3 of virtual stage 0 is never computed forward", [](Scheduled* s) { s->Order(0, "0F0 0F1 0F2 0B0 0B1 0B2"); }},
      {"microbatch 3 of virtual stage 0 is never computed backward", [](Scheduled* s) { s->Order(0, "0F0-3 0B0-2"); }},
      // The second stage begins with what the first sends last, and gives nothing back before.
      {"ranks would wait for each other: n0/gpu0 before 0B0, n0/gpu1 before 1F3",
       [](Scheduled* s) { s->Order(0, "(0F0 0B0)x4+1"), s->Order(1, "1F3 1B3 (1F0 1B0)x3+1"); }},
  };
  // clang-format on
  EXPECT_EQ(Scheduled().Validity(), absl::OkStatus());
  for (const BrokenSchedule& broken : kBroken) {
    Scheduled scheduled;
    broken.damage(&scheduled);
    const absl::Status validity = scheduled.Validity();
    EXPECT_EQ(validity.code(), absl::StatusCode::kInvalidArgument) << broken.rule;
    EXPECT_THAT(validity.message(), HasSubstr(broken.rule));
  }
}

TEST(ScheduleCheckTest, LayeredRoundsPassTogether) {
  Scheduled s;
  s.plan.schedule = ScheduleFamily::kLayered;
  EXPECT_THAT(s.Validity().message(), HasSubstr("0F0: in a layered schedule all 4 rounds pass together"));
}

TEST(ScheduleCheckTest, AValidationPassHasNoBackward) {
  Scheduled s;
  s.Order(0, "0F0-3 0B0-3");
  EXPECT_THAT(ValidateSchedule(s.plan, s.schedule, false).message(), HasSubstr("a validation pass has no backward"));
}

// Virtual stages of one stage in the order of the pass, forward and back.
TEST(ScheduleCheckTest, VirtualStagesOfOneStage) {
  const auto setting = MakeSetting(Nodes({{"T4"}}), WorkOf(MediumModel(4, false), 2));
  const Plan plan = PlanOf(*setting, ScheduleFamily::kInterleaved, {{{StageOf(*setting, 0, {{1, 1}}, {{0, 1}, {2, 3}})}}});
  Schedule schedule = MakeTrainingSchedule(*setting, plan).value();
  EXPECT_EQ(ValidateSchedule(plan, schedule, true), absl::OkStatus());
  schedule.pipelines[0].stages[0].actions = ParseActions("1F0", 100).value();
  EXPECT_THAT(ValidateSchedule(plan, schedule, true).message(),
              HasSubstr("1F0, microbatch 0: the virtual stage before comes first"));
  schedule.pipelines[0].stages[0].actions = ParseActions("0F0 1F0 0B0", 100).value();
  EXPECT_THAT(ValidateSchedule(plan, schedule, true).message(),
              HasSubstr("0B0, microbatch 0: the virtual stage behind comes first"));
}

}  // namespace
}  // namespace motley::planner
