#include "tests/worker/engine/equivalence/shrink.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace motley::engine {
namespace {

using planner::LayerRange;
using planner::Plan;
using planner::RankPlan;
using planner::ScheduleFamily;
using planner::StagePlan;
using planner::UnitPlan;

std::vector<StagePlan>& StagesOf(PlannedJob& planned) { return planned.plan.pipelines[0].stages; }

template <typename Use>
void ForEachRank(StagePlan& stage, Use use) {
  for (UnitPlan& unit : stage.units) {
    for (RankPlan& rank : unit.ranks) use(rank);
  }
}

// What is left of the shares adds up to 1 again, a unit alone stores what it computes; owners were those of the ranks that there
// were.
void Rebalance(PlannedJob& planned, StagePlan& stage) {
  planned.plan.ownership.reset();
  double sum = 0;
  const auto units = static_cast<double>(stage.units.size());
  ForEachRank(stage, [&](RankPlan& rank) { sum += rank.shard_ratio; });
  ForEachRank(stage, [&](RankPlan& rank) {
    rank.shard_ratio = sum > 0 && stage.units.size() > 1 ? rank.shard_ratio / sum : rank.tp_share / units;
  });
}

// Devices are named by their place, so that equal plans have equal texts.
void NameDevices(PlannedJob& planned) {
  int device = 0;
  for (StagePlan& stage : StagesOf(planned)) {
    ForEachRank(stage, [&](RankPlan& rank) { rank.device = DeviceId("n" + std::to_string(device++) + "/gpu0"); });
  }
}

class Smaller {
 public:
  explicit Smaller(const PlannedJob& from) : from_(from) {}

  std::vector<PlannedJob> All() {
    const std::vector<StagePlan>& stages = from_.plan.pipelines[0].stages;
    for (size_t s = 0; s + 1 < stages.size(); ++s) MergeStages(s);
    JoinMinistages();
    for (size_t s = 0; s < stages.size(); ++s) {
      for (size_t u = 0; u < stages[s].units.size(); ++u) DropRank(s, u);
    }
    for (int64_t layer = 0; layer < from_.job.model.num_layers; ++layer) DropLayer(layer);
    for (const ScheduleFamily simpler : {ScheduleFamily::kLayered, ScheduleFamily::kGPipe, ScheduleFamily::k1F1B}) {
      if (simpler < from_.plan.schedule) TakeSchedule(simpler);
    }
    for (size_t s = 0; s < stages.size(); ++s) SimplifyStage(s);
    return std::move(found_);
  }

 private:
  void Add(PlannedJob planned) {
    NameDevices(planned);
    if (!planner::Validate(planned.plan, planned.job.model).ok()) planned.plan.ownership.reset();
    if (ToText(planned) != ToText(from_) && planner::ValidateForEngine(planned.plan, planned.job.model).ok()) {
      found_.push_back(std::move(planned));
    }
  }

  void MergeStages(size_t s) {
    PlannedJob planned = from_;
    std::vector<StagePlan>& stages = StagesOf(planned);
    for (size_t m = 0; m < stages[s].ministages.size(); ++m) {
      const LayerRange &here = stages[s].ministages[m], &next = stages[s + 1].ministages[m];
      stages[s].ministages[m] = {std::min(here.first, next.first), std::max(here.last, next.last)};
    }
    stages.erase(stages.begin() + static_cast<int64_t>(s) + 1);
    Rebalance(planned, stages[s]);
    Add(std::move(planned));
  }

  // The last two ministages of each stage become one: all layers from the second last round on are dealt anew, in one round.
  void JoinMinistages() {
    PlannedJob planned = from_;
    std::vector<StagePlan>& stages = StagesOf(planned);
    const size_t rounds = stages[0].ministages.size();
    if (rounds < 2) return;
    int64_t next = stages[0].ministages[rounds - 2].first;
    for (StagePlan& stage : stages) {
      int64_t layers = 0;
      for (size_t m = rounds - 2; m < rounds; ++m) layers += stage.ministages[m].last - stage.ministages[m].first + 1;
      stage.ministages.resize(rounds - 1);
      stage.ministages.back() = {next, next + layers - 1};
      next += layers;
    }
    Add(std::move(planned));
  }

  // Its samples go to another rank of the stage, to its last microbatch where it has one.
  void DropRank(size_t s, size_t u) {
    PlannedJob planned = from_;
    StagePlan& stage = StagesOf(planned)[s];
    if (stage.units.size() < 2) return;
    const UnitPlan dropped = stage.units[u];
    stage.units.erase(stage.units.begin() + static_cast<int64_t>(u));
    const auto heir = std::find_if(stage.units.begin(), stage.units.end(), [](const UnitPlan& unit) { return unit.batch() > 0; });
    if (heir == stage.units.end()) {
      stage.units[0].microbatches = dropped.microbatches;
    } else {
      heir->microbatches.back() += dropped.batch();
    }
    Rebalance(planned, stage);
    Add(std::move(planned));
  }

  void DropLayer(int64_t layer) {
    PlannedJob planned = from_;
    --planned.job.model.num_layers;
    if (!planned.job.model.layer_kinds.empty()) planned.job.model.layer_kinds.pop_back();
    for (StagePlan& stage : StagesOf(planned)) {
      for (LayerRange& range : stage.ministages) {
        if (range.first > layer) --range.first;
        if (range.last >= layer) --range.last;
      }
    }
    Add(std::move(planned));
  }

  void TakeSchedule(ScheduleFamily simpler) {
    PlannedJob planned = from_;
    planned.plan.schedule = simpler;
    for (StagePlan& stage : StagesOf(planned)) stage.in_flight = 0;
    // The layers of a V are dealt anew, in one round.
    const bool in_v = planner::TraitsOf(from_.plan.schedule).map == planner::VirtualStageMap::kV;
    for (int64_t next = 0; StagePlan & stage : StagesOf(planned)) {
      int64_t layers = 0;
      for (const LayerRange& range : stage.ministages) layers += range.last - range.first + 1;
      if (in_v) stage.ministages = {{next, next + layers - 1}};
      next += layers;
    }
    Add(std::move(planned));
  }

  void SimplifyStage(size_t s) {
    const auto change = [&](auto&& edit) {
      PlannedJob planned = from_;
      edit(StagesOf(planned)[s]);
      Add(std::move(planned));
    };
    const size_t stages = from_.plan.pipelines[0].stages.size();
    for (size_t u = 0; u < from_.plan.pipelines[0].stages[s].units.size(); ++u) {
      change([&](StagePlan& stage) { OneMicrobatch(stage.units[u], 1); });
      change([&](StagePlan& stage) {
        for (RankPlan& rank : stage.units[u].ranks) rank.recompute = planner::OpSet::None();
      });
    }
    // Interleaved wants a multiple of the stages on every unit of every stage.
    PlannedJob all = from_;
    for (StagePlan& stage : StagesOf(all)) {
      for (UnitPlan& unit : stage.units) OneMicrobatch(unit, static_cast<int64_t>(stages));
    }
    if (s == 0) Add(std::move(all));
    change([](StagePlan& stage) { stage.in_flight = 0; });
    change([](StagePlan& stage) { stage.zero_stage = 0; });
    PlannedJob even = from_;
    ForEachRank(StagesOf(even)[s], [](RankPlan& rank) { rank.shard_ratio = rank.tp_share; });
    Rebalance(even, StagesOf(even)[s]);
    Add(std::move(even));
    Narrow(s);
  }

  // A tensor-parallel unit's last rank gives what it computes to the one before.
  void Narrow(size_t s) {
    PlannedJob planned = from_;
    StagePlan& stage = StagesOf(planned)[s];
    if (stage.units[0].ranks.size() < 2) return;
    for (UnitPlan& unit : stage.units) {
      const double share = unit.ranks.back().tp_share;
      unit.ranks.pop_back();
      unit.ranks.back().tp_share += share;
    }
    Rebalance(planned, stage);
    Add(std::move(planned));
  }

  // `count`: as few as that.
  static void OneMicrobatch(UnitPlan& unit, int64_t count) {
    const int64_t batch = unit.batch();
    if (batch < count || static_cast<int64_t>(unit.microbatches.size()) <= count) return;
    unit.microbatches.assign(count, 1);
    unit.microbatches.back() += batch - count;
  }

  const PlannedJob& from_;
  std::vector<PlannedJob> found_;
};

}  // namespace

std::vector<PlannedJob> SmallerPlans(const PlannedJob& planned) { return Smaller(planned).All(); }

PlannedJob Shrink(PlannedJob failing, const std::function<bool(const PlannedJob&)>& fails, int most_questions) {
  for (int asked = 0; asked < most_questions;) {
    const std::vector<PlannedJob> smaller = SmallerPlans(failing);
    const auto found =
        std::find_if(smaller.begin(), smaller.end(), [&](const PlannedJob& p) { return asked++ < most_questions && fails(p); });
    if (found == smaller.end()) break;
    failing = *found;
  }
  return failing;
}

}  // namespace motley::engine
