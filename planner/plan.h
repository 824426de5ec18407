// The plan language: who computes what, who stores what, and what was predicted. A plain value, no torch, no proto.
// docs/plan-language.md has the grammar of its text and JSON forms.
//
// The nesting of pipelines, stages and units is the general one. The engine runs one pipeline of one stage of
// single-device units today; Validate says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/assignment.h"
#include "common/ids.h"
#include "common/model.h"

namespace motley::planner {

enum class ScheduleFamily { kLayered };  // Cephalo section 2.2: all microbatches of a layer before the next layer

// Predicted or measured occupancy of one rank.
struct RankPrediction {
  double busy_seconds = 0;  // compute lane
  int64_t peak_bytes = 0;
};

struct RankPlan {
  DeviceId device;
  std::string device_model;         // for people
  std::string recompute = "none";   // "none" or "full"; later a set of operators
  double shard_ratio = 0;           // of the stage's training state
  RankPrediction predicted;
};

// A logical device: later a tensor-parallel group with unequal shares; today exactly one rank.
struct UnitPlan {
  std::vector<RankPlan> ranks;
  std::vector<int64_t> microbatches;  // may be empty: a device that only stores state
  int64_t batch() const {
    int64_t sum = 0;
    for (int64_t m : microbatches) sum += m;
    return sum;
  }
};

struct StagePlan {
  std::vector<LayerRange> ministages;
  std::vector<UnitPlan> units;              // data-parallel members
  std::vector<UnitPlacement> placement;     // by unit (embedding, layers, head) over the stage's ranks in order
};

struct PipelinePlan {
  std::vector<StagePlan> stages;
};

struct UnusedDevice {
  DeviceId device;
  std::string because;
};

struct PlanPrediction {
  double step_seconds = 0;
  double tokens_per_second = 0;
  std::string binding_constraint;   // "compute of n1/gpu0", "all-gather", "memory of n2/gpu0"
};

struct Plan {
  int schema_version = 1;
  std::string strategy;
  Epoch epoch;
  int64_t global_batch = 0;
  int64_t seq_len = 0;
  DType dtype = DType::kFloat32;
  ScheduleFamily schedule = ScheduleFamily::kLayered;
  std::vector<PipelinePlan> pipelines;
  std::vector<UnusedDevice> unused;
  PlanPrediction predicted;
};

// Structure (today's limits included), sums (batches = global batch, every element owned once), names of the rank and rule.
absl::Status Validate(const Plan& plan, const ModelShape& model);

std::string ToText(const Plan& plan);
std::string ToJson(const Plan& plan);
absl::StatusOr<Plan> PlanFromJson(const std::string& json);

}  // namespace motley::planner
