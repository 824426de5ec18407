#include "planner/live/planner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/listed.h"
#include "common/base/status_macros.h"
#include "common/program/engine_subset.h"
#include "planner/answers/explain_plan.h"
#include "planner/answers/given_plan.h"
#include "planner/answers/plan_answer.h"
#include "planner/graph/program_spans.h"
#include "planner/live/evaluation_split.h"
#include "planner/live/job_request.h"
#include "planner/live/program_size.h"
#include "planner/lowering/program_communicators.h"
#include "planner/plan/each_rank.h"
#include "planner/simulator/trace.h"

namespace motley::planner {
namespace {

absl::StatusOr<Evaluation> PriceGiven(const Setting& setting, const PlannerInput& input, LowerBound* bound) {
  MOTLEY_ASSIGN_OR_RETURN(Plan plan, GivenPlanOf(input.config, input.model));
  MOTLEY_ASSIGN_OR_RETURN(GivenPlan given, PriceGivenPlan(setting, std::move(plan)));
  if (!given.evaluation.does_not_fit.empty()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the plan does not fit: ", given.evaluation.does_not_fit[0],
                     "; give it fewer samples, a smaller microbatch, recomputation or a smaller shard"));
  }
  *bound = given.bound;
  return std::move(given.evaluation);
}

// Ranks that hand over in the validation pass alone have communicators for it, too.
void CountValidationsCommunicators(const Setting& setting, const PlanResult& result, Plan* plan) {
  std::vector<int> devices;
  ForEachRank(*plan, [&](const RankPlan& rank) { devices.push_back(setting.FindDevice(rank.device)); });
  size_t r = 0;
  ForEachRank(*plan, [&](RankPlan& rank) {
    const int64_t trained = NcclBytes(setting.cluster, devices, result.programs[r], /*evaluation=*/{});
    const int64_t more = NcclBytes(setting.cluster, devices, result.programs[r], result.evaluations[r]) - trained;
    rank.predicted.memory.context += more;
    if (rank.predicted.most != MemoryByPurpose{}) rank.predicted.most.context += more;
    rank.predicted.peak_bytes += more;
    ++r;
  });
}

absl::StatusOr<PlanResult> PlanAsAsked(const PlannerInput& input) {
  const absl::Time start = absl::Now();
  MOTLEY_ASSIGN_OR_RETURN(JobSetting job, SettingOf(input));
  const Setting& setting = *job.setting;
  Evaluation evaluation;
  LowerBound bound;
  if (input.config.planner.plan_json.empty()) {
    MOTLEY_RETURN_IF_ERROR(StrategyOf(input.config.planner).status());
    MOTLEY_ASSIGN_OR_RETURN(PlanAnswer planned, AnswerPlan(setting, job.book.get()));
    evaluation = std::move(planned.evaluation);
    bound = std::move(planned.bound);
  } else {
    MOTLEY_ASSIGN_OR_RETURN(evaluation, PriceGiven(setting, input, &bound));
  }
  PlanResult result;
  evaluation.plan.epoch = input.epoch;
  for (const DeviceId& device : input.excluded) evaluation.plan.unused.push_back({device, "planner.exclude names it"});
  result.programs = std::move(evaluation.programs);
  const RankSpans spans = SpansByRank(result.programs, evaluation.task_of, evaluation.timeline);
  for (size_t r = 0; r < spans.size(); ++r) {
    const absl::Duration step = absl::Seconds(evaluation.plan.predicted.step_seconds);
    result.lanes.push_back(SecondsByLane(result.programs[r], spans[r], step));
  }
  ForEachRank(evaluation.plan, [&](const RankPlan& rank) {
    result.card_contexts.push_back(setting.costs.ContextBytes(setting.KindOf(setting.FindDevice(rank.device))));
  });
  const DataSection& data = input.config.data;
  if (HasValidation(data)) {
    MOTLEY_ASSIGN_OR_RETURN(result.evaluations, PlanEvaluation(setting, data.validation_samples, &evaluation.plan));
    CountValidationsCommunicators(setting, result, &evaluation.plan);
  } else {
    result.evaluations.resize(result.programs.size());
  }
  for (const std::vector<Program>* programs : {&result.programs, &result.evaluations}) {
    for (const Program& program : *programs) MOTLEY_RETURN_IF_ERROR(RunsInEngine(program));
  }
  MOTLEY_RETURN_IF_ERROR(CheckProgramSizes(evaluation.plan, {&result.programs, &result.evaluations}));
  result.explanation = ExplainPlan(setting, evaluation, bound);
  result.trace_json = TraceJson(evaluation.graph, evaluation.timeline);
  result.plan = std::move(evaluation.plan);
  result.inputs = std::move(job.inputs);
  result.dropped_pins = std::move(job.dropped_pins);
  result.planning_seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return result;
}

}  // namespace

absl::StatusOr<PlanResult> MakePlan(const PlannerInput& input) {
  absl::StatusOr<PlanResult> result = PlanAsAsked(input);
  const PlannerSection& section = input.config.planner;
  if (result.ok() || section.pins_required || section.pins.empty() || !section.plan_json.empty()) return result;
  PlannerInput without = input;
  without.config.planner.pins.clear();
  absl::StatusOr<PlanResult> unpinned = PlanAsAsked(without);
  if (!unpinned.ok()) return result;
  for (const std::string& pin : Listed(section.pins)) {
    unpinned->dropped_pins.push_back(absl::StrCat(pin, ": ", result.status().message()));
  }
  return unpinned;
}

}  // namespace motley::planner
