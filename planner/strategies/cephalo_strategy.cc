// cephalo (arXiv 2411.01075) away from a live cluster.
//
// As published: every GPU computes at least one sample, layers are recomputed in full, boundaries wait in host memory
// (section 2.2) where the cluster's file knows it, the split is that of eq. 4 (cephalo_equation4.h), uneven shards only where
// needed. Tuned: the exact split of eq. 2 and 3; batch 0, share 0 and recomputation or not are free for every device; with and
// without offload; a node by itself where the network costs more than the others bring.
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "planner/pricing/evaluate.h"
#include "planner/split/group_split.h"
#include "planner/strategies/catalog.h"
#include "planner/strategies/one_stage.h"

namespace motley::planner {
namespace {

bool CanOffload(const Setting& setting) {
  for (const ClusterNode& node : setting.cluster.nodes) {
    if (node.host_memory_bytes == 0 || node.host_link_bytes_per_second == 0) return false;
  }
  return true;
}

bool IsPinned(const Setting& setting, int device) { return setting.pinned_stage[static_cast<size_t>(device)] >= 0; }

GroupQuestion Question(const Setting& setting, std::vector<int> devices, bool offload) {
  GroupQuestion question;
  question.devices = std::move(devices);
  question.batch = setting.workload.global_batch;
  question.layers = setting.workload.model.num_layers;
  question.embedding = question.head = true;
  question.zero_stage = setting.request.zero_stage.value_or(3);
  question.ministages = question.zero_stage == 3 ? 1 : question.layers;
  question.offload_activations = offload;
  return question;
}

Plan ToPlan(const Setting& setting, const GroupQuestion& question, const GroupAnswer& answer, const std::string& because) {
  StagePlan stage = ToStage(setting, answer, question.zero_stage);
  for (UnitPlan& unit : stage.units) {
    for (RankPlan& rank : unit.ranks) rank.offload_activations = question.offload_activations && unit.batch() > 0;
  }
  return OneStagePlan(setting, "cephalo", ScheduleFamily::kLayered, question.layers / question.ministages, std::move(stage),
                      because);
}

// Leaves out devices that got no samples, as long as the rest is as fast without their memory.
void DropIdle(const Setting& setting, GroupQuestion* question, GroupAnswer* answer) {
  const std::vector<GroupMember> members = answer->members;
  for (const GroupMember& member : members) {
    if (question->devices.size() == 1 || member.batch > 0 || IsPinned(setting, member.device)) continue;
    GroupQuestion fewer = *question;
    std::erase(fewer.devices, member.device);
    absl::StatusOr<GroupAnswer> without = SplitGroup(setting, fewer);
    if (!without.ok()) continue;
    const double now = answer->forward_seconds + answer->backward_seconds;
    if (without->forward_seconds + without->backward_seconds > now * (1 + 1e-9)) continue;
    *question = std::move(fewer);
    *answer = *std::move(without);
  }
}

// All devices; then one node of each make, alone.
std::vector<std::vector<int>> Candidates(const Setting& setting) {
  std::vector<std::vector<int>> candidates(1);
  bool pinned = false;
  for (int d = 0; d < setting.num_devices(); ++d) {
    candidates[0].push_back(d);
    pinned = pinned || IsPinned(setting, d);
  }
  if (pinned || setting.cluster.nodes.size() < 2) return candidates;
  std::set<std::tuple<std::vector<int>, double, double>> makes;
  for (const ClusterNode& node : setting.cluster.nodes) {
    std::vector<int> kinds;
    for (const int d : node.devices) kinds.push_back(setting.KindOf(d));
    if (makes.insert({kinds, node.device_link_bytes_per_second, node.host_link_bytes_per_second}).second) {
      candidates.push_back(node.devices);
    }
  }
  return candidates;
}

absl::StatusOr<Plan> PlanPublished(const Setting& setting) {
  GroupQuestion question = Question(setting, Candidates(setting)[0], CanOffload(setting));
  question.allow_keep = false;
  MOTLEY_ASSIGN_OR_RETURN(const GroupAnswer answer, SplitGroupByEquation4(setting, question));
  return ToPlan(setting, question, answer, "");
}

absl::StatusOr<Plan> PlanTuned(const Setting& setting) {
  std::optional<Plan> best;
  double best_seconds = std::numeric_limits<double>::infinity();
  absl::Status why_not;
  std::string because = "the step is no faster with it, and its memory is not needed";
  for (const std::vector<int>& devices : Candidates(setting)) {
    for (const bool offload : {false, true}) {
      if (offload && !CanOffload(setting)) continue;
      GroupQuestion question = Question(setting, devices, offload);
      absl::StatusOr<GroupAnswer> answer = SplitGroup(setting, question);
      if (!answer.ok()) {
        if (why_not.ok()) why_not = answer.status();
        continue;
      }
      DropIdle(setting, &question, &*answer);
      Plan plan = ToPlan(setting, question, *answer, because);
      MOTLEY_ASSIGN_OR_RETURN(const QuickPrice price, EstimatePlan(setting, plan));
      if (price.step_seconds >= best_seconds) continue;
      best_seconds = price.step_seconds;
      best = std::move(plan);
    }
    because = "the network would cost more than it saves";
  }
  if (best) return *std::move(best);
  return why_not;
}

}  // namespace

absl::StatusOr<Plan> PlanCephaloOffline(const Setting& setting) {
  MOTLEY_RETURN_IF_ERROR(CheckOneStage(setting, "cephalo"));
  return setting.request.fidelity == Fidelity::kPublished ? PlanPublished(setting) : PlanTuned(setting);
}

}  // namespace motley::planner
