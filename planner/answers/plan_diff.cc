#include "planner/answers/plan_diff.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/plan_words.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

// What a device is told, as words in a fixed order.
using Duty = std::vector<std::pair<std::string, std::string>>;

std::string OffloadText(const OffloadKinds& offload, int64_t prefetch) {
  if (!offload.any()) return "nothing";
  return absl::StrCat(absl::StrJoin(WordsOf(offload), " "), prefetch != 1 ? absl::StrCat(", ", prefetch, " ahead") : "");
}

void AddDuties(const Plan& plan, std::vector<DeviceId>* order, std::map<DeviceId, Duty>* duties) {
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    const std::vector<StagePlan>& stages = plan.pipelines[p].stages;
    for (size_t s = 0; s < stages.size(); ++s) {
      for (const UnitPlan& unit : stages[s].units) {
        for (const RankPlan& rank : unit.ranks) {
          order->push_back(rank.device);
          (*duties)[rank.device] = {
              {"role", unit.microbatches.empty() ? "stores" : "computes"},
              {"place", absl::StrCat("pipeline ", p, " stage ", s)},
              {"layers", LayersText(stages[s].ministages)},
              {"batch", BatchText(unit.microbatches)},
              {"tensor-parallel share", ShareText(rank.tp_share)},
              {"shard", stages[s].zero_stage == 0 ? "all" : ShareText(rank.shard_ratio)},
              {"zero stage", absl::StrCat(stages[s].zero_stage)},
              {"in flight", stages[s].in_flight == 0 ? "as the schedule says" : absl::StrCat(stages[s].in_flight)},
              {"recompute", ToText(rank.recompute)},
              {"offload", OffloadText(rank.offload, stages[s].prefetch)},
          };
        }
      }
    }
  }
  for (const UnusedDevice& unused : plan.unused) {
    order->push_back(unused.device);
    (*duties)[unused.device] = {{"role", absl::StrCat("unused (", unused.because, ")")}};
  }
}

// Only what both have is compared; a device without a duty has a role alone.
std::vector<Change> Compare(const Duty& before, const Duty& after) {
  std::vector<Change> changes;
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    if (before[i].second != after[i].second) changes.push_back({before[i].first, before[i].second, after[i].second});
  }
  for (size_t i = before.size(); i < after.size(); ++i) changes.push_back({after[i].first, "", after[i].second});
  return changes;
}

std::vector<Change> CompareHeads(const Plan& a, const Plan& b) {
  std::vector<Change> changes;
  const auto add = [&changes](const char* what, const std::string& before, const std::string& after) {
    if (before != after) changes.push_back({what, before, after});
  };
  add("strategy", a.strategy, b.strategy);
  add("cluster", a.cluster, b.cluster);
  add("model", a.model, b.model);
  add("global batch", absl::StrCat(a.global_batch), absl::StrCat(b.global_batch));
  add("sequence", absl::StrCat(a.seq_len), absl::StrCat(b.seq_len));
  add("dtype", std::string(DTypeName(a.dtype)), std::string(DTypeName(b.dtype)));
  add("schedule", std::string(ScheduleName(a.schedule)), std::string(ScheduleName(b.schedule)));
  add("pipelines", absl::StrCat(a.pipelines.size()), absl::StrCat(b.pipelines.size()));
  add("zero between pipelines", absl::StrCat(a.pipelines_zero_stage), absl::StrCat(b.pipelines_zero_stage));
  add("optimizer steps", std::string(WordOf(a.optimizer_steps)), std::string(WordOf(b.optimizer_steps)));
  // A plan that was read from its text has no predictions: nothing to compare with.
  if (a.predicted.step_seconds > 0 && b.predicted.step_seconds > 0) {
    add("step", SecondsText(a.predicted.step_seconds), SecondsText(b.predicted.step_seconds));
    add("bound by", a.predicted.binding_constraint, b.predicted.binding_constraint);
  }
  return changes;
}

}  // namespace

PlanDiff Diff(const Plan& before, const Plan& after) {
  PlanDiff diff;
  diff.plan = CompareHeads(before, after);
  std::vector<DeviceId> order;
  std::map<DeviceId, Duty> a, b;
  AddDuties(before, &order, &a);
  AddDuties(after, &order, &b);
  const Duty absent = {{"role", "not in the plan"}};
  std::map<DeviceId, bool> done;
  for (const DeviceId& device : order) {
    if (std::exchange(done[device], true)) continue;
    const auto in_a = a.find(device), in_b = b.find(device);
    std::vector<Change> changes = Compare(in_a == a.end() ? absent : in_a->second, in_b == b.end() ? absent : in_b->second);
    if (changes.empty()) continue;
    if (!diff.devices.empty() && diff.devices.back().changes == changes) {
      diff.devices.back().devices.push_back(device);
    } else {
      diff.devices.push_back({{device}, std::move(changes)});
    }
  }
  return diff;
}

std::string ToText(const PlanDiff& diff) {
  const auto change_text = [](const Change& change) {
    if (change.before.empty()) return absl::StrCat(change.what, " ", change.after);
    return absl::StrCat(change.what, " ", change.before, " -> ", change.after);
  };
  std::string text;
  for (const Change& change : diff.plan) absl::StrAppend(&text, change_text(change), "\n");
  for (const DeviceChanges& group : diff.devices) {
    absl::StrAppend(&text, DevicesText(group.devices), ":");
    for (size_t i = 0; i < group.changes.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? " " : ", ", change_text(group.changes[i]));
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace motley::planner
