#include "planner/plan/schedule_listing.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/plan/schedule.h"

namespace motley::planner {
namespace {

class Listing {
 public:
  Listing(const Plan& plan, const Schedule& schedule, ScheduleFamily family)
      : plan_(plan), schedule_(schedule), family_(family) {}

  std::string Text() {
    for (size_t p = 0; p < schedule_.pipelines.size(); ++p) {
      AddVirtualStages(p);
      for (size_t s = 0; s < schedule_.pipelines[p].stages.size(); ++s) AddStage(p, s);
    }
    return std::move(text_);
  }

 private:
  void AddVirtualStages(size_t p) {
    const PipelineSchedule& pipeline = schedule_.pipelines[p];
    std::vector<size_t> next(pipeline.stages.size(), 0);
    for (size_t v = 0; v < pipeline.stage_of.size(); ++v) {
      const auto s = static_cast<size_t>(pipeline.stage_of[v]);
      const LayerRange& layers = plan_.pipelines[p].stages[s].ministages[next[s]++];
      absl::StrAppend(&text_, "  virtual stage ", v, ": ", NameOf(p, s), ", layers ", layers.first, "-", layers.last,
                      v == 0 ? ", the embedding" : "", v + 1 == pipeline.stage_of.size() ? ", the head" : "", "\n");
    }
  }

  std::string NameOf(size_t p, size_t s) const {
    return absl::StrCat(schedule_.pipelines.size() > 1 ? absl::StrCat("pipeline ", p, " ") : "", "stage ", s);
  }

  void AddStage(size_t p, size_t s) {
    const StageSchedule& stage = schedule_.pipelines[p].stages[s];
    const StagePlan& plan = plan_.pipelines[p].stages[s];
    const bool by_block = TraitsOf(family_).by_ministage && plan.zero_stage == 3 && plan.units.size() > 1;
    absl::StrAppend(&text_, "  ", NameOf(p, s), ": ", NumRounds(stage), " rounds, ",
                    by_block ? "block by block" : "microbatch by microbatch", SumsText(plan, schedule_.pipelines[p]), "\n");
    for (size_t m = 0; m < stage.members.size(); ++m) {
      absl::StrAppend(&text_, "    ", plan.units[m].ranks[0].device.value());
      if (stage.members[m].empty()) {
        absl::StrAppend(&text_, "  computes nothing\n");
        continue;
      }
      absl::StrAppend(&text_, "  samples ", ToText(stage.members[m]), "\n      ", ToText(ActionsOf(stage, m)), "\n");
    }
  }

  // Where a stage that sums its units in turn sums them with other pipelines.
  const char* SumsText(const StagePlan& stage, const PipelineSchedule& pipeline) const {
    const bool trains = &schedule_ == &*plan_.training;  // a validation pass sums nothing
    if (!trains || plan_.pipelines.size() == 1 || stage.units.size() == 1 || stage.zero_stage < 2) return "";
    return pipeline.sums_at_once ? ", sums between pipelines at once" : ", sums between pipelines behind all others";
  }

  const Plan& plan_;
  const Schedule& schedule_;
  const ScheduleFamily family_;
  std::string text_;
};

}  // namespace

std::string ScheduleListing(const Plan& plan) {
  if (!plan.training) return "the plan has no schedule: it was not finished, or made by an older motley\n";
  std::string text = absl::StrCat("training, ", std::string(ScheduleName(plan.schedule)), "\n");
  text += Listing(plan, *plan.training, plan.schedule).Text();
  if (plan.validation) {
    absl::StrAppend(&text, "validation, forward only\n", Listing(plan, *plan.validation, ScheduleFamily::kLayered).Text());
  }
  return text;
}

}  // namespace motley::planner
