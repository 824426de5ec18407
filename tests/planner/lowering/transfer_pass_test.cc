// Who sends what to whom, and where it stands between what each computes.
#include "planner/lowering/transfer_pass.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "planner/lowering/stage_passes.h"
#include "tests/planner/lowering/stage_text.h"

namespace motley::planner {
namespace {

// "<1:0+2 F1.0 >2:0+2": receives samples [0, 2) from rank 1, computes, sends to rank 2. Of activations and gradients alike.
std::string MemberText(const StageMember& member, const StageSteps& stage) {
  std::string text;
  const auto add = [&text](char what, const Operation& op) {
    std::visit(
        [&](const auto& o) {
          if constexpr (requires { o.peer; }) {
            absl::StrAppend(&text, " ", std::string(1, what), o.peer, ":", o.first, "+", o.samples);
          }
        },
        op);
  };
  auto receive = member.receives.begin(), send = member.sends.begin();
  for (const MemberStep& own : member.steps) {
    for (int32_t i = 0; i < own.num_receives; ++i) add('<', *receive++);
    const StageStep& step = stage.steps[own.step];
    absl::StrAppend(&text, " ", std::string(1, "FBIW"[static_cast<int>(step.kind)]), step.unit, ".", own.microbatch);
    for (int32_t i = 0; i < own.num_sends; ++i) add('>', *send++);
  }
  return text.empty() ? text : text.substr(1);
}

// Stages of one virtual stage and one unit each, of ranks in order.
std::vector<std::string> Transfers(const std::vector<std::string>& actions,
                                   const std::vector<std::vector<std::string>>& microbatches) {
  PipelineSchedule schedule;
  Plan plan;
  PipelinePlan& pipeline = plan.pipelines.emplace_back();
  std::vector<StageSteps> stages;
  const auto count = static_cast<int32_t>(actions.size());
  for (int32_t s = 0; s < count; ++s) {
    StageTraits traits = StageOfUnits(std::vector<std::vector<int32_t>>(actions.size()), count);
    traits.units_of[s] = traits.units = {s};
    StageSchedule stage = ScheduleOf(actions[s]);
    stage.members.clear();
    for (const std::string& own : microbatches[s]) stage.members.push_back(ParseMicrobatches(own).value());
    schedule.stage_of.push_back(s);
    stages.push_back(WithParameters(ComputeSteps(stage, traits), traits));
    schedule.stages.push_back(std::move(stage));
    pipeline.stages.push_back({.ministages = {{s, s}}, .units = std::vector<UnitPlan>(microbatches[s].size()), .zero_stage = 0});
  }
  const PipelineWalk walk = WalkSchedule(plan, 0, schedule, true);
  std::vector<StageMember> members;
  for (size_t s = 0; s < stages.size(); ++s) {
    for (size_t m = 0; m < schedule.stages[s].members.size(); ++m) {
      const auto rank = static_cast<int32_t>(members.size());
      members.push_back({s, m, rank, MemberSteps(stages[s], schedule.stages[s].members[m], walk.times[s][m]), {}, {}});
    }
  }
  const auto result = WithTransfers(members, stages, schedule);
  if (!result.ok()) return {std::string(result.status().message())};
  std::vector<std::string> texts;
  for (const StageMember& member : *result) texts.push_back(MemberText(member, stages[member.stage]));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(TransferPassTest, AHandOverStandsBehindItsForwardAndBeforeItsUse) {
  EXPECT_EQ(Transfers({"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}, {{"2@0 2@2"}, {"2@0 2@2"}}),
            (Texts{"F0.0 >1:0+2 F0.1 >1:2+2 <1:0+2 B0.0 <1:2+2 B0.1", "<0:0+2 F1.0 B1.0 >0:0+2 <0:2+2 F1.1 B1.1 >0:2+2"}));
}

// Everybody sends from the first sample to the last; who receives from several takes the last first.
TEST(TransferPassTest, StagesMayCutTheBatchDifferently) {
  EXPECT_EQ(Transfers({"0F0 0B0", "1F0 1B0"}, {{"3@0", "3@3"}, {"2@0", "2@2", "2@4"}}),
            (Texts{"F0.0 >2:0+2 >3:2+1 <3:2+1 <2:0+2 B0.0", "F0.0 >3:3+1 >4:4+2 <4:4+2 <3:3+1 B0.0", "<0:0+2 F1.0 B1.0 >0:0+2",
                   "<1:3+1 <0:2+1 F1.0 B1.0 >0:2+1 >1:3+1", "<1:4+2 F1.0 B1.0 >1:4+2"}));
}

TEST(TransferPassTest, AMemberSkipsRoundsThatItHasNoMicrobatchIn) {
  EXPECT_EQ(Transfers({"0F0 0F1 0B0 0B1"}, {{"2@0 2@3", "1@2:1"}}), (Texts{"F0.0 F0.1 B0.0 B0.1", "F0.0 B0.0"}));
}

TEST(TransferPassTest, WhoWouldWaitForEverIsNamed) {
  EXPECT_EQ(Transfers({"0F0 0B0 0F1 0B1", "1F0 1B0"}, {{"1@0 1@1"}, {"2@0"}}),
            (Texts{"the plan's ranks would wait for each other: rank 0 before the backward of unit 0, microbatch 0"}));
}

}  // namespace
}  // namespace motley::planner
