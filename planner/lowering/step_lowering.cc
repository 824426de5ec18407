#include "planner/lowering/step_lowering.h"

#include "absl/strings/str_cat.h"
#include "planner/lowering/step_lowering_engine.h"

namespace motley::planner {
namespace {

std::string NameOf(const PlanView& view, const ActorView& actor) {
  const std::string first = view.ranks[actor.first_rank].plan->device.value();
  const size_t others = actor.unit_ranks.size() * static_cast<size_t>(actor.ranks_per_unit) - 1;
  return others == 0 ? first : absl::StrCat(first, " and ", others, " like it");
}

}  // namespace

LoweredPlan Lower(const Setting& setting, const PlanView& view) {
  GraphWriter writer(setting.links);
  for (const ActorView& actor : view.actors) {
    const StageView& stage = view.stages[actor.stage];
    writer.AddActor({NameOf(view, actor), stage.pipeline, stage.index, static_cast<int>(actor.units()) * actor.ranks_per_unit,
                     view.ranks[actor.first_rank].device});
  }
  PlanFlows flows(setting, view, &writer);
  SecondsTable seconds(setting, view);
  std::vector<double> owed_seconds(view.actors.size(), 0);
  const LoweringContext context{setting, view, writer, flows, seconds, owed_seconds};
  StepEnd end(context);
  std::vector<StageGroup> groups;
  groups.reserve(view.stages.size());
  for (size_t s = 0; s < view.stages.size(); ++s) {
    const int stage = static_cast<int>(s);
    groups.emplace_back(context, stage, WorkOf(view, stage, context.tied()), &end);
  }
  StepEngine engine(context, &groups, &end);
  engine.Run();
  end.Finish();
  return {writer.Finish(), engine.in_flight()};
}

}  // namespace motley::planner
