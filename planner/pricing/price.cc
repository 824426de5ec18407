#include "planner/pricing/price.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/in_parallel.h"
#include "common/base/status_macros.h"
#include "planner/costs/engine_memory.h"
#include "planner/graph/program_graph.h"
#include "planner/lowering/program_communicators.h"
#include "planner/lowering/program_writer.h"
#include "planner/memory/program_memory.h"
#include "planner/plan/layout_digest.h"
#include "planner/plan/ownership.h"
#include "planner/plan/unit_slices.h"
#include "planner/pricing/placed_schedule.h"
#include "planner/pricing/prediction.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

namespace {

constexpr double kMostTooLong = 1.15;  // Evaluate's seconds over the programs', at most: where it merges what is not quite alike
constexpr size_t kAtOnce = 4;          // priced side by side; the same on every machine

// Passes of a microbatch through a layer, of all ranks.
int64_t Passes(const Plan& plan) {
  int64_t passes = 0;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (const StagePlan& stage : pipeline.stages) {
      int64_t layers = 0, microbatches = 0;
      for (const LayerRange& range : stage.ministages) layers += range.last - range.first + 1;
      for (const UnitPlan& unit : stage.units) microbatches += static_cast<int64_t>(unit.microbatches.size());
      passes += layers * microbatches;
    }
  }
  return passes;
}

// Whether the classes' programs cost what the ranks' do, task by task, and the ledger counts what they keep.
bool AreClassesExact(const Plan& plan) {
  return TraitsOf(plan.schedule).by_ministage && plan.pipelines.size() == 1 && plan.pipelines[0].stages.size() == 1 &&
         plan.pipelines[0].stages[0].zero_stage == 3 && !IsTensorParallel(plan.pipelines[0].stages[0]);
}

bool IsPricedAsRun(const Setting& setting, const Plan& plan) {
  return setting.request.runnable && ValidateForEngine(plan, setting.workload.model).ok();
}

class Fastest {
 public:
  Fastest(const Setting& setting, std::vector<Contender>* contenders, PriceBook* prices)
      : setting_(setting), all_(*contenders), prices_(*prices) {
    for (size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].price == 0 && PriceNodes(setting, *all_[i].plan) == 0) all_[i].price = Idealised(i);
      all_[i].price > 0 ? Offer(i) : unknown_.push_back(i);
    }
    std::stable_sort(unknown_.begin(), unknown_.end(), [this](size_t a, size_t b) { return Idealised(a) < Idealised(b); });
  }

  absl::StatusOr<size_t> Find() {
    absl::Status why_not;
    for (size_t next = 0; next < unknown_.size();) {
      std::vector<size_t> asked;
      for (; next < unknown_.size() && asked.size() < (best_ ? kAtOnce : 1); ++next) {
        if (!IsTooSlow(unknown_[next]) && !HasTwin(unknown_[next])) asked.push_back(unknown_[next]);
      }
      std::vector<absl::Status> status(asked.size());
      InParallel(asked.size(), [&](size_t k) {
        const absl::StatusOr<PriceBook::Known> priced = prices_.PriceOf(setting_, *all_[asked[k]].plan);
        // A schedule that was mended may keep more in flight than the search took it to.
        status[k] = priced.ok() ? priced->fits : priced.status();
        if (status[k].ok()) all_[asked[k]].price = priced->seconds;
      });
      for (size_t k = 0; k < asked.size(); ++k) {
        if (status[k].ok()) Offer(asked[k]);
        why_not.Update(status[k]);
      }
    }
    if (best_) return *best_;
    why_not.Update(absl::FailedPreconditionError("there is no plan to choose"));
    return why_not;
  }

 private:
  double Idealised(size_t i) const { return all_[i].plan->predicted.step_seconds; }
  bool IsTooSlow(size_t i) const { return best_ && Idealised(i) >= kMostTooLong * all_[*best_].price; }

  void Offer(size_t i) {
    const bool better = !best_ || all_[i].price < all_[*best_].price || (all_[i].price == all_[*best_].price && i < *best_);
    if (better) best_ = i;
  }

  // Several strategies often find one plan: the first of them stands for all.
  bool HasTwin(size_t i) const {
    for (size_t other = 0; other < all_.size(); ++other) {
      const bool before = all_[other].price > 0 || other < i;
      if (other == i || !before || Idealised(other) != Idealised(i)) continue;
      if (DigestOf(*all_[other].plan) == DigestOf(*all_[i].plan)) return true;
    }
    return false;
  }

  const Setting& setting_;
  std::vector<Contender>& all_;
  PriceBook& prices_;
  std::vector<size_t> unknown_;  // without a price at first, the fastest by Evaluate first
  std::optional<size_t> best_;
};

// What a rank of a tensor-parallel unit, or of one of several pipelines, keeps of the state: the ledger knows parts of it, the
// program and the owned ranges its slices.
void SetState(const Costs& costs, const Program& program, const Ownership& ownership, MemoryByPurpose* memory) {
  const auto of_homes = [](const std::vector<UnitBuffer>& buffers) {
    int64_t elements = 0;
    for (const UnitBuffer& buffer : buffers) elements += buffer.home_of >= 0 ? buffer.elements : 0;
    return elements;
  };
  int64_t owned = 0;
  for (const int32_t unit : program.units) owned += ownership.NumOwned(unit, program.rank);
  const int64_t parameters = of_homes(program.parameter_buffers), gradients = of_homes(program.gradient_buffers);
  const int64_t alone = costs.casts_gathered() ? 0 : owned;  // the master copy counts with the moments
  memory->parameters = costs.element_bytes() * (parameters > 0 ? parameters : alone);
  memory->gradients = costs.gradient_bytes() * (gradients > 0 ? gradients : owned);
  memory->optimizer = costs.optimizer_bytes_per_element() * owned;
}

}  // namespace

absl::StatusOr<Evaluation> Price(const Setting& setting, Plan plan) {
  if (!IsPricedAsRun(setting, plan)) return Evaluate(setting, std::move(plan));
  MOTLEY_RETURN_IF_ERROR(CheckWorkload(setting, plan));
  GiveOwnership(setting.workload.model, &plan);
  if (!plan.training) {
    MOTLEY_ASSIGN_OR_RETURN(plan.training, PlacedSchedule(setting, plan));
  }
  Evaluation result;
  result.plan = std::move(plan);
  MOTLEY_ASSIGN_OR_RETURN(result.programs, LowerTraining(setting, result.plan));
  MOTLEY_ASSIGN_OR_RETURN(ProgramGraph priced, GraphOfPrograms(setting, result.plan, result.programs));
  result.task_of = std::move(priced.task_of);
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view, ViewOf(setting, result.plan, {.merge = false, .assign_samples = false}));
  const Schedule& schedule = *result.plan.training;
  const auto in_flight = [&](const RankView& rank, const RankDuty&) {
    const StageSchedule& stage = schedule.pipelines[rank.pipeline].stages[view.stages[rank.stage].index];
    return MostInFlight(stage, static_cast<size_t>(rank.unit));
  };
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<ModelSlice> slices, SlicesOfRanks(setting.workload.model, result.plan));
  std::vector<int> devices;
  for (const RankView& rank : view.ranks) devices.push_back(rank.device);
  // The ledger follows the family's order; the programs say what is there when, and in how many buffers.
  const auto walk = [&](size_t r, const RankDuty& duty, MemoryByPurpose* memory) {
    const RankView& rank = view.ranks[r];
    const StageView& stage = view.stages[rank.stage];
    const MicrobatchSizes microbatches(stage.plan->units[rank.unit].microbatches);
    const ActivationBytes peak = PeakActivations(setting.costs, rank.kind, result.programs[r], slices[r]);
    if (stage.num_ranks > stage.num_units || view.pipelines.size() > 1) {
      SetState(setting.costs, result.programs[r], *result.plan.ownership, memory);
    }
    memory->gathered = GatheredBytes(setting.costs, result.programs[r]);
    memory->boundaries = peak.boundaries;
    memory->saved = peak.saved + TokenBytesOf(setting.costs, duty, microbatches);
    memory->workspace = peak.workspace;
    memory->context =
        setting.costs.ContextBytes(rank.kind) + NcclBytes(setting.cluster, devices, result.programs[r], /*evaluation=*/{});
  };
  MOTLEY_RETURN_IF_ERROR(Predict(setting, view, std::move(priced.graph), in_flight, walk, &result));
  return result;
}

int64_t PriceNodes(const Setting& setting, const Plan& plan) {
  constexpr int64_t kNodesAPass = 3;
  if (AreClassesExact(plan) || !IsPricedAsRun(setting, plan)) return 0;
  return kNodesAPass * Passes(plan);
}

absl::StatusOr<size_t> FindFastest(const Setting& setting, std::vector<Contender>* contenders, PriceBook* prices) {
  PriceBook own;
  return Fastest(setting, contenders, prices != nullptr ? prices : &own).Find();
}

}  // namespace motley::planner
