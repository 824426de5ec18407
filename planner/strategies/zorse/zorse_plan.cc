#include "planner/strategies/zorse/zorse_plan.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "planner/search/plan_moves.h"
#include "planner/setting/blank_plan.h"
#include "planner/split/group_split.h"

namespace motley::planner {

Plan ToPlan(const Setting& setting, const ZorseModel& model, const ZorseChoice& choice, bool even_shards) {
  Plan plan = BlankPlan(setting, "zorse", ScheduleFamily::kLayered);
  if (StepsInTurn(setting, choice)) plan.optimizer_steps = OptimizerSteps::kInTurn;
  PipelinePlan& pipeline = plan.pipelines.emplace_back();
  pipeline.stages.resize(choice.groups.size());
  for (size_t s = 0; s < choice.groups.size(); ++s) {
    const ZorseGroup& group = *choice.groups[s];
    const std::vector<double> shares = model.Shares(choice, s, even_shards);
    StagePlan& stage = pipeline.stages[s];
    stage.zero_stage = 2;
    for (size_t i = 0; i < group.devices.size(); ++i) {
      const ZorseLoad::Member& member = choice.loads[s]->members[i];
      RankPlan rank = RankOn(setting, group.devices[i]);
      rank.recompute = choice.loads[s]->recompute ? OpSet::All() : OpSet::None();
      rank.shard_ratio = shares[i];
      if (group.host_known) rank.offload = choice.offload;
      UnitPlan unit;
      unit.ranks.push_back(std::move(rank));
      unit.microbatches.assign(static_cast<size_t>(member.count), member.size);
      if (member.last > 0) unit.microbatches.push_back(member.last);
      stage.units.push_back(std::move(unit));
    }
  }
  AssignLayers(choice.layers, choice.ministages, &pipeline);
  return plan;
}

absl::StatusOr<Plan> WithSplitGroups(const Setting& setting, const ZorseModel& model, const ZorseChoice& choice,
                                     RecomputePolicy recompute) {
  Plan plan = ToPlan(setting, model, choice, false);
  for (size_t s = 0; s < choice.groups.size(); ++s) {
    const ZorseGroup& group = *choice.groups[s];
    GroupQuestion question;
    question.devices = group.devices;
    question.batch = setting.workload.global_batch;
    question.layers = choice.layers[s];
    question.ministages = choice.ministages;
    question.embedding = s == 0;
    question.head = s + 1 == choice.groups.size();
    question.stage = static_cast<int>(s);
    question.num_stages = static_cast<int>(choice.groups.size());
    question.zero_stage = 2;
    question.largest_microbatch = choice.microbatch;
    question.allow_keep = recompute != RecomputePolicy::kFull;
    question.allow_recompute = recompute != RecomputePolicy::kNone;
    if (group.host_known) question.offload = choice.offload;
    question.steps_in_turn = StepsInTurn(setting, choice);
    MOTLEY_ASSIGN_OR_RETURN(const GroupAnswer answer, SplitGroup(setting, question));
    StagePlan stage = ToStage(setting, answer, 2, question.offload);
    stage.ministages = plan.pipelines[0].stages[s].ministages;
    plan.pipelines[0].stages[s] = std::move(stage);
  }
  return plan;
}

}  // namespace motley::planner
