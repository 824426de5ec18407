#include "planner/search/plan_moves.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/plan/each_rank.h"
#include "planner/search/in_flight.h"
#include "planner/search/offload_moves.h"
#include "planner/search/plan_classes.h"
#include "planner/search/unit_moves.h"
#include "planner/search/width_moves.h"

namespace motley::planner {
namespace {

constexpr size_t kMostOrdered = 8;     // stages, whose neighbours are exchanged
constexpr double kLeastShare = 0.005;  // a change of a share that is worth a look

class PlanMovesGenerator {
 public:
  PlanMovesGenerator(const Setting& setting, const Plan& plan) : setting_(setting), plan_(plan) {}

  std::vector<Move> All() {
    Layers();
    AddUnitMoves(setting_, plan_, &moves_);
    AddWidthMoves(setting_, plan_, &moves_);
    Schedules();
    InFlight();
    Orders();
    Shares();
    Sharding();
    AddOffloadMoves(setting_, plan_, &moves_);
    PipelineBatches();
    return Lawful();
  }

  std::vector<Move> OfSchedule() {
    Schedules();
    return Lawful();
  }

 private:
  std::vector<Move> Lawful() {
    for (Move& move : moves_) DropUnlawfulOffload(&move.plan);
    return std::move(moves_);
  }

  Plan& Add(std::string what) {
    moves_.push_back({std::move(what), plan_});
    return moves_.back().plan;
  }

  static double Busy(const StagePlan& stage) {
    double busy = 0;
    for (const UnitPlan& unit : stage.units) {
      for (const RankPlan& rank : unit.ranks) busy = std::max(busy, rank.predicted.busy_seconds);
    }
    return busy;
  }

  // From the busiest stage of a class of like pipelines, in all of them.
  void Layers() {
    for (const PipelineClass& shape : PipelineClassesOf(plan_)) {
      const PipelinePlan& pipeline = plan_.pipelines[shape.pipelines[0]];
      if (pipeline.stages.size() < 2) continue;
      size_t from = 0;
      for (size_t s = 1; s < pipeline.stages.size(); ++s) {
        if (Busy(pipeline.stages[s]) > Busy(pipeline.stages[from])) from = s;
      }
      const int64_t ministages = static_cast<int64_t>(pipeline.stages[0].ministages.size());
      std::vector<int64_t> counts = LayerCounts(pipeline);
      if (counts[from] <= ministages) continue;
      --counts[from];
      for (size_t to = 0; to < counts.size(); ++to) {
        if (to == from) continue;
        ++counts[to];
        Plan& plan = Add(absl::StrCat("one layer from stage ", from, " to stage ", to));
        for (const size_t p : shape.pipelines) AssignLayers(counts, ministages, &plan.pipelines[p]);
        --counts[to];
      }
    }
  }

  // Neighbouring stages of all pipelines of a shape change places, each with its layers.
  void Orders() {
    if (!setting_.request.pins.empty()) return;
    for (const PipelineClass& shape : PipelineClassesOf(plan_)) {
      const PipelinePlan& pipeline = plan_.pipelines[shape.pipelines[0]];
      if (pipeline.stages.size() < 2 || pipeline.stages.size() > kMostOrdered) continue;
      const int64_t ministages = static_cast<int64_t>(pipeline.stages[0].ministages.size());
      for (size_t s = 0; s + 1 < pipeline.stages.size(); ++s) {
        std::vector<int64_t> counts = LayerCounts(pipeline);
        std::swap(counts[s], counts[s + 1]);
        Plan& plan = Add(absl::StrCat("stages ", s, " and ", s + 1, " exchanged"));
        for (const size_t p : shape.pipelines) {
          std::vector<StagePlan>& stages = plan.pipelines[p].stages;
          std::swap(stages[s], stages[s + 1]);
          std::swap(stages[s].in_flight, stages[s + 1].in_flight);
          AssignLayers(counts, ministages, &plan.pipelines[p]);
        }
      }
    }
  }

  // Sharded state goes to where memory is free, so that others may recompute less.
  void Shares() {
    Plan plan = plan_;
    bool changed = false;
    ForEachStage(plan, [&](StagePlan& stage) { changed |= ShareByFreeMemory(&stage); });
    if (changed) moves_.push_back({"shares by free memory", std::move(plan)});
  }

  // Half the way to equally many bytes free on every rank, as far as shares go down to nothing. False: nothing to move, or no
  // room anywhere.
  bool ShareByFreeMemory(StagePlan* stage) const {
    if (stage->zero_stage == 0) return false;
    std::vector<RankPlan*> ranks;
    for (UnitPlan& unit : stage->units) {
      if (unit.ranks.size() > 1) return false;  // shares follow the tensor-parallel ones
      ranks.push_back(&unit.ranks[0]);
    }
    double state = 0, free = 0;
    for (const RankPlan* rank : ranks) {
      state += static_cast<double>(rank->predicted.memory.optimizer);
      free += std::max(0.0, FreeBytes(*rank));
    }
    if (ranks.size() < 2 || state <= 0) return false;
    double total = 0;
    std::vector<double> shares;
    for (const RankPlan* rank : ranks) {
      const double even = free / static_cast<double>(ranks.size());
      shares.push_back(std::max(0.0, rank->shard_ratio + (FreeBytes(*rank) - even) / state / 2));
      total += shares.back();
    }
    if (total <= 0) return false;
    bool changed = false;
    for (size_t i = 0; i < ranks.size(); ++i) {
      changed |= std::abs(shares[i] / total - ranks[i]->shard_ratio) > kLeastShare;
      ranks[i]->shard_ratio = shares[i] / total;
    }
    return changed;
  }
  double FreeBytes(const RankPlan& rank) const {
    const int device = setting_.FindDevice(rank.device);
    return device < 0 ? 0 : static_cast<double>(setting_.UsableBytes(device) - rank.predicted.peak_bytes);
  }

  void InFlight() {
    for (const double factor : {1.0, 1.5, 2.0, 3.0, 4.0, 8.0}) {
      Plan plan = WithInFlight(setting_, plan_, factor);
      if (!SameInFlight(plan, plan_))
        moves_.push_back({absl::StrCat(factor, " times the schedule's microbatches in flight"), std::move(plan)});
    }
  }

  static bool SameInFlight(const Plan& a, const Plan& b) {
    for (size_t p = 0; p < a.pipelines.size(); ++p) {
      for (size_t s = 0; s < a.pipelines[p].stages.size(); ++s) {
        if (a.pipelines[p].stages[s].in_flight != b.pipelines[p].stages[s].in_flight) return false;
      }
    }
    return true;
  }

  int64_t Ministages() const { return static_cast<int64_t>(plan_.pipelines[0].stages[0].ministages.size()); }

  void DealMinistages(int64_t ministages, ScheduleFamily schedule) {
    for (const PipelinePlan& pipeline : plan_.pipelines) {
      for (const int64_t count : LayerCounts(pipeline)) {
        if (count < ministages) return;
      }
    }
    if (ministages < 1) return;
    Plan& plan = Add(absl::StrCat(std::string(ScheduleName(schedule)), " with ", ministages, " ministages"));
    plan.schedule = schedule;
    if (!TraitsOf(schedule).takes_in_flight) ForEachStage(plan, [](StagePlan& stage) { stage.in_flight = 0; });
    for (PipelinePlan& pipeline : plan.pipelines) AssignLayers(LayerCounts(pipeline), ministages, &pipeline);
  }

  bool HasUnitOfSeveral() const {
    bool any = false;
    ForEachUnit(plan_, [&any](const UnitPlan& unit) { any |= unit.ranks.size() > 1; });
    return any;
  }

  void Schedules() {
    const int64_t now = Ministages();
    bool staged = false;
    for (const PipelinePlan& pipeline : plan_.pipelines) staged |= pipeline.stages.size() > 1;
    if (!staged) {
      // With one stage ministages are layers when layered, and where the gradients of a layer's weights hide a tensor-parallel
      // unit's sums; else there is nothing to interleave. Halves of a backward measured apart may seem to take less than the
      // whole: they are no reason to split it.
      for (const ScheduleFamily other : {ScheduleFamily::kLayered, ScheduleFamily::k1F1B, ScheduleFamily::kZeroBubble}) {
        if (other == plan_.schedule || (other == ScheduleFamily::kZeroBubble && !HasUnitOfSeveral())) continue;
        DealMinistages(other == ScheduleFamily::k1F1B ? 1 : LayerCounts(plan_.pipelines[0])[0], other);
      }
      return;
    }
    for (const int64_t ministages : {now - 1, now + 1, now * 2}) {
      if (ministages == now) continue;
      if (plan_.schedule == ScheduleFamily::kLayered) DealMinistages(ministages, ScheduleFamily::kLayered);
      if (plan_.schedule == ScheduleFamily::kInterleaved && ministages > 1)
        DealMinistages(ministages, ScheduleFamily::kInterleaved);
    }
    for (const ScheduleFamily other : {ScheduleFamily::kLayered, ScheduleFamily::k1F1B, ScheduleFamily::kZeroBubble}) {
      if (other != plan_.schedule) DealMinistages(other == ScheduleFamily::kLayered ? now : 1, other);
    }
    if (plan_.schedule != ScheduleFamily::kInterleaved) DealMinistages(2, ScheduleFamily::kInterleaved);
  }

  void Sharding() {
    for (int zero = 1; zero <= 3; ++zero) {
      if (setting_.request.zero_stage && *setting_.request.zero_stage != zero) continue;
      Plan plan = plan_;
      bool changed = false;
      ForEachStage(plan, [&](StagePlan& stage) { changed |= std::exchange(stage.zero_stage, zero) != zero; });
      if (changed) moves_.push_back({absl::StrCat("ZeRO stage ", zero), std::move(plan)});
    }
    for (int zero = 1; plan_.pipelines.size() > 1 && zero <= 2; ++zero) {
      if (zero != plan_.pipelines_zero_stage) Add(absl::StrCat("ZeRO ", zero, " between pipelines")).pipelines_zero_stage = zero;
    }
  }

  // Scales every unit of a pipeline to a new batch, keeping the number of microbatches; false where that would leave a stage
  // without samples.
  static bool SetPipelineBatch(int64_t batch, PipelinePlan* pipeline) {
    for (StagePlan& stage : pipeline->stages) {
      int64_t before = 0;
      for (const UnitPlan& unit : stage.units) before += unit.batch();
      if (before == 0 || batch < 1) return false;
      int64_t given = 0, seen = 0;
      for (UnitPlan& unit : stage.units) {
        seen += unit.batch();
        const int64_t upto = batch * seen / before;
        unit.microbatches = EvenParts(upto - given, static_cast<int64_t>(unit.microbatches.size()));
        given = upto;
      }
    }
    return true;
  }

  void PipelineBatches() {
    if (plan_.pipelines.size() < 2) return;
    std::vector<double> busy;
    for (const PipelinePlan& pipeline : plan_.pipelines) {
      double most = 0;
      for (const StagePlan& stage : pipeline.stages) most = std::max(most, Busy(stage));
      busy.push_back(most);
    }
    const size_t from = static_cast<size_t>(std::max_element(busy.begin(), busy.end()) - busy.begin());
    const size_t to = static_cast<size_t>(std::min_element(busy.begin(), busy.end()) - busy.begin());
    if (from == to) return;
    const auto batch_of = [this](size_t p) {
      int64_t sum = 0;
      for (const UnitPlan& unit : plan_.pipelines[p].stages[0].units) sum += unit.batch();
      return sum;
    };
    for (const int64_t samples : {int64_t{1}, std::max<int64_t>(2, batch_of(from) / 16)}) {
      Plan plan = plan_;
      if (!SetPipelineBatch(batch_of(from) - samples, &plan.pipelines[from])) continue;
      if (!SetPipelineBatch(batch_of(to) + samples, &plan.pipelines[to])) continue;
      moves_.push_back({absl::StrCat(samples, " samples from pipeline ", from, " to pipeline ", to), std::move(plan)});
    }
  }

  const Setting& setting_;
  const Plan& plan_;
  std::vector<Move> moves_;
};

}  // namespace

int KindOfRank(const Setting& setting, const RankPlan& rank) {
  for (size_t k = 0; k < setting.cluster.kinds.size(); ++k) {
    if (setting.cluster.kinds[k].name == rank.device_model) return static_cast<int>(k);
  }
  return setting.KindOf(std::max(0, setting.FindDevice(rank.device)));
}

std::vector<Move> Neighbours(const Setting& setting, const Plan& plan) { return PlanMovesGenerator(setting, plan).All(); }

std::vector<Move> ScheduleMoves(const Setting& setting, const Plan& plan) {
  return PlanMovesGenerator(setting, plan).OfSchedule();
}

void AssignLayers(const std::vector<int64_t>& counts, int64_t ministages, PipelinePlan* pipeline) {
  for (StagePlan& stage : pipeline->stages) stage.ministages.clear();
  int64_t next = 0;
  for (int64_t i = 0; i < ministages; ++i) {
    for (size_t s = 0; s < counts.size(); ++s) {
      const int64_t layers = counts[s] / ministages + (i < counts[s] % ministages ? 1 : 0);
      pipeline->stages[s].ministages.push_back({next, next + layers - 1});
      next += layers;
    }
  }
}

std::vector<int64_t> LayerCounts(const PipelinePlan& pipeline) {
  std::vector<int64_t> counts;
  for (const StagePlan& stage : pipeline.stages) counts.push_back(stage.layers());
  return counts;
}

OpSet SteppedRecompute(const Setting& setting, const RankPlan& rank, size_t ranks, int step) {
  const std::vector<OpSet> ladder = RecomputeLadder(setting, KindOfRank(setting, rank), ranks);
  size_t at = rank.recompute.all() ? ladder.size() - 1 : 0;
  for (size_t i = 0; i < ladder.size(); ++i) {
    if (ladder[i] == rank.recompute) at = i;
  }
  const std::ptrdiff_t next =
      std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(at) + step, 0, static_cast<std::ptrdiff_t>(ladder.size()) - 1);
  return ladder[next];
}

std::vector<OpSet> RecomputeLadder(const Setting& setting, int kind, size_t ranks) {
  if (!setting.MayRecomputeByOperator()) return setting.RecomputeWays();
  std::vector<Costs::OperatorCost> operators;
  for (const Costs::OperatorCost& op : setting.costs.Operators(kind)) {
    if (op.saved_bytes_per_sample > 0) operators.push_back(op);
  }
  std::sort(operators.begin(), operators.end(), [](const Costs::OperatorCost& a, const Costs::OperatorCost& b) {
    const double left = a.forward_part * b.saved_bytes_per_sample, right = b.forward_part * a.saved_bytes_per_sample;
    return std::tuple(left, a.op) < std::tuple(right, b.op);
  });
  std::vector<OpSet> ladder = {OpSet::None()};
  for (const Costs::OperatorCost& op : operators) ladder.push_back(ladder.back().With(op.op));
  ladder.back() = OpSet::All();
  for (OpSet& ops : ladder) ops = setting.RecomputedIn(ranks, ops);
  ladder.erase(std::unique(ladder.begin(), ladder.end()), ladder.end());
  return ladder;
}

}  // namespace motley::planner
