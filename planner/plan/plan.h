// The plan language: who computes what, who stores what, and what was predicted. A plain value, no torch, no proto.
// docs/use/plan-language.md has its text, which people read, and its JSON, which programs do.
//
// Pipelines of stages of units of ranks, all of any number. Validate checks the language; ValidateForEngine says what of it the
// engine does not run yet: offload (plan_engine_limits.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/dtype.h"
#include "common/base/ids.h"
#include "common/base/memory_by_purpose.h"
#include "common/model/model.h"
#include "common/program/offload_kinds.h"
#include "common/program/ownership.h"
#include "planner/plan/op_set.h"
#include "planner/plan/schedule.h"
#include "planner/plan/schedule_family.h"

namespace motley::planner {

using motley::MemoryByPurpose;

// Predicted or measured occupancy of one rank.
struct RankPrediction {
  double busy_seconds = 0;  // compute lane
  int64_t peak_bytes = 0;
  MemoryByPurpose memory;  // at the peak, and adds up to it; empty where only the peak is known
  // Of a rank whose program was walked, else empty: each purpose's own most, and what waits on the host.
  MemoryByPurpose most;
  HostMemoryByPurpose waits;
};

struct RankPlan {
  DeviceId device;
  std::string device_model;  // for people
  OpSet recompute;           // in all of the rank's layers
  double shard_ratio = 0;    // of the stage's training state; with ZeRO 1 and 2 of its optimizer state; see ownership
  double tp_share = 1;       // of the unit's tensor-parallel work; a unit's shares add up to 1
  OffloadKinds offload;      // what waits in host memory
  RankPrediction predicted;
};

// A logical device: one rank, or a tensor-parallel group with equal or unequal shares.
struct UnitPlan {
  std::vector<RankPlan> ranks;
  std::vector<int64_t> microbatches;  // may be empty: a device that only stores state
  int64_t batch() const {
    int64_t sum = 0;
    for (int64_t m : microbatches) sum += m;
    return sum;
  }
};

struct LayerRange {
  int64_t first = 0, last = 0;  // inclusive
  int64_t layers() const { return last - first + 1; }
  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

inline constexpr int64_t kMostPrefetch = 8;

struct StagePlan {
  // The virtual stages that lie here, in the order in which a microbatch passes them (planner/plan/virtual_stages.h).
  std::vector<LayerRange> ministages;
  std::vector<UnitPlan> units;  // data-parallel members; each computes its part of the pipeline's batch
  int zero_stage = 3;           // of the group: 0 nothing is sharded, 1 optimizer, 2 + gradients, 3 + parameters
  // Where the family takes it: forwards without their backward that the stage keeps; 0 = as many as stages are left. More hides
  // slow links (eager 1F1B: Zhuang et al., MLSys 2023), less saves memory.
  int64_t in_flight = 0;
  // Where something waits in host memory: inputs, units or pieces of the optimizer's state that come back ahead of their use.
  // More evens out what takes unequally long, and takes the room of as many. 1 to kMostPrefetch.
  int64_t prefetch = 1;
  int64_t layers() const {
    int64_t sum = 0;
    for (const LayerRange& range : ministages) sum += range.layers();
    return sum;
  }
};

// A replica of the whole model. The stage of the first virtual stage holds the embedding, that of the last one the head.
struct PipelinePlan {
  std::vector<StagePlan> stages;
};

struct UnusedDevice {
  DeviceId device;
  std::string because;
};

struct PlanPrediction {
  double step_seconds = 0;
  // What the seconds are of (planner/pricing/price.h): the ranks' programs, or where these would be very long those of classes of
  // like ranks.
  bool as_run = false;
  bool as_published = false;  // with the state that a paper's system keeps; else with the engine's
  double tokens_per_second = 0;
  std::string binding_constraint;  // "compute of n1/gpu0", "all-gather", "memory of n2/gpu0"
  // Of the peaks of the plan's devices (docs/inside/profiles.md has the definitions); 0: the peak of one of them is not known.
  double mfu = 0, hfu = 0;
  double idle_share = 0;           // of all ranks' compute lanes, weighted by their peaks
  double tokens_per_dollar = 0;    // 0 = no price known
  double lower_bound_seconds = 0;  // no plan of the language is faster; 0 = not computed
  // A step at those peaks, without recomputation or waiting: over what a step really takes this is its MFU. 0: not known.
  double ideal_seconds() const { return mfu * step_seconds; }
  double gap() const { return step_seconds > 0 && lower_bound_seconds > 0 ? step_seconds / lower_bound_seconds - 1 : 0; }
  bool estimated = false;                    // rests on latencies that nobody measured
  double low_seconds = 0, high_seconds = 0;  // confidence range of step_seconds; 0 = not known
  std::vector<std::string> notes;            // "A10G at 1024 tokens: estimated from ...", "stopped at the deadline"
};

inline constexpr int kPlanSchemaVersion = 5;
// Older plans' schedules, and owned ranges, are made anew.
inline constexpr int kFirstWithSchedules = 3, kFirstWithOwnership = 4;

// When a unit is stepped: when all of the step is known, with its gradient clipped and checked; or behind its own sum, so that
// the gradient need not wait (Zorse section 3.1.2).
enum class OptimizerSteps { kAtEnd, kInTurn };

struct Plan {
  int schema_version = kPlanSchemaVersion;
  std::string strategy;
  Epoch epoch;
  int64_t global_batch = 0;
  int64_t seq_len = 0;
  DType dtype = DType::kFloat32;
  ScheduleFamily schedule = ScheduleFamily::kLayered;
  std::string cluster, model;  // names they were planned for; empty in a live job's plan
  std::string cluster_file;    // where the cluster was read from, if its name does not say it
  // Between pipelines: 0 = every pipeline keeps all state of its layers, 1 = the optimizer's state of a layer is sharded over the
  // ranks that hold it in the several pipelines, 2 = gradients too.
  int pipelines_zero_stage = 0;
  OptimizerSteps optimizer_steps = OptimizerSteps::kAtEnd;
  std::vector<PipelinePlan> pipelines;
  // Who owns which elements, by rank in the plan's order: made once, when the plan is finished (planner/plan/ownership.h); the
  // ranks' shard ratios then follow from it. None: every block of a stage is cut at the shard ratios.
  std::optional<Ownership> ownership;
  // What every rank computes, in order, of a step and of the validation pass: made once, when the plan is finished
  // (planner/scheduling/make_schedule.h), from the costs of that moment; programs follow from plan and schedule alone. None in a
  // plan that is not finished, or that the engine does not run.
  std::optional<Schedule> training, validation;
  std::vector<UnusedDevice> unused;
  PlanPrediction predicted;
};

// Structure, sums (every stage of a pipeline computes the pipeline's batch; pipelines add up to the global batch; every layer in
// exactly one ministage of every pipeline; shares add up to 1; every element owned once). Names the rank and the rule.
absl::Status Validate(const Plan& plan, const ModelShape& model);
// One stage in which no rank has more than one microbatch: every schedule then does what layered does.
bool IsLayeredAllTheSame(const Plan& plan);
// UNIMPLEMENTED: what the engine does not run yet (plan_engine_limits.h), after Validate; names the part of the plan.
absl::Status ValidateForEngine(const Plan& plan, const ModelShape& model);

// For people, with rounded numbers; nothing reads it back.
std::string ToText(const Plan& plan);
// The same without what was predicted of the whole: who does what.
std::string LayoutText(const Plan& plan);
// Whether `text` has ToText's first line, by itself or below what `motley plan` prints above it.
bool IsPlanText(std::string_view text);

// On one line; `indent` >= 0: for people.
std::string ToJson(const Plan& plan, int indent = -1);
// Schema versions 1 to 5; 1 and 2 know no schedules, 3 and older have placements by stage, which are not read: shares say the
// same. INVALID_ARGUMENT names the path in the document. Reports that `motley plan -o json` adds (docs/use/plan-language.md) are
// ignored.
absl::StatusOr<Plan> PlanFromJson(const std::string& json);
// Longer documents are refused before they are parsed.
inline constexpr int64_t kLongestPlanBytes = int64_t{64} << 20;

}  // namespace motley::planner
