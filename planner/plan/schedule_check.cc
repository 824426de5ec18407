#include "planner/plan/schedule_check.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "planner/plan/virtual_stages.h"

namespace motley::planner {
namespace {

constexpr size_t kMostNamed = 4;  // of members that wait for each other
constexpr absl::string_view kRemedy = "; leave schedules out of the plan and they are made anew";

class Checker {
 public:
  Checker(const Plan& plan, const Schedule& schedule, bool training) : plan_(plan), schedule_(schedule), training_(training) {}

  absl::Status Check() {
    if (schedule_.pipelines.size() != plan_.pipelines.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Name(), ": ", schedule_.pipelines.size(), " pipelines, the plan has ", plan_.pipelines.size(), kRemedy));
    }
    for (pipeline_ = 0; pipeline_ < plan_.pipelines.size(); ++pipeline_) MOTLEY_RETURN_IF_ERROR(CheckPipeline());
    return absl::OkStatus();
  }

 private:
  std::string Name() const { return training_ ? "schedules.training" : "schedules.validation"; }
  template <typename... Parts>
  absl::Status Wrong(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(Name(), "[", pipeline_, "]", parts..., kRemedy));
  }
  template <typename... Parts>
  absl::Status WrongInStage(size_t s, const Parts&... parts) const {
    return Wrong(".stages[", s, "]", parts...);
  }
  std::string DeviceOf(size_t s, size_t m) const { return PipelineOf().stages[s].units[m].ranks[0].device.value(); }
  const PipelinePlan& PipelineOf() const { return plan_.pipelines[pipeline_]; }
  const PipelineSchedule& ScheduleOf() const { return schedule_.pipelines[pipeline_]; }

  absl::Status CheckPipeline() {
    MOTLEY_RETURN_IF_ERROR(CheckVirtualStages());
    int64_t samples = 0;
    for (size_t s = 0; s < PipelineOf().stages.size(); ++s) {
      MOTLEY_RETURN_IF_ERROR(CheckMembers(s));
      int64_t of_stage = 0;
      MOTLEY_RETURN_IF_ERROR(CheckSamples(s, &of_stage));
      if (s == 0) samples = of_stage;
      if (of_stage != samples) return WrongInStage(s, ": ", of_stage, " samples, stage 0 has ", samples);
      MOTLEY_RETURN_IF_ERROR(CheckActions(s));
    }
    return CheckWaits();
  }

  absl::Status CheckVirtualStages() const {
    const PipelineSchedule& schedule = ScheduleOf();
    const std::vector<StagePlan>& stages = PipelineOf().stages;
    if (schedule.stages.size() != stages.size()) {
      return Wrong(": ", schedule.stages.size(), " stages, the plan has ", stages.size());
    }
    std::vector<int32_t> stage_of;
    for (const VirtualStage& v : VirtualStagesOf(PipelineOf())) stage_of.push_back(static_cast<int32_t>(v.stage));
    if (schedule.stage_of == stage_of) return absl::OkStatus();
    return Wrong(".stage_of: virtual stages must lie on the stages as the plan's ministages do");
  }

  absl::Status CheckMembers(size_t s) const {
    const StageSchedule& stage = ScheduleOf().stages[s];
    const std::vector<UnitPlan>& units = PipelineOf().stages[s].units;
    if (stage.members.size() != units.size()) {
      return WrongInStage(s, ": ", stage.members.size(), " devices, the plan's stage has ", units.size());
    }
    for (size_t m = 0; m < units.size(); ++m) {
      std::set<int64_t> rounds;
      std::vector<int64_t> sizes;
      for (const ScheduledMicrobatch& microbatch : stage.members[m]) {
        sizes.push_back(microbatch.samples);
        if (microbatch.samples < 1) return WrongInStage(s, ": a microbatch of ", DeviceOf(s, m), " has no sample");
        if (!rounds.insert(microbatch.round).second) {
          return WrongInStage(s, ": ", DeviceOf(s, m), " has two microbatches in round ", microbatch.round);
        }
        if (microbatch.round != *rounds.rbegin()) return WrongInStage(s, ": the rounds of ", DeviceOf(s, m), " go back");
      }
      if (training_ && sizes != units[m].microbatches) {
        return WrongInStage(s, ": the microbatches of ", DeviceOf(s, m), " are not those of the plan");
      }
    }
    return absl::OkStatus();
  }

  // Every sample is one member's.
  absl::Status CheckSamples(size_t s, int64_t* samples) const {
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (const MemberMicrobatches& member : ScheduleOf().stages[s].members) {
      for (const ScheduledMicrobatch& microbatch : member) ranges.emplace_back(microbatch.first, microbatch.end());
    }
    std::sort(ranges.begin(), ranges.end());
    for (const auto& [first, end] : ranges) {
      if (first != *samples) {
        return WrongInStage(s, ": sample ", std::min(first, *samples),
                            first < *samples ? " is in two microbatches" : " is in none");
      }
      *samples = end;
    }
    return absl::OkStatus();
  }

  // By virtual stage of this stage and round: what was done of it.
  struct Done {
    bool forward = false, input = false, weights = false;
  };

  absl::Status CheckActions(size_t s) const {
    const StageSchedule& stage = ScheduleOf().stages[s];
    const auto rounds = static_cast<size_t>(NumRounds(stage));
    const std::vector<int32_t>& stage_of = ScheduleOf().stage_of;
    std::vector<std::vector<Done>> done(stage_of.size());
    for (size_t v = 0; v < stage_of.size(); ++v) {
      if (stage_of[v] == static_cast<int32_t>(s)) done[v].resize(rounds);
    }
    for (const Action& action : stage.actions) {
      const std::string text = ToText(std::vector<Action>{action});
      if (action.virtual_stage >= static_cast<int32_t>(stage_of.size()) ||
          stage_of[action.virtual_stage] != static_cast<int32_t>(s)) {
        return WrongInStage(s, ".actions: ", text, ": the stage does not hold virtual stage ", action.virtual_stage);
      }
      if (action.last > static_cast<int64_t>(rounds))
        return WrongInStage(s, ".actions: ", text, ": there are ", rounds, " rounds");
      if (TraitsOf(Family()).by_ministage && action.last - action.first != static_cast<int64_t>(rounds)) {
        return WrongInStage(s, ".actions: ", text, ": in a layered schedule all ", rounds, " rounds pass together");
      }
      for (int64_t round = action.first; round < action.last; ++round) {
        if (const char* rule =
                Do(action.kind, &done[action.virtual_stage], action.virtual_stage, static_cast<size_t>(round), done)) {
          return WrongInStage(s, ".actions: ", text, ", microbatch ", round, ": ", rule);
        }
      }
    }
    return CheckAllDone(s, done);
  }

  ScheduleFamily Family() const { return training_ ? plan_.schedule : ScheduleFamily::kLayered; }

  // nullptr = allowed.
  const char* Do(ActionKind kind, std::vector<Done>* of_stage, int32_t v, size_t round,
                 const std::vector<std::vector<Done>>& all) const {
    Done& done = (*of_stage)[round];
    // In the stage itself; what comes from others is the walk's.
    const auto before = static_cast<size_t>(v) - 1, behind = static_cast<size_t>(v) + 1;
    switch (kind) {
      case ActionKind::kForward:
        if (done.forward) return "computed twice";
        if (v > 0 && !all[before].empty() && !all[before][round].forward) return "the virtual stage before comes first";
        done.forward = true;
        return nullptr;
      case ActionKind::kBackward:
      case ActionKind::kInputGradient:
        if (!training_) return "a validation pass has no backward";
        if ((kind == ActionKind::kInputGradient) != TraitsOf(plan_.schedule).splits_backward) {
          return "this family of schedules does not compute backwards so (B whole, or I and W apart)";
        }
        if (!done.forward) return "its forward comes first";
        if (done.input) return "computed twice";
        if (behind < all.size() && !all[behind].empty() && !all[behind][round].input)
          return "the virtual stage behind comes first";
        done.input = true;
        done.weights = kind == ActionKind::kBackward;
        return nullptr;
      case ActionKind::kWeightGradient:
        if (!done.input) return "its input's gradient comes first";
        if (done.weights) return "computed twice";
        done.weights = true;
        return nullptr;
    }
    return "not known";
  }

  absl::Status CheckAllDone(size_t s, const std::vector<std::vector<Done>>& all) const {
    for (size_t v = 0; v < all.size(); ++v) {
      for (size_t round = 0; round < all[v].size(); ++round) {
        const Done& done = all[v][round];
        if (done.forward && (!training_ || (done.input && done.weights))) continue;
        return WrongInStage(s, ".actions: microbatch ", round, " of virtual stage ", v, " is never computed ",
                            !done.forward ? "forward" : "backward");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckWaits() const {
    const PipelineWalk walk = WalkSchedule(plan_, pipeline_, ScheduleOf(), training_);
    if (walk.stuck.empty()) return absl::OkStatus();
    return Wrong(": ranks would wait for each other: ", WaitsText(PipelineOf(), ScheduleOf(), walk));
  }

  const Plan& plan_;
  const Schedule& schedule_;
  const bool training_;
  size_t pipeline_ = 0;
};

}  // namespace

std::string WaitsText(const PipelinePlan& plan, const PipelineSchedule& schedule, const PipelineWalk& walk) {
  std::string text;
  for (size_t i = 0; i < std::min(walk.stuck.size(), kMostNamed); ++i) {
    const StuckMember& stuck = walk.stuck[i];
    Action action = schedule.stages[stuck.stage].actions[stuck.action];
    action.first = stuck.microbatch;
    action.last = stuck.microbatch + 1;
    absl::StrAppend(&text, i > 0 ? ", " : "", plan.stages[stuck.stage].units[stuck.member].ranks[0].device.value(), " before ",
                    ToText(std::vector<Action>{action}));
  }
  if (walk.stuck.size() > kMostNamed) absl::StrAppend(&text, " and ", walk.stuck.size() - kMostNamed, " more");
  return text;
}

absl::Status ValidateSchedule(const Plan& plan, const Schedule& schedule, bool training) {
  return Checker(plan, schedule, training).Check();
}

}  // namespace motley::planner
