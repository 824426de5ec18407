#include "tests/worker/engine/equivalence/plan_assignments.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/graph/program_walk.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/ownership.h"
#include "planner/plan/unit_slices.h"
#include "planner/pricing/price.h"
#include "planner/scheduling/make_schedule.h"
#include "tests/planner/scheduled.h"
#include "worker/engine/host_tier.h"

namespace motley::engine {
namespace {

absl::Status Check(const std::vector<Program>& programs) {
  for (const Program& program : programs) MOTLEY_RETURN_IF_ERROR(Validate(program));
  return planner::CheckOrder(programs);
}

planner::CardKind CardOf(double flops) {
  planner::CardKind card;
  card.name = "thread";
  card.fp32_flops = card.tf32_flops = card.fp16_flops = card.bf16_flops = flops;
  card.memory_bytes = int64_t{1} << 40;
  card.memory_bytes_per_second = flops;
  card.launches_ahead = false;
  return card;
}

void AddCard(const DeviceId& device, planner::Cluster* cluster) {
  const int index = static_cast<int>(cluster->devices.size());
  planner::ClusterNode node;
  node.name = NodeOf(device);
  node.device_link_bytes_per_second = node.nic_bytes_per_second = node.host_link_bytes_per_second = 1e10;
  node.host_memory_bytes = int64_t{1} << 40;
  node.devices = {index};
  cluster->nodes.push_back(node);
  cluster->devices.push_back({device, index % 3, index});
}

}  // namespace

absl::StatusOr<std::unique_ptr<planner::Setting>> SettingOfThreads(const ModelShape& model, const planner::Plan& plan,
                                                                   DType dtype, const planner::PlanRequest& request) {
  planner::Cluster cluster;
  cluster.name = "threads";
  cluster.regions = {"here"};
  cluster.kinds = {CardOf(1e12), CardOf(3e12), CardOf(2e12)};
  for (size_t k = 0; k < cluster.kinds.size(); ++k) cluster.kinds[k].name += std::to_string(k);
  planner::ForEachRank(plan, [&](const planner::RankPlan& rank) { AddCard(rank.device, &cluster); });
  // No card has fewer devices than one; a kind that no device has is of no use.
  cluster.kinds.resize(std::min(cluster.kinds.size(), cluster.devices.size()));
  planner::Workload workload;
  workload.model_name = "test";
  workload.model = model;
  workload.global_batch = plan.global_batch;
  workload.seq_len = plan.seq_len;
  workload.dtype = dtype;
  return planner::Setting::Create(cluster, workload, request, nullptr);
}

absl::StatusOr<int64_t> PredictedPeakBytes(const ModelShape& model, const planner::Plan& plan, DType dtype) {
  MOTLEY_ASSIGN_OR_RETURN(const auto setting, SettingOfThreads(model, plan, dtype, {.runnable = true}));
  MOTLEY_ASSIGN_OR_RETURN(const planner::Evaluation evaluation, planner::Price(*setting, plan));
  int64_t fullest = 0;
  planner::ForEachRank(evaluation.plan, [&](const planner::RankPlan& rank) {
    fullest = std::max(fullest, rank.predicted.memory.total() - rank.predicted.memory.context);
  });
  return fullest;
}

std::vector<std::vector<int64_t>> FourSamples(const planner::Plan& plan) {
  std::vector<std::vector<int64_t>> evaluation;
  const bool several = plan.pipelines.size() > 1;
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (const planner::StagePlan& stage : plan.pipelines[p].stages) {
      const size_t first = evaluation.size();
      evaluation.resize(first + stage.units.size());
      if (p > 1) continue;  // evaluates nothing
      if (p == 0) evaluation.back() = {several ? 2 : 3};
      evaluation[first].push_back(1);
    }
  }
  return evaluation;
}

absl::StatusOr<planner::Plan> ScheduledOnThreads(const ModelShape& model, planner::Plan plan) {
  MOTLEY_ASSIGN_OR_RETURN(const auto setting, SettingOfThreads(model, plan));
  MOTLEY_ASSIGN_OR_RETURN(plan.training, planner::PlacedSchedule(*setting, plan));
  return plan;
}

namespace {

// Slots are in bytes of the plan's type.
absl::StatusOr<std::vector<Program>> ProgramsOf(const planner::Setting& setting, const ModelShape& model,
                                                const planner::Plan& plan) {
  bool offloads = false;
  planner::ForEachRank(plan, [&](const planner::RankPlan& rank) { offloads |= rank.offload.any(); });
  if (!offloads) return planner::ScheduleAndLower(setting, plan);
  MOTLEY_ASSIGN_OR_RETURN(const planner::Plan scheduled, ScheduledOnThreads(model, plan));
  MOTLEY_ASSIGN_OR_RETURN(const auto of_type, SettingOfThreads(model, plan, plan.dtype));
  return planner::LowerTraining(*of_type, scheduled);
}

}  // namespace

absl::StatusOr<std::vector<RankAssignment>> AssignmentsOf(const ModelShape& model, const JobConfig& config,
                                                          const planner::Plan& plan,
                                                          const std::vector<std::vector<int64_t>>& evaluation) {
  MOTLEY_ASSIGN_OR_RETURN(const auto setting, SettingOfThreads(model, plan));
  MOTLEY_ASSIGN_OR_RETURN(std::vector<Program> programs, ProgramsOf(*setting, model, plan));
  MOTLEY_RETURN_IF_ERROR(Check(programs));
  MOTLEY_ASSIGN_OR_RETURN(std::vector<Program> evaluations, planner::ScheduleAndLowerEvaluation(*setting, plan, evaluation));
  MOTLEY_RETURN_IF_ERROR(Check(evaluations));
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<ModelSlice> slices, planner::SlicesOfRanks(model, plan));
  RankAssignment common;
  common.job = JobId("job");
  common.epoch = Epoch(1);
  common.ownership = planner::OwnershipOf(plan, model);
  common.model = model;
  common.config = config;
  planner::ForEachRank(plan, [&](const planner::RankPlan& rank) {
    common.devices.push_back(rank.device);
    common.data_addresses.push_back("127.0.0.1");
  });
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(config.training));
  std::vector<RankAssignment> assignments(common.devices.size(), common);
  for (size_t rank = 0; rank < assignments.size(); ++rank) {
    RankAssignment& own = assignments[rank];
    own.rank = static_cast<int>(rank);
    own.slice = slices[rank];
    own.device.id = own.devices[rank];
    own.program = std::move(programs[rank]);
    own.planned_host_bytes = HostBytesFor(own, precision);
    own.evaluation = std::move(evaluations[rank]);
  }
  return assignments;
}

}  // namespace motley::engine
