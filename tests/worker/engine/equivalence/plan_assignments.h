// What each rank of a plan is told when its ranks are threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/session/assignment.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"

namespace motley::engine {

// Every rank of the first pipeline is a node with one card, of three speeds in turn: speeds decide nothing but the order in which
// ranks compute.
absl::StatusOr<std::unique_ptr<planner::Setting>> SettingOfThreads(const ModelShape& model, const planner::Plan& plan,
                                                                   DType dtype = DType::kFloat32,
                                                                   const planner::PlanRequest& request = {});

// What the planner says that the fullest rank's tensors take at most, in a job of this type; the driver's context is no tensor.
absl::StatusOr<int64_t> PredictedPeakBytes(const ModelShape& model, const planner::Plan& plan, DType dtype);

// Validation microbatches by rank: in every stage three samples on the last rank and one on the first.
std::vector<std::vector<int64_t>> FourSamples(const planner::Plan& plan);

// The plan with the training schedule that AssignmentsOf's programs follow, whatever the job's type. Errors of
// PlacedSchedule.
absl::StatusOr<planner::Plan> ScheduledOnThreads(const ModelShape& model, planner::Plan plan);

// By rank, with programs lowered from the plan, which may offload. Its program and its evaluation pass Validate
// and CheckOrder. Errors of these and of LowerTraining.
absl::StatusOr<std::vector<RankAssignment>> AssignmentsOf(const ModelShape& model, const JobConfig& config,
                                                          const planner::Plan& plan,
                                                          const std::vector<std::vector<int64_t>>& evaluation);

}  // namespace motley::engine
