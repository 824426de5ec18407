// A job's planner section as the request that strategies read: the words and defaults of `motley plan`, and only plans that the
// engine runs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "common/job/job.h"
#include "common/model/model.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_engine_limits.h"
#include "planner/setting/setting.h"
#include "planner/strategies/catalog.h"

namespace motley::planner {

// Without exclude, which decides who is measured at all: those devices are not among the input's. INVALID_ARGUMENT: a pin that is
// none.
absl::StatusOr<PlanRequest> RequestOf(const PlannerSection& section);

// Pins that cannot be kept on this cluster go: of a node or device that is not there now, or in a stage of which there are not so
// many devices. Returns each, with why: "stage0=n1: not there now".
std::vector<std::string> DropAbsentPins(const Cluster& cluster, PlanRequest* request);

// The nodes and devices without which a job has no plan: those of its plan by hand, or of its pins where they are required.
std::vector<std::string> NamedPlaces(const PlannerSection& section);

// INVALID_ARGUMENT: not known.
absl::StatusOr<CatalogEntry> StrategyOf(const PlannerSection& section);

// The plan in config.planner.plan_json as the job will run it. INVALID_ARGUMENT: it breaks a rule or is of another batch or
// sequence. UNIMPLEMENTED: the engine does not run such plans yet.
absl::StatusOr<Plan> GivenPlanOf(const JobConfig& config, const ModelShape& model);

// INVALID_ARGUMENT: something that is known at a step's end alone decides whether or how units are stepped, so that none may go
// before (optimizer_steps in_turn); says what, and what to do.
absl::Status CheckStepsInTurn(const TrainingSection& training, const Precision& precision);

// Whether the section's words are known, whatever the model: INVALID_ARGUMENT has a line for each that is not.
absl::Status CheckPlannerWords(const PlannerSection& section);

// Whether a job may ask for this, before anything is measured for it: all of the above.
absl::Status CheckPlannerSection(const JobConfig& config, const ModelShape& model);

// Whether the job's training state could lie in the memory of these devices at all, from shapes alone: before minutes of
// measuring. Where the job may offload state, the memory that their nodes offer counts, too. What passes may still not fit.
// RESOURCE_EXHAUSTED: says how many bytes are missing. OK where a device has no limit.
absl::Status CheckCouldFit(const std::vector<DeviceDescription>& devices, const ModelShape& model, const JobConfig& config);

// Whether every device computes in the job's type: bfloat16 wants a card of compute capability 8.0, float16 5.3. INVALID_ARGUMENT
// names those that do not, and those that do.
absl::Status CheckComputeType(const std::vector<DeviceDescription>& devices, const JobConfig& config);

}  // namespace motley::planner
