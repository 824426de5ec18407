// Plan(cluster, model, profiles, config) -> plan with reasons. Deterministic, pure; ties broken by device id.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device.h"
#include "common/job.h"
#include "common/model.h"
#include "common/profile.h"
#include "common/program.h"
#include "planner/plan/plan.h"

namespace motley::planner {

struct PlannerInput {
  std::vector<DeviceDescription> devices;  // those that may be used, in rank order (sorted by id)
  std::vector<ComputeProfile> compute;     // one per device, same order
  CollectiveProfile collectives;           // of all of them; empty for one device
  ModelShape model;
  JobConfig config;  // batch, sequence, dtype, planner section
  Epoch epoch;
};

struct Alternative {
  std::string what;         // "even split", "recompute everywhere", "without n3/gpu0"
  double step_seconds = 0;  // 0 = does not fit
  std::string why_not;      // sentence
};

struct PlanResult {
  Plan plan;
  std::vector<Program> programs;          // by rank, validated and simulated
  std::vector<Program> evaluations;       // by rank: the validation pass; empty programs when the job has none
  std::vector<int64_t> evaluation_begin;  // by rank: first validation sample
  std::vector<Alternative> alternatives;
  std::string explanation;  // for people: `motley plan --explain`
  std::string trace_json;   // the simulated step for Perfetto
  double planning_seconds = 0;
};

// RESOURCE_EXHAUSTED: the model fits on no plan; says how many bytes are missing and on which device.
// INVALID_ARGUMENT: unknown strategy (names the known ones).
absl::StatusOr<PlanResult> MakePlan(const PlannerInput& input);

// A plan given by hand: validate, lower, simulate. Same errors.
absl::StatusOr<PlanResult> PricePlan(const PlannerInput& input, Plan plan);

}  // namespace motley::planner
