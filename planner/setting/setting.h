// Everything that planning starts from: cluster, workload, what the user asks for; and what follows from them once: links and
// costs. Strategies read it and nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/model/model_slice.h"
#include "planner/cluster/cluster.h"
#include "planner/cluster/links.h"
#include "planner/costs/costs.h"
#include "planner/costs/latency_book.h"
#include "planner/costs/workload.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_engine_limits.h"
#include "planner/plan/unit_slices.h"

namespace motley::planner {

// As published keeps a system's own limits (Cephalo: every GPU at least one sample; Zorse: even shards inside a group, powers of
// two); tuned removes what the paper gives no reason for. Both are priced by the same simulator.
enum class Fidelity { kPublished, kTuned };
// Whether layers are recomputed: as memory asks for it, never, everywhere.
enum class RecomputePolicy { kAuto, kNone, kFull };

struct PlanRequest {
  std::string strategy = "auto";
  Fidelity fidelity = Fidelity::kTuned;
  std::optional<int> zero_stage;            // 0..3, where the strategy leaves it open
  std::vector<std::string> exclude;         // devices or nodes: "n3/gpu2", "n3"
  std::map<std::string, std::string> pins;  // "stage0" -> node or device: it must be in that stage
  int max_tp = 8;
  RecomputePolicy recompute = RecomputePolicy::kAuto;
  OffloadKinds offload = OffloadKinds::All();  // what may wait in host memory, where plans may use it at all
  bool from_job = false;                       // answers name a job file's keys, not flags of the command line
  bool runnable = false;                   // only plans that the engine runs today (ValidateForEngine); changes no plan's price
  bool steps_in_turn = false;              // nothing global decides a step (clipping, a loss scale): units may step in turn
  std::optional<double> memory_reserve;    // part of a card no plan uses; replaces the cluster's usable_memory
  int64_t budget_nodes = 1'000'000;        // search nodes: deterministic
  std::optional<absl::Duration> deadline;  // wall clock: marks the plan as not reproducible

  // With ZeRO 0 every rank keeps and steps all of its stage's state, as published systems do. Otherwise it is ZeRO 1 in even
  // shares (ShareReplicas), and no strategy has it.
  bool keeps_replicas() const { return fidelity == Fidelity::kPublished && !runnable; }
};

struct Setting {
  Cluster cluster;  // excluded devices are gone
  Workload workload;
  PlanRequest request;
  std::vector<UnusedDevice> excluded;  // to be listed in the plan
  Links links;
  Costs costs;
  std::vector<int> pinned_stage;  // by device: the stage that the request's pins put it in; -1 = free

  // Errors of Validate(cluster), Validate(workload); NOT_FOUND: an excluded or pinned device that is not there;
  // INVALID_ARGUMENT: pins that contradict each other or leave a stage without a device. `book` is read during the call only; may
  // be nullptr.
  static absl::StatusOr<std::unique_ptr<Setting>> Create(Cluster cluster, Workload workload, PlanRequest request,
                                                         const LatencyBook* book);

  // The same asking for plans that the engine runs, with the state that it keeps.
  Setting AsRun() const;
  // The same request on some of the devices (ascending), as if the others had been excluded; these are not listed.
  Setting Part(const std::vector<int>& devices) const;
  int64_t UsableBytes(int device) const;  // memory less reserve
  // What of the plan language strategies may use: with `runnable` each of them answers with a plan that the engine runs, and with
  // steps in turn where the request says so; and of offload what it allows.
  PlanLimits limits() const;
  bool MayRecomputeByOperator() const { return request.recompute == RecomputePolicy::kAuto; }
  // Of `ops`, what a rank of a unit of so many recomputes: what ends in a sum over the unit is kept.
  OpSet RecomputedIn(size_t ranks, OpSet ops) const;
  // Parts of a layer that tensor parallelism does not cut.
  int64_t tp_parts() const { return NumParts(workload.model); }
  // Whether the plan is within the limits.
  bool MayBe(const Plan& plan) const {
    return ValidateWithin(limits(), plan).ok() && CheckTensorParallel(plan, workload.model).ok();
  }
  // What a rank may recompute where that is nothing or everything, as asked for; what costs least time first.
  std::vector<OpSet> RecomputeWays() const;
  // A question of its node: it says how much host memory it has and how fast the way there is.
  bool OffersHost(int device) const;
  bool HostsEverywhere() const;
  // Within the limits: what some device may, and what this one may. One whose node offers no host memory keeps everything.
  OffloadKinds MayOffload() const;
  OffloadKinds MayOffload(int device) const { return OffersHost(device) ? limits().offload : OffloadKinds::None(); }
  OffloadKinds MayOffload(const DeviceId& device) const;
  // -1: the setting does not have it.
  int FindDevice(const DeviceId& device) const;
  int KindOf(int device) const { return cluster.devices[device].kind; }
  int num_devices() const { return static_cast<int>(cluster.devices.size()); }
};

}  // namespace motley::planner
