#include "planner/live/planner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/parameters.h"
#include "common/status_macros.h"
#include "planner/live/evaluation_split.h"
#include "planner/live/explain.h"
#include "planner/live/layered.h"
#include "planner/live/plan_builder.h"
#include "planner/live/pricing.h"
#include "planner/live/program_trace.h"
#include "planner/live/strategy.h"
#include "planner/plan/placement.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

// What a plan written by hand may leave out: everything that the job already says, and the placement that its shares imply.
void FillIn(const PlannerInput& input, Plan* plan) {
  if (plan->strategy.empty()) plan->strategy = "manual";
  if (plan->global_batch == 0) plan->global_batch = input.config.training.global_batch_size;
  if (plan->seq_len == 0) plan->seq_len = input.config.training.seq_len;
  if (const auto dtype = ParseDType(input.config.training.dtype); dtype.ok()) plan->dtype = *dtype;
  plan->epoch = input.epoch;
  if (plan->pipelines.size() != 1 || plan->pipelines[0].stages.size() != 1) return;  // Validate says so
  StagePlan& stage = plan->pipelines[0].stages[0];
  if (stage.ministages.empty()) stage.ministages = {{0, input.model.num_layers - 1}};
  std::vector<double> shares;
  for (UnitPlan& unit : stage.units) {
    if (unit.ranks.size() != 1) return;
    RankPlan& rank = unit.ranks[0];
    shares.push_back(rank.shard_ratio);
    for (const DeviceDescription& device : input.devices) {
      if (device.id == rank.device) rank.device_model = device.model;
    }
  }
  if (stage.placement.empty()) stage.placement = PlaceByShares(ParameterLayout(input.model), shares);
}

absl::Status CheckAgainstJob(const PlannerInput& input, const Plan& plan) {
  const TrainingSection& training = input.config.training;
  if (plan.global_batch != training.global_batch_size) {
    return absl::InvalidArgumentError(absl::StrCat("plan: global_batch is ", plan.global_batch,
                                                   ", the job's training.global_batch_size ", training.global_batch_size));
  }
  if (plan.seq_len != training.seq_len) {
    return absl::InvalidArgumentError(
        absl::StrCat("plan: seq_len is ", plan.seq_len, ", the job's training.seq_len ", training.seq_len));
  }
  return absl::OkStatus();
}

// The validation pass beside what stays from training: state and gradient buffers.
absl::Status CheckEvaluationMemory(const CostModel& cost, const std::vector<Program>& evaluations, const Simulation& simulation) {
  int64_t gradients = 0;
  for (const int64_t elements : BuffersOf(cost.model(), cost.layout()).gradients) gradients += elements * cost.element_bytes();
  for (size_t r = 0; r < evaluations.size(); ++r) {
    const int rank = static_cast<int>(r);
    int64_t samples = 0;
    for (const int64_t m : evaluations[r].microbatches) samples += m;
    const int64_t needed = simulation.ranks[r].peak_bytes + gradients + samples * TokenBytes(cost);
    const int64_t missing = needed - cost.UsableBytes(rank);
    if (missing <= 0) continue;
    return absl::ResourceExhaustedError(
        absl::StrCat("validation does not fit: ", cost.device(rank).id.value(), " needs ", BytesText(needed), " for ", samples,
                     " samples and lacks ", BytesText(missing), " (", missing, " bytes); lower data.validation_samples"));
  }
  return absl::OkStatus();
}

// The validation pass: split, lowered, and simulated for deadlock and memory. Empty programs where the job wants none.
absl::Status AddEvaluation(const PlannerInput& input, const Plan& plan, PlanResult* result) {
  const DataSection& data = input.config.data;
  if (data.validation_fraction == 0 || data.validation_samples == 0) {
    const size_t world = plan.pipelines[0].stages[0].units.size();
    result->evaluations.resize(world);
    result->evaluation_begin.assign(world, 0);
    return absl::OkStatus();
  }
  MOTLEY_ASSIGN_OR_RETURN(const PlannerInput own, InputOf(input, plan));
  MOTLEY_ASSIGN_OR_RETURN(const CostModel cost, CostModel::Create(own));
  MOTLEY_ASSIGN_OR_RETURN(const auto microbatches, SplitEvaluation(plan, cost, data.validation_samples));
  MOTLEY_ASSIGN_OR_RETURN(result->evaluations, LowerEvaluation(input.model, microbatches));
  int64_t begin = 0;
  for (const Program& program : result->evaluations) {
    result->evaluation_begin.push_back(begin);
    for (const int64_t m : program.microbatches) begin += m;
  }
  MOTLEY_ASSIGN_OR_RETURN(const Simulation simulation,
                          Simulate(cost, plan.pipelines[0].stages[0].placement, result->evaluations));
  return CheckEvaluationMemory(cost, result->evaluations, simulation);
}

absl::StatusOr<PlanResult> Finish(const PlannerInput& input, Plan plan) {
  MOTLEY_ASSIGN_OR_RETURN(PricedTraining priced, PriceTraining(input, std::move(plan)));
  PlanResult result;
  MOTLEY_RETURN_IF_ERROR(AddEvaluation(input, priced.plan, &result));
  std::vector<DeviceId> devices;
  for (const UnitPlan& unit : priced.plan.pipelines[0].stages[0].units) devices.push_back(unit.ranks[0].device);
  result.trace_json = TraceJson(devices, priced.programs, priced.simulation);
  result.plan = std::move(priced.plan);
  result.programs = std::move(priced.programs);
  result.explanation = ExplanationText(result.plan, {}, {});
  return result;
}

}  // namespace

absl::StatusOr<PlanResult> MakePlan(const PlannerInput& input) {
  const absl::Time start = absl::Now();
  if (!input.config.planner.plan_json.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(Plan given, PlanFromJson(input.config.planner.plan_json));
    return PricePlan(input, std::move(given));
  }
  MOTLEY_ASSIGN_OR_RETURN(const Strategy strategy, FindStrategy(input.config.planner.strategy));
  MOTLEY_ASSIGN_OR_RETURN(const CostModel cost, CostModel::Create(input));
  MOTLEY_ASSIGN_OR_RETURN(Plan plan, strategy.plan(input, cost));
  MOTLEY_ASSIGN_OR_RETURN(PlanResult result, Finish(input, std::move(plan)));
  result.alternatives = FindAlternatives(input, result.plan);
  Sensitivity sensitivity;
  if (result.plan.strategy == "cephalo") sensitivity = FindSensitivity(input);
  if (!sensitivity.memory_bound_device.empty()) {
    result.plan.predicted.binding_constraint = absl::StrCat("memory of ", sensitivity.memory_bound_device);
  }
  result.explanation = ExplanationText(result.plan, result.alternatives, sensitivity);
  result.planning_seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return result;
}

absl::StatusOr<PlanResult> PricePlan(const PlannerInput& input, Plan plan) {
  const absl::Time start = absl::Now();
  FillIn(input, &plan);
  MOTLEY_RETURN_IF_ERROR(CheckAgainstJob(input, plan));
  MOTLEY_ASSIGN_OR_RETURN(PlanResult result, Finish(input, std::move(plan)));
  result.planning_seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return result;
}

}  // namespace motley::planner
