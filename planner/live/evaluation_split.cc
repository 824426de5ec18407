#include "planner/live/evaluation_split.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/live/device_memory.h"
#include "planner/live/memory_ledger.h"
#include "planner/live/plan_builder.h"
#include "planner/plan/placement.h"

namespace motley::planner {
namespace {

struct Evaluator {
  int64_t microbatch = 0;  // 0 = takes no part
  double seconds_per_sample = 0;
  int64_t room = 0;     // samples whose activations fit
  int64_t samples = 0;  // assigned
};

Evaluator Describe(const CostModel& cost, int rank, const UnitPlan& unit) {
  Evaluator e;
  if (unit.microbatches.empty()) return e;
  e.microbatch = unit.microbatches.front();
  const double seconds =
      cost.ForwardSeconds(rank, UnitKind::kEmbedding, e.microbatch) +
      static_cast<double>(cost.model().num_layers) * cost.ForwardSeconds(rank, UnitKind::kLayer, e.microbatch) +
      cost.ForwardSeconds(rank, UnitKind::kHead, e.microbatch);
  e.seconds_per_sample = seconds / static_cast<double>(e.microbatch);
  // Tokens, targets and one activation per sample live between units, beside what one microbatch needs while a unit runs.
  int64_t transient = 0;
  for (const UnitKind kind : {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kHead}) {
    transient = std::max(transient, cost.SavedBytes(rank, kind, e.microbatch) + cost.BoundaryBytes(e.microbatch) +
                                        cost.WorkspaceBytes(rank, kind, e.microbatch));
  }
  const double owned = unit.ranks[0].shard_ratio * static_cast<double>(TotalStateBytes(cost));
  const int64_t room = FreeBytes(cost, rank) - static_cast<int64_t>(owned) - transient;
  // What trains fits at least one microbatch more evaluated.
  e.room = std::max(e.microbatch, room / (cost.BoundaryBytes(1) + TokenBytes(cost)));
  return e;
}

}  // namespace

int64_t TokenBytes(const CostModel& cost) {
  constexpr int64_t kTokenAndTarget = 2 * sizeof(int64_t);
  return cost.seq_len() * kTokenAndTarget;
}

absl::StatusOr<std::vector<std::vector<int64_t>>> SplitEvaluation(const Plan& plan, const CostModel& cost, int64_t samples) {
  const std::vector<UnitPlan>& units = plan.pipelines[0].stages[0].units;
  std::vector<Evaluator> evaluators;
  int64_t room = 0;
  for (size_t r = 0; r < units.size(); ++r) {
    evaluators.push_back(Describe(cost, static_cast<int>(r), units[r]));
    room += evaluators.back().room;
  }
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
  std::vector<std::vector<int64_t>> microbatches;
  for (const Evaluator& e : evaluators) microbatches.push_back(Microbatches(e.samples, e.microbatch));
  return microbatches;
}

}  // namespace motley::planner
