#include "planner/setting/request_check.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/plan/each_rank.h"

namespace motley::planner {
namespace {

absl::Status CheckWidthAndSharding(const Setting& setting, const Plan& plan, bool zero_stage_too) {
  const PlanRequest& request = setting.request;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (size_t s = 0; s < pipeline.stages.size(); ++s) {
      const StagePlan& stage = pipeline.stages[s];
      for (const UnitPlan& unit : stage.units) {
        if (static_cast<int>(unit.ranks.size()) <= request.max_tp) continue;
        return absl::FailedPreconditionError(absl::StrCat("strategy ", plan.strategy, " put ", unit.ranks.size(),
                                                          " devices into one tensor-parallel unit, --max-tp allows ",
                                                          request.max_tp));
      }
      if (!zero_stage_too || !request.zero_stage || stage.units.size() < 2 || stage.zero_stage == *request.zero_stage) continue;
      return absl::FailedPreconditionError(absl::StrCat("strategy ", plan.strategy, " uses ZeRO ", stage.zero_stage, " in stage ",
                                                        s, ", --zero-stage asks for ", *request.zero_stage));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRecompute(const Setting& setting, const Plan& plan) {
  const RecomputePolicy policy = setting.request.recompute;
  absl::Status status;
  if (policy == RecomputePolicy::kAuto) return status;
  const OpSet wanted = policy == RecomputePolicy::kNone ? OpSet::None() : OpSet::All();
  ForEachUnit(plan, [&](const UnitPlan& unit) {
    for (const RankPlan& rank : unit.ranks) {
      if (rank.recompute == wanted || unit.batch() == 0 || !status.ok()) continue;
      status = absl::FailedPreconditionError(absl::StrCat("strategy ", plan.strategy, " recomputes '", ToText(rank.recompute),
                                                          "' on ", rank.device.value(), ", '", ToText(wanted),
                                                          "' was asked for; with --fidelity tuned every strategy follows that"));
    }
  });
  return status;
}

absl::Status CheckOffload(const Setting& setting, const Plan& plan) {
  absl::Status status;
  ForEachRank(plan, [&](const RankPlan& rank) {
    const OffloadKinds beyond = rank.offload.Without(setting.request.offload);
    if (!beyond.any() || !status.ok()) return;
    status =
        absl::FailedPreconditionError(absl::StrCat("strategy ", plan.strategy, " offloads ", InWords(beyond), " on ",
                                                   rank.device.value(), ", --offload allows ", InWords(setting.request.offload)));
  });
  return status;
}

}  // namespace

absl::Status FollowsRequest(const Setting& setting, const Plan& plan, bool zero_stage_too) {
  MOTLEY_RETURN_IF_ERROR(CheckWidthAndSharding(setting, plan, zero_stage_too));
  MOTLEY_RETURN_IF_ERROR(CheckRecompute(setting, plan));
  MOTLEY_RETURN_IF_ERROR(CheckOffload(setting, plan));
  if (setting.request.runnable) {
    if (const absl::Status runs = ValidateForEngine(plan, setting.workload.model); !runs.ok()) {
      return absl::Status(runs.code(),
                          absl::StrCat("strategy ", plan.strategy, ": the engine does not run its plan yet: ", runs.message()));
    }
  }
  std::map<DeviceId, int> stage_of;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (size_t s = 0; s < pipeline.stages.size(); ++s) {
      for (const UnitPlan& unit : pipeline.stages[s].units) {
        for (const RankPlan& rank : unit.ranks) stage_of[rank.device] = static_cast<int>(s);
      }
    }
  }
  for (size_t d = 0; d < setting.pinned_stage.size(); ++d) {
    const int pinned = setting.pinned_stage[d];
    if (pinned < 0) continue;
    const DeviceId& device = setting.cluster.devices[d].id;
    const auto found = stage_of.find(device);
    if (found != stage_of.end() && found->second == pinned) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("strategy ", plan.strategy, " cannot follow the pin of ", device.value(), " to stage", pinned, ": it ",
                     found == stage_of.end() ? "leaves it unused" : absl::StrCat("puts it into stage", found->second),
                     "; try --strategy auto or zorse"));
  }
  return absl::OkStatus();
}

}  // namespace motley::planner
