#include "planner/setting/setting.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"

namespace motley::planner {
namespace {

bool Offers(const ClusterNode& node) { return node.host_memory_bytes > 0 && node.host_link_bytes_per_second > 0; }

absl::Status NoSuchDevice(const Cluster& cluster, const std::string& what, const std::string& name) {
  std::vector<std::string> known;
  for (const ClusterNode& node : cluster.nodes) known.push_back(node.name.value());
  for (const ClusterDevice& device : cluster.devices) known.push_back(device.id.value());
  const std::string nearest = NearestWord(name, known);
  std::string hint = nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?");
  std::set<std::string> nodes;  // that have it, where it is a card
  for (const ClusterDevice& device : cluster.devices) {
    if (absl::EqualsIgnoreCase(cluster.kinds[device.kind].name, name)) nodes.insert(cluster.nodes[device.node].name.value());
  }
  if (!nodes.empty()) hint = absl::StrCat("; it is a card, of ", absl::StrJoin(nodes, ", "));
  return absl::NotFoundError(
      absl::StrCat(what, " '", name, "': the ", ClusterInWords(cluster), " has no such node or device", hint));
}

// Devices of a node or the one device of this name; empty = neither is there.
std::vector<int> DevicesNamed(const Cluster& cluster, const std::string& name) {
  for (const ClusterNode& node : cluster.nodes) {
    if (node.name.value() == name) return node.devices;
  }
  for (size_t d = 0; d < cluster.devices.size(); ++d) {
    if (cluster.devices[d].id.value() == name) return {static_cast<int>(d)};
  }
  return {};
}

absl::Status ValidateRequest(const PlanRequest& request) {
  if (request.zero_stage && (*request.zero_stage < 0 || *request.zero_stage > 3)) {
    return absl::InvalidArgumentError(absl::StrCat("zero_stage is ", *request.zero_stage, "; it must be 0, 1, 2 or 3"));
  }
  if (request.max_tp < 1)
    return absl::InvalidArgumentError(absl::StrCat("max_tp is ", request.max_tp, "; it must be at least 1"));
  if (request.memory_reserve && !(*request.memory_reserve >= 0 && *request.memory_reserve < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("memory_reserve is ", *request.memory_reserve,
                                                   "; it is a part of a card's memory: at least 0, below 1 (10% is 0.1)"));
  }
  if (request.budget_nodes < 1) {
    return absl::InvalidArgumentError(absl::StrCat("budget_nodes is ", request.budget_nodes, "; it must be at least 1"));
  }
  if (request.deadline && *request.deadline <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("deadline must be longer than 0 s; without one the budget of nodes decides");
  }
  return absl::OkStatus();
}

// The cluster without the excluded devices, which are listed.
absl::StatusOr<Cluster> WithoutExcluded(const Cluster& cluster, const PlanRequest& request, std::vector<UnusedDevice>* excluded) {
  std::vector<const std::string*> by(cluster.devices.size(), nullptr);
  for (const std::string& name : request.exclude) {
    const std::vector<int> devices = DevicesNamed(cluster, name);
    if (devices.empty()) return NoSuchDevice(cluster, "exclude", name);
    for (const int d : devices) {
      if (by[d] == nullptr) by[d] = &name;
    }
  }
  std::vector<int> kept;
  for (size_t d = 0; d < by.size(); ++d) {
    if (by[d] == nullptr) {
      kept.push_back(static_cast<int>(d));
    } else {
      excluded->push_back({cluster.devices[d].id, absl::StrCat("excluded by request (", *by[d], ")")});
    }
  }
  if (kept.empty()) return absl::InvalidArgumentError("every device is excluded; leave at least one");
  return excluded->empty() ? cluster : Restrict(cluster, kept);
}

bool IsExcluded(const std::vector<UnusedDevice>& excluded, const std::string& name) {
  return std::any_of(excluded.begin(), excluded.end(), [&](const UnusedDevice& device) {
    return device.device.value() == name || NodeOf(device.device).value() == name;
  });
}

// Every stage up to the last one that a pin names needs a device, a pinned one or one that is free.
absl::Status CheckNoStageIsEmpty(const std::vector<int>& stage_of) {
  auto free = std::count(stage_of.begin(), stage_of.end(), -1);
  const int last = *std::max_element(stage_of.begin(), stage_of.end());
  for (int stage = 0; stage < last; ++stage) {
    if (std::find(stage_of.begin(), stage_of.end(), stage) != stage_of.end() || free-- > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("the pins name stage", last, " and leave no device for stage", stage,
                                                   ": pin fewer devices, or one of them to it"));
  }
  return absl::OkStatus();
}

// By device, the stage that it must be in; -1 = any.
absl::StatusOr<std::vector<int>> PinnedStages(const Cluster& cluster, const PlanRequest& request,
                                              const std::vector<UnusedDevice>& excluded) {
  std::vector<int> stage_of(cluster.devices.size(), -1);
  for (const auto& [key, name] : request.pins) {
    int stage = -1;
    if (!key.starts_with("stage") || !absl::SimpleAtoi(key.substr(5), &stage) || stage < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("pin '", key, "=", name, "': the left side must be a stage, as in stage0=n1"));
    }
    if (stage >= static_cast<int>(cluster.devices.size())) {
      return absl::InvalidArgumentError(absl::StrCat("pin '", key, "=", name, "': there are at most as many stages as devices, ",
                                                     cluster.devices.size(), "; the first is stage0"));
    }
    const std::vector<int> devices = DevicesNamed(cluster, name);
    if (devices.empty() && IsExcluded(excluded, name)) {
      return absl::InvalidArgumentError(absl::StrCat("pin '", key, "=", name, "' contradicts exclude: ", name, " is excluded"));
    }
    if (devices.empty()) return NoSuchDevice(cluster, absl::StrCat("pin ", key), name);
    for (const int d : devices) {
      int& pinned = stage_of[d];
      if (pinned >= 0 && pinned != stage) {
        return absl::InvalidArgumentError(absl::StrCat("pins contradict each other: ", cluster.devices[d].id.value(),
                                                       " cannot be in stage", pinned, " and in stage", stage));
      }
      pinned = stage;
    }
  }
  MOTLEY_RETURN_IF_ERROR(CheckNoStageIsEmpty(stage_of));
  return stage_of;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Setting>> Setting::Create(Cluster cluster, Workload workload, PlanRequest request,
                                                         const LatencyBook* book) {
  MOTLEY_RETURN_IF_ERROR(Validate(cluster));
  MOTLEY_RETURN_IF_ERROR(Validate(workload));
  MOTLEY_RETURN_IF_ERROR(ValidateRequest(request));
  if (request.runnable) {
    if (const absl::Status runs = StateRunsHere(workload); !runs.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--state-bytes-per-parameter asks about other optimizers, --runnable for ",
                                                     "plans that run here, and ", runs.message(), ": leave one of them out",
                                                     request.from_job ? " (of a job: --no-runnable)" : ""));
    }
  }
  const bool as_published = request.keeps_replicas() || workload.state_bytes_per_parameter > 0;
  workload.state = as_published ? StateKeeping::kPapers : StateKeeping::kEngine;
  if (request.zero_stage == 0 && !request.keeps_replicas()) request.zero_stage = 1;
  std::vector<UnusedDevice> excluded;
  MOTLEY_ASSIGN_OR_RETURN(Cluster rest, WithoutExcluded(cluster, request, &excluded));
  MOTLEY_ASSIGN_OR_RETURN(std::vector<int> pinned_stage, PinnedStages(rest, request, excluded));
  MOTLEY_ASSIGN_OR_RETURN(Costs costs, Costs::Create(rest, workload, book));
  Links links(rest);
  return std::unique_ptr<Setting>(new Setting{std::move(rest), std::move(workload), std::move(request), std::move(excluded),
                                              std::move(links), std::move(costs), std::move(pinned_stage)});
}

Setting Setting::AsRun() const {
  Setting setting = *this;
  setting.request.runnable = true;
  setting.workload.state = StateKeeping::kEngine;
  setting.workload.state_bytes_per_parameter = 0;
  setting.costs.KeepStateAs(StateKeeping::kEngine);
  return setting;
}

Setting Setting::Part(const std::vector<int>& devices) const {
  std::set<int> kinds;
  std::vector<int> pinned;
  for (const int device : devices) {
    kinds.insert(KindOf(device));
    pinned.push_back(pinned_stage[device]);
  }
  Cluster part = Restrict(cluster, devices);
  Costs part_costs = costs.OfKinds({kinds.begin(), kinds.end()}, part);
  Links part_links(part);
  return {std::move(part), workload, request, excluded, std::move(part_links), std::move(part_costs), std::move(pinned)};
}

int Setting::FindDevice(const DeviceId& device) const {
  for (int d = 0; d < num_devices(); ++d) {
    if (cluster.devices[d].id == device) return d;
  }
  return -1;
}

OpSet Setting::RecomputedIn(size_t ranks, OpSet ops) const {
  if (ranks == 1 || ops.all()) return ops;
  return ops.Without(OpSet().With(Op::kAttnOut).With(Op::kResidual1));
}

std::vector<OpSet> Setting::RecomputeWays() const {
  std::vector<OpSet> ways;
  if (request.recompute != RecomputePolicy::kFull) ways.push_back(OpSet::None());
  if (request.recompute != RecomputePolicy::kNone) ways.push_back(OpSet::All());
  return ways;
}

PlanLimits Setting::limits() const {
  PlanLimits limits = request.runnable ? kEngineLimits : kWholeLanguage;
  limits.offload = limits.offload.And(request.offload);
  if (request.runnable) limits.steps_in_turn &= request.steps_in_turn;
  return limits;
}

bool Setting::OffersHost(int device) const { return Offers(cluster.nodes[cluster.devices[device].node]); }

bool Setting::HostsEverywhere() const { return std::all_of(cluster.nodes.begin(), cluster.nodes.end(), Offers); }

OffloadKinds Setting::MayOffload() const {
  const bool some = std::any_of(cluster.nodes.begin(), cluster.nodes.end(), Offers);
  return some ? limits().offload : OffloadKinds::None();
}

OffloadKinds Setting::MayOffload(const DeviceId& device) const {
  if (HostsEverywhere()) return limits().offload;  // without looking for it
  const int d = FindDevice(device);
  return d >= 0 ? MayOffload(d) : OffloadKinds::None();
}

int64_t Setting::UsableBytes(int device) const {
  const double part = request.memory_reserve ? 1 - *request.memory_reserve : cluster.usable_memory;
  return static_cast<int64_t>(std::floor(part * static_cast<double>(cluster.kinds[KindOf(device)].memory_bytes)));
}

}  // namespace motley::planner
