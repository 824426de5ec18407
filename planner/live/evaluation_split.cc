#include "planner/live/evaluation_split.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/graph/program_walk.h"
#include "planner/lowering/program_writer.h"
#include "planner/memory/program_memory.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/placement.h"
#include "planner/plan/unit_slices.h"
#include "planner/plan/validation_pass.h"
#include "planner/scheduling/make_schedule.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

constexpr UnitKind kUnits[] = {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kHead};

// A rank of a unit that evaluates.
struct EvaluatorRank {
  int device = 0;
  double tp_share = 1;
  int64_t stays = 0;  // bytes that training leaves where they are
};

struct Evaluator {
  std::vector<EvaluatorRank> ranks;
  int64_t microbatch = 0;  // 0 = takes no part
  double seconds_per_sample = 0;
  int64_t room = 0;     // samples whose activations fit
  int64_t samples = 0;  // assigned
};

// Tokens and targets of one sample, which a rank holds for all its samples throughout the pass.
int64_t TokenBytes(const Setting& setting) {
  constexpr int64_t kTokenAndTarget = 2 * sizeof(int64_t);
  return setting.workload.seq_len * kTokenAndTarget;
}

double SecondsPerSample(const Costs& costs, int kind, int64_t microbatch, double tp_share) {
  const auto samples = static_cast<double>(microbatch);
  const double layers = static_cast<double>(costs.workload().model.num_layers);
  return (costs.EvaluationSeconds(kind, UnitKind::kEmbedding, samples, tp_share) +
          layers * costs.EvaluationSeconds(kind, UnitKind::kLayer, samples, tp_share) +
          costs.EvaluationSeconds(kind, UnitKind::kHead, samples, tp_share)) /
         samples;
}

// Samples whose activations the rank has room for: tokens, targets and one activation per sample live between units, beside what
// one microbatch needs while a unit runs. What trains fits at least one microbatch more evaluated.
int64_t RoomOf(const Setting& setting, const EvaluatorRank& rank, int64_t microbatch) {
  const Costs& costs = setting.costs;
  const int kind = setting.KindOf(rank.device);
  const auto m = static_cast<double>(microbatch);
  int64_t transient = 0;
  for (const UnitKind of : kUnits) {
    const int64_t input = of == UnitKind::kEmbedding ? 0 : costs.BoundaryBytes(m);
    transient = std::max(transient, input + costs.SavedBytes(kind, of, OpSet::None(), m, rank.tp_share) + costs.BoundaryBytes(m) +
                                        costs.WorkspaceBytes(kind, of, m, rank.tp_share));
  }
  const int64_t room = setting.UsableBytes(rank.device) - rank.stays - transient;
  return std::max(microbatch, room / (costs.BoundaryBytes(1) + TokenBytes(setting)));
}

// A unit has the room of its fullest rank and the pace of its slowest.
Evaluator Describe(const Setting& setting, const UnitPlan& unit) {
  Evaluator e;
  e.microbatch = unit.microbatches.empty() ? 0 : unit.microbatches.front();
  for (const RankPlan& plan : unit.ranks) {
    const MemoryByPurpose& trained = plan.predicted.memory;
    const EvaluatorRank& rank = e.ranks.emplace_back(setting.FindDevice(plan.device), plan.tp_share,
                                                     trained.total() - trained.boundaries - trained.saved - trained.workspace);
    if (e.microbatch == 0) continue;
    const double seconds = SecondsPerSample(setting.costs, setting.KindOf(rank.device), e.microbatch, rank.tp_share);
    const int64_t room = RoomOf(setting, rank, e.microbatch);
    e.seconds_per_sample = std::max(e.seconds_per_sample, seconds);
    e.room = e.ranks.size() == 1 ? room : std::min(e.room, room);
  }
  return e;
}

// Each sample goes to whom it ends at first.
absl::Status Deal(int64_t samples, std::span<Evaluator> evaluators) {
  int64_t room = 0;
  for (const Evaluator& e : evaluators) room += e.room;
  if (room < samples) {
    return absl::ResourceExhaustedError(absl::StrCat("validation does not fit: the devices hold the activations of ", room,
                                                     " of ", samples, " samples at once; lower data.validation_samples"));
  }
  for (int64_t i = 0; i < samples; ++i) {
    Evaluator* next = nullptr;
    double least = 0;
    for (Evaluator& e : evaluators) {
      const double end = static_cast<double>(e.samples + 1) * e.seconds_per_sample;
      if (e.microbatch == 0 || e.samples == e.room || (next != nullptr && end >= least)) continue;
      next = &e;
      least = end;
    }
    ++next->samples;
  }
  return absl::OkStatus();
}

absl::Status CheckMemory(const Setting& setting, const EvaluatorRank& rank, int64_t samples, const Program& program,
                         const ModelSlice& slice) {
  const ActivationBytes peak = PeakActivations(setting.costs, setting.KindOf(rank.device), program, slice);
  const int64_t needed = rank.stays + peak.total() + samples * TokenBytes(setting);
  const int64_t missing = needed - setting.UsableBytes(rank.device);
  if (missing <= 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("validation does not fit: ", setting.cluster.devices[rank.device].id.value(),
                                                   " needs ", BytesText(needed), " for ", samples, " samples and lacks ",
                                                   BytesText(missing), "; lower data.validation_samples"));
}

// The devices with the samples that a schedule gives them.
void TakeScheduled(const Schedule& schedule, std::vector<Evaluator>* all) {
  const std::vector<std::vector<int64_t>> microbatches = MicrobatchesOf(schedule);
  for (size_t i = 0; i < all->size(); ++i) {
    (*all)[i].samples = std::accumulate(microbatches[i].begin(), microbatches[i].end(), int64_t{0});
  }
}

// A pipeline as one that evaluates: the pace of its slowest stage, the room of its fullest. `stages`: their units.
Evaluator Together(const PipelinePlan& pipeline, const std::vector<std::span<Evaluator>>& stages) {
  Evaluator all{.microbatch = 1};
  double layers = 0;
  for (const StagePlan& stage : pipeline.stages) layers += static_cast<double>(stage.layers());
  for (size_t s = 0; s < stages.size(); ++s) {
    int64_t room = 0;
    double samples_a_second = 0;
    for (const Evaluator& e : stages[s]) {
      room += e.room;
      if (e.microbatch > 0) samples_a_second += 1 / e.seconds_per_sample;
    }
    all.seconds_per_sample =
        std::max(all.seconds_per_sample, static_cast<double>(pipeline.stages[s].layers()) / layers / samples_a_second);
    all.room = s == 0 ? room : std::min(all.room, room);
  }
  return all;
}

absl::Status ScheduleValidation(const Setting& setting, int64_t samples, std::vector<Evaluator>* all, Plan* plan) {
  std::vector<std::vector<std::span<Evaluator>>> stages;  // by pipeline
  std::vector<Evaluator> pipelines;
  for (size_t next = 0; const PipelinePlan& pipeline : plan->pipelines) {
    stages.emplace_back();
    for (const StagePlan& stage : pipeline.stages) {
      stages.back().emplace_back(all->data() + next, stage.units.size());
      next += stage.units.size();
    }
    pipelines.push_back(Together(pipeline, stages.back()));
  }
  MOTLEY_RETURN_IF_ERROR(Deal(samples, pipelines));
  std::vector<std::vector<int64_t>> microbatches;
  for (size_t p = 0; p < pipelines.size(); ++p) {
    for (const std::span<Evaluator> evaluators : stages[p]) {
      MOTLEY_RETURN_IF_ERROR(Deal(pipelines[p].samples, evaluators));
      for (const Evaluator& e : evaluators) {
        microbatches.push_back(e.samples > 0 ? Microbatches(e.samples, e.microbatch) : std::vector<int64_t>());
      }
    }
  }
  MOTLEY_ASSIGN_OR_RETURN(plan->validation, MakeValidationSchedule(setting, *plan, microbatches));
  return absl::OkStatus();
}

// Of all pipelines' first stages.
int64_t SamplesOf(const Schedule& schedule) {
  int64_t samples = 0;
  for (const PipelineSchedule& pipeline : schedule.pipelines) {
    for (const MemberMicrobatches& member : pipeline.stages[0].members) {
      for (const ScheduledMicrobatch& microbatch : member) samples += microbatch.samples;
    }
  }
  return samples;
}

}  // namespace

absl::StatusOr<std::vector<Program>> PlanEvaluation(const Setting& setting, int64_t samples, Plan* plan) {
  std::vector<Evaluator> all;
  ForEachUnit(*plan, [&](const UnitPlan& unit) { all.push_back(Describe(setting, unit)); });
  if (plan->validation && SamplesOf(*plan->validation) == samples) {
    TakeScheduled(*plan->validation, &all);
  } else {
    MOTLEY_RETURN_IF_ERROR(ScheduleValidation(setting, samples, &all, plan));
  }
  MOTLEY_ASSIGN_OR_RETURN(std::vector<Program> programs, LowerEvaluation(setting, *plan));
  MOTLEY_RETURN_IF_ERROR(CheckOrder(programs));
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<ModelSlice> slices, SlicesOfRanks(setting.workload.model, *plan));
  size_t r = 0;
  for (const Evaluator& e : all) {
    for (const EvaluatorRank& rank : e.ranks) {
      MOTLEY_RETURN_IF_ERROR(CheckMemory(setting, rank, e.samples, programs[r], slices[r]));
      ++r;
    }
  }
  return programs;
}

}  // namespace motley::planner
