#include "planner/pricing/price.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/in_parallel.h"
#include "common/base/status_macros.h"
#include "common/model/operators.h"
#include "planner/costs/engine_memory.h"
#include "planner/lowering/program_communicators.h"
#include "planner/memory/program_memory.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/layout_digest.h"
#include "planner/plan/ownership.h"
#include "planner/pricing/kept_plan.h"
#include "planner/pricing/prediction.h"
#include "planner/pricing/simulated_programs.h"
#include "planner/util/lack_of_memory.h"
#include "planner/view/plan_view.h"
#include "planner/view/resolved_plan.h"

namespace motley::planner {

namespace {

constexpr double kMostTooLong = 1.15;  // Evaluate's seconds over the programs', at most: where it merges what is not quite alike
constexpr size_t kAtOnce = 4;          // priced side by side; the same on every machine
constexpr int64_t kNodesAPass = 3;
constexpr int64_t kMostNodes = 200'000;  // of searches, and of what need not run; a fifth of a second

// By passes of a microbatch through a layer, of all ranks: about as many as their programs have instructions.
int64_t NodesOf(const Plan& plan) {
  int64_t passes = 0;
  ForEachStage(plan, [&passes](const StagePlan& stage) {
    int64_t microbatches = 0;
    for (const UnitPlan& unit : stage.units) microbatches += static_cast<int64_t>(unit.microbatches.size());
    passes += stage.layers() * microbatches;
  });
  return kNodesAPass * passes;
}

class Fastest {
 public:
  Fastest(const Setting& setting, std::vector<Contender>* contenders, PriceBook* prices)
      : setting_(setting), all_(*contenders), prices_(*prices) {
    for (size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].price == 0 && PriceNodes(*all_[i].plan) == 0) all_[i].price = Evaluated(i);
      all_[i].price > 0 ? Offer(i) : unknown_.push_back(i);
    }
    std::stable_sort(unknown_.begin(), unknown_.end(), [this](size_t a, size_t b) { return Evaluated(a) < Evaluated(b); });
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
  double Evaluated(size_t i) const { return all_[i].plan->predicted.step_seconds; }
  bool IsTooSlow(size_t i) const { return best_ && Evaluated(i) >= kMostTooLong * all_[*best_].price; }

  void Offer(size_t i) {
    const bool better = !best_ || all_[i].price < all_[*best_].price || (all_[i].price == all_[*best_].price && i < *best_);
    if (better) best_ = i;
  }

  // Several strategies often find one plan: the first of them stands for all.
  bool HasTwin(size_t i) const {
    for (size_t other = 0; other < all_.size(); ++other) {
      const bool before = all_[other].price > 0 || other < i;
      if (other == i || !before || Evaluated(other) != Evaluated(i)) continue;
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

// Whether units are stepped in turn, with their sums where these were made.
bool StepsFromBuffers(const Program& program) {
  return std::any_of(program.instructions.begin(), program.instructions.end(), [](const Instruction& instruction) {
    const auto* step = std::get_if<OptimizerStep>(&instruction.op);
    return step != nullptr && step->grad >= 0;
  });
}

// Bytes of ranks: of what their programs keep when, and in how many buffers.
class RankLedger {
 public:
  // `kept`: published, what they keep otherwise (kept_plan.h); may be nullptr.
  RankLedger(const Setting& setting, const ResolvedPlan& resolved, const WrittenPrograms& written, const PlanView* kept)
      : setting_(setting), costs_(setting.costs), resolved_(resolved), written_(written), kept_(kept) {
    for (const RankView& rank : resolved.view.ranks) devices_.push_back(rank.device);
  }

  // As published, in closed form.
  void AddBytes(size_t r, RankPrediction* predicted) const {
    const RankView& rank = resolved_.view.ranks[r];
    const StageView& stage = resolved_.view.stages[rank.stage];
    const StageSchedule& schedule = written_.schedule.pipelines[rank.pipeline].stages[stage.index];
    const PlanView& view = kept_ != nullptr ? *kept_ : resolved_.view;
    predicted->memory = ClosedFormBytes(setting_, view, r, MostInFlight(schedule, static_cast<size_t>(rank.unit)));
    if (IsEngines(costs_) && !written_.programs[r].instructions.empty()) Walk(r, DutyOf(resolved_.view, rank), predicted);
  }

 private:
  // The closed form follows the family's order, the program says what is there when.
  void Walk(size_t r, const RankDuty& duty, RankPrediction* predicted) const {
    MemoryByPurpose* const memory = &predicted->memory;
    const PlanView& view = resolved_.view;
    const RankView& rank = view.ranks[r];
    const StageView& stage = view.stages[rank.stage];
    const Program& program = written_.programs[r];
    ActivationBytes most;
    const ActivationBytes peak = PeakActivations(costs_, rank.kind, program, resolved_.slices[r], &most);
    const std::vector<int64_t> owned = OwnedBy(program);
    SetState(program, std::accumulate(owned.begin(), owned.end(), int64_t{0}), memory);
    memory->gathered = GatheredBytes(costs_, program);
    memory->slots = SlotBytes(program);
    predicted->waits = HostBytes(costs_, program, owned);
    memory->host = predicted->waits.total();
    memory->context = costs_.ContextBytes(rank.kind) + NcclBytes(setting_.cluster, devices_, program, /*evaluation=*/{});
    const int64_t tokens = TokenBytesOf(costs_, duty, MicrobatchSizes(stage.plan->units[rank.unit].microbatches));
    SetPasses(most, tokens, memory);
    predicted->most = *memory;
    SetPasses(peak, tokens, memory);
  }

  static void SetPasses(const ActivationBytes& activations, int64_t tokens, MemoryByPurpose* memory) {
    memory->boundaries = activations.boundaries;
    memory->saved = activations.saved + tokens;
    memory->workspace = activations.workspace;
  }

  // By unit of the model.
  std::vector<int64_t> OwnedBy(const Program& program) const {
    std::vector<int64_t> owned(static_cast<size_t>(program.num_units), 0);
    for (const int32_t unit : program.units) {
      owned[static_cast<size_t>(unit)] = resolved_.plan->ownership->NumOwned(unit, program.rank);
    }
    return owned;
  }

  // The program has homes or buffers in turn, the owned ranges what else stays; what waits in host memory is neither.
  void SetState(const Program& program, int64_t owned, MemoryByPurpose* memory) const {
    const auto of_homes = [](const std::vector<UnitBuffer>& buffers) {
      int64_t elements = 0;
      for (const UnitBuffer& buffer : buffers) elements += buffer.home_of >= 0 ? buffer.elements : 0;
      return elements;
    };
    OwnedBytes shards = costs_.OnDevice(program.offloads, owned);
    if (StepsFromBuffers(program)) shards.gradients = 0;
    const int64_t parameters = of_homes(program.parameter_buffers), gradients = of_homes(program.gradient_buffers);
    memory->parameters = parameters > 0 ? costs_.element_bytes() * parameters : shards.parameters;
    memory->gradients = gradients > 0 ? costs_.gradient_bytes() * gradients : shards.gradients;
    memory->optimizer = shards.optimizer;
  }

  const Setting& setting_;
  const Costs& costs_;
  const ResolvedPlan& resolved_;
  const WrittenPrograms& written_;
  const PlanView* const kept_;
  std::vector<int> devices_;
};

// Of ranks on cards that hold the head whole, in microbatches of more tokens than every head makes logits of at once.
bool MayHaveMoreHeadRows(const Setting& setting, const RankView& rank, const ModelSlice& slice, const Program& program) {
  const Costs& costs = setting.costs;
  const bool has_head = !program.units.empty() && program.units.back() == program.num_units - 1;
  return has_head && slice.whole() && costs.LaunchesAhead(rank.kind) && IsEngines(costs) &&
         std::any_of(program.microbatches.begin(), program.microbatches.end(), [&](const Microbatch& microbatch) {
           return microbatch.samples * costs.workload().seq_len > kHeadChunkTokens;
         });
}

// Leaves in `priced` what is priced of the plan, with owners.
absl::StatusOr<KeptPlan> Begin(const Setting& setting, Plan plan, Plan* priced) {
  MOTLEY_RETURN_IF_ERROR(Validate(plan, setting.workload.model));
  MOTLEY_RETURN_IF_ERROR(CheckWorkload(setting, plan));
  MOTLEY_ASSIGN_OR_RETURN(KeptPlan kept, KeptPlan::TakeFrom(setting, /*finishes=*/true, &plan));
  GiveOwnership(setting.workload.model, &plan);
  *priced = std::move(plan);
  return kept;
}

}  // namespace

absl::StatusOr<Evaluation> Price(const Setting& setting, Plan plan) {
  if (!setting.request.runnable && NodesOf(plan) > kMostNodes) return Evaluate(setting, std::move(plan));
  Evaluation result;
  MOTLEY_ASSIGN_OR_RETURN(KeptPlan kept, Begin(setting, std::move(plan), &result.plan));
  MOTLEY_ASSIGN_OR_RETURN(const ResolvedPlan resolved, Resolve(setting, result.plan));
  MOTLEY_ASSIGN_OR_RETURN(SimulatedPrograms simulated, SimulatePrograms(setting, resolved));
  const RankLedger ledger(setting, resolved, simulated.written, kept.view());
  // The search counts the fewest rows of logits at once: what fits, fits. Where there is room for more, a step is shorter.
  const auto bytes_of = [&](size_t r, RankPrediction* predicted) {
    const RankView& rank = resolved.view.ranks[r];
    Program& program = simulated.written.programs[r];
    if (MayHaveMoreHeadRows(setting, rank, resolved.slices[r], program)) {
      program.head_rows = HeadRowsOfCards(setting.workload.model.vocab_size);
    }
    ledger.AddBytes(r, predicted);
    if (program.head_rows == kHeadChunkTokens || predicted->memory.total() <= setting.UsableBytes(rank.device)) return;
    program.head_rows = kHeadChunkTokens;
    ledger.AddBytes(r, predicted);
  };
  result.task_of = std::move(simulated.priced.task_of);
  Predict(setting, resolved.view, std::move(simulated.priced.graph), std::move(simulated.timeline), bytes_of, &result);
  result.plan.predicted.as_run = true;
  result.programs = std::move(simulated.written.programs);
  result.plan.training = std::move(simulated.written.schedule);
  std::move(kept).GiveBackTo(&result.plan);
  return result;
}

absl::Status FitsAsScheduled(const Setting& setting, const Plan& plan) {
  if (!setting.request.runnable && NodesOf(plan) > kMostNodes) return absl::OkStatus();
  Evaluation counted;
  MOTLEY_ASSIGN_OR_RETURN(const KeptPlan kept, Begin(setting, plan, &counted.plan));
  MOTLEY_ASSIGN_OR_RETURN(const ResolvedPlan resolved, Resolve(setting, counted.plan));
  std::vector<bool> near;  // to full, or without predictions
  for (const RankView& rank : resolved.view.ranks) {
    const auto predicted = static_cast<double>(rank.plan->predicted.peak_bytes);
    near.push_back(predicted == 0 || predicted > kFarFromFull * static_cast<double>(setting.UsableBytes(rank.device)));
  }
  MOTLEY_ASSIGN_OR_RETURN(const WrittenPrograms written, WritePrograms(setting, resolved, near));
  const RankLedger ledger(setting, resolved, written, kept.view());
  CountMemory(
      setting, resolved.view, [&ledger](size_t r, RankPrediction* predicted) { ledger.AddBytes(r, predicted); }, &counted);
  if (counted.does_not_fit.empty()) return absl::OkStatus();
  return LackOfMemory(counted.lacking_bytes, absl::StrCat("no plan fits: ", absl::StrJoin(counted.does_not_fit, "; ")));
}

int64_t PriceNodes(const Plan& plan) {
  const int64_t nodes = NodesOf(plan);
  return nodes > kMostNodes ? 0 : nodes;
}

absl::StatusOr<size_t> FindFastest(const Setting& setting, std::vector<Contender>* contenders, PriceBook* prices) {
  PriceBook own;
  return Fastest(setting, contenders, prices != nullptr ? prices : &own).Find();
}

}  // namespace motley::planner
