#include "planner/strategies/plan_moves.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace motley::planner {
namespace {

// What makes units of a stage alike.
struct UnitKey {
  std::vector<std::string> cards;
  std::vector<double> tp_shares;
  std::vector<std::string> recompute;
  std::vector<int64_t> microbatches;
  friend auto operator<=>(const UnitKey&, const UnitKey&) = default;
};

UnitKey KeyOf(const UnitPlan& unit) {
  UnitKey key;
  for (const RankPlan& rank : unit.ranks) {
    key.cards.push_back(rank.device_model);
    key.tp_shares.push_back(rank.tp_share);
    key.recompute.push_back(rank.recompute);
  }
  key.microbatches = unit.microbatches;
  return key;
}

// One class of like units, by place.
struct UnitClass {
  size_t pipeline = 0, stage = 0;
  UnitKey key;
  std::vector<size_t> units;
};

std::vector<UnitClass> ClassesOf(const Plan& plan) {
  std::vector<UnitClass> classes;
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      const size_t first = classes.size();
      const std::vector<UnitPlan>& units = plan.pipelines[p].stages[s].units;
      for (size_t u = 0; u < units.size(); ++u) {
        UnitKey key = KeyOf(units[u]);
        const auto same = std::find_if(classes.begin() + static_cast<std::ptrdiff_t>(first), classes.end(),
                                       [&key](const UnitClass& c) { return c.key == key; });
        if (same != classes.end()) {
          same->units.push_back(u);
        } else {
          classes.push_back({p, s, std::move(key), {u}});
        }
      }
    }
  }
  return classes;
}

StagePlan& StageAt(Plan* plan, const UnitClass& c) { return plan->pipelines[c.pipeline].stages[c.stage]; }

std::vector<int64_t> Split(int64_t batch, int64_t size) {
  std::vector<int64_t> out(static_cast<size_t>(batch / size), size);
  if (batch % size > 0) out.push_back(batch % size);
  return out;
}

std::string Place(const UnitClass& c) {
  std::string where = absl::StrCat(c.units.size(), " x ", c.key.cards.empty() ? "?" : c.key.cards[0]);
  if (c.pipeline > 0) absl::StrAppend(&where, " of pipeline ", c.pipeline);
  return absl::StrCat(where, " in stage ", c.stage);
}

int KindNamed(const Setting& setting, const std::string& card) {
  for (size_t k = 0; k < setting.cluster.kinds.size(); ++k) {
    if (setting.cluster.kinds[k].name == card) return static_cast<int>(k);
  }
  return 0;
}

class Generator {
 public:
  Generator(const Setting& setting, const Plan& plan) : setting_(setting), plan_(plan), classes_(ClassesOf(plan)) {}

  std::vector<Move> All() {
    Layers();
    Microbatches();
    Recomputation();
    Schedules();
    Sharding();
    Offload();
    PipelineBatches();
    return std::move(moves_);
  }

 private:
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

  void Layers() {
    for (size_t p = 0; p < plan_.pipelines.size(); ++p) {
      const PipelinePlan& pipeline = plan_.pipelines[p];
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
        AssignLayers(counts, ministages, &Add(absl::StrCat("one layer from stage ", from, " to stage ", to)).pipelines[p]);
        --counts[to];
      }
    }
  }

  static int64_t Largest(const UnitPlan& unit) {
    return unit.microbatches.empty() ? 0 : *std::max_element(unit.microbatches.begin(), unit.microbatches.end());
  }

  void Microbatches() {
    const auto resized = [](int64_t size, int how) {
      return how == 0 ? size + 1 : how == 1 ? size - 1 : how == 2 ? size * 2 : size / 2;
    };
    static constexpr const char* kHow[] = {"one larger", "one smaller", "twice as large", "half as large"};
    for (int how = 0; how < 4; ++how) {
      for (const UnitClass& c : classes_) {
        const UnitPlan& unit = plan_.pipelines[c.pipeline].stages[c.stage].units[c.units[0]];
        const int64_t size = Largest(unit), wanted = resized(size, how);
        if (size == 0 || wanted < 1 || wanted > unit.batch() || wanted == size) continue;
        Plan& plan = Add(absl::StrCat("microbatches of ", Place(c), " ", kHow[how]));
        for (const size_t u : c.units) StageAt(&plan, c).units[u].microbatches = Split(unit.batch(), wanted);
      }
      if (classes_.size() < 2) continue;
      Plan& plan = Add(absl::StrCat("all microbatches ", kHow[how]));
      for (const UnitClass& c : classes_) {
        for (const size_t u : c.units) {
          UnitPlan& unit = StageAt(&plan, c).units[u];
          const int64_t size = Largest(unit);
          if (size > 0) unit.microbatches = Split(unit.batch(), std::clamp<int64_t>(resized(size, how), 1, unit.batch()));
        }
      }
    }
  }

  void Recompute(const std::vector<UnitClass>& classes, const std::string& what,
                 const std::function<std::string(const RankPlan&)>& set) {
    Plan plan = plan_;
    bool changed = false;
    for (const UnitClass& c : classes) {
      for (const size_t u : c.units) {
        for (RankPlan& rank : StageAt(&plan, c).units[u].ranks) {
          std::string wanted = set(rank);
          changed |= wanted != rank.recompute;
          rank.recompute = std::move(wanted);
        }
      }
    }
    if (changed) moves_.push_back({what, std::move(plan)});
  }

  void Recomputation() {
    std::vector<std::pair<std::string, std::vector<UnitClass>>> targets = {{"all", classes_}};
    for (const UnitClass& c : classes_) targets.push_back({Place(c), {c}});
    if (classes_.size() == 1) targets.pop_back();
    for (const auto& [where, classes] : targets) {
      Recompute(classes, absl::StrCat("no recomputation on ", where), [](const RankPlan&) { return std::string("none"); });
      Recompute(classes, absl::StrCat("full recomputation on ", where), [](const RankPlan&) { return std::string("full"); });
      Recompute(classes, absl::StrCat("one operator less recomputed on ", where),
                [this](const RankPlan& rank) { return SteppedRecompute(setting_, rank, -1); });
      Recompute(classes, absl::StrCat("one operator more recomputed on ", where),
                [this](const RankPlan& rank) { return SteppedRecompute(setting_, rank, 1); });
    }
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
    for (PipelinePlan& pipeline : plan.pipelines) AssignLayers(LayerCounts(pipeline), ministages, &pipeline);
  }

  void Schedules() {
    const int64_t now = Ministages();
    bool staged = false;
    for (const PipelinePlan& pipeline : plan_.pipelines) staged |= pipeline.stages.size() > 1;
    if (!staged) {
      // With one stage ministages are layers when layered; else there is nothing to interleave.
      if (plan_.schedule != ScheduleFamily::kLayered) DealMinistages(LayerCounts(plan_.pipelines[0])[0], ScheduleFamily::kLayered);
      if (plan_.schedule != ScheduleFamily::k1F1B) DealMinistages(1, ScheduleFamily::k1F1B);
      return;
    }
    for (const int64_t ministages : {now - 1, now + 1, now * 2}) {
      if (ministages == now) continue;
      if (plan_.schedule == ScheduleFamily::kLayered) DealMinistages(ministages, ScheduleFamily::kLayered);
      if (plan_.schedule == ScheduleFamily::kInterleaved && ministages > 1) DealMinistages(ministages, ScheduleFamily::kInterleaved);
    }
    for (const ScheduleFamily other : {ScheduleFamily::kLayered, ScheduleFamily::k1F1B, ScheduleFamily::kZeroBubble}) {
      if (other != plan_.schedule) DealMinistages(other == ScheduleFamily::kLayered ? now : 1, other);
    }
    if (plan_.schedule != ScheduleFamily::kInterleaved) DealMinistages(2, ScheduleFamily::kInterleaved);
  }

  void Sharding() {
    for (int zero = 0; zero <= 3; ++zero) {
      if (setting_.request.zero_stage && *setting_.request.zero_stage != zero) continue;
      Plan plan = plan_;
      bool changed = false;
      for (PipelinePlan& pipeline : plan.pipelines) {
        for (StagePlan& stage : pipeline.stages) {
          changed |= stage.zero_stage != zero;
          stage.zero_stage = zero;
        }
      }
      if (changed) moves_.push_back({absl::StrCat("ZeRO stage ", zero), std::move(plan)});
    }
    for (int zero = 0; plan_.pipelines.size() > 1 && zero <= 2; ++zero) {
      if (zero != plan_.pipelines_zero_stage) Add(absl::StrCat("ZeRO ", zero, " between pipelines")).pipelines_zero_stage = zero;
    }
  }

  void Offload() {
    bool known = true;
    for (const ClusterNode& node : setting_.cluster.nodes) known &= node.host_memory_bytes > 0 && node.host_link_bytes_per_second > 0;
    if (!known) return;
    for (const auto& [flag, what] : {std::pair{&RankPlan::offload_activations, "activations"},
                                     std::pair{&RankPlan::offload_parameters, "parameters"}}) {
      for (const bool on : {false, true}) {
        Plan plan = plan_;
        bool changed = false;
        for (PipelinePlan& pipeline : plan.pipelines) {
          for (StagePlan& stage : pipeline.stages) {
            for (UnitPlan& unit : stage.units) {
              for (RankPlan& rank : unit.ranks) {
                changed |= rank.*flag != on;
                rank.*flag = on;
              }
            }
          }
        }
        if (changed) moves_.push_back({absl::StrCat(what, on ? " offloaded" : " kept on the device"), std::move(plan)});
      }
    }
  }

  // Scales every unit of a pipeline to a new batch, keeping microbatch sizes; false where that would leave a stage without samples.
  static bool SetPipelineBatch(int64_t batch, PipelinePlan* pipeline) {
    for (StagePlan& stage : pipeline->stages) {
      int64_t before = 0;
      for (const UnitPlan& unit : stage.units) before += unit.batch();
      if (before == 0 || batch < 1) return false;
      int64_t given = 0, seen = 0;
      for (UnitPlan& unit : stage.units) {
        seen += unit.batch();
        const int64_t upto = batch * seen / before, size = Largest(unit);
        if (size > 0) unit.microbatches = Split(upto - given, size);
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
  const std::vector<UnitClass> classes_;
  std::vector<Move> moves_;
};

}  // namespace

std::vector<Move> Neighbours(const Setting& setting, const Plan& plan) { return Generator(setting, plan).All(); }

void AssignLayers(const std::vector<int64_t>& counts, int64_t ministages, PipelinePlan* pipeline) {
  for (StagePlan& stage : pipeline->stages) {
    stage.ministages.clear();
    stage.placement.clear();
  }
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
  for (const StagePlan& stage : pipeline.stages) {
    int64_t sum = 0;
    for (const LayerRange& range : stage.ministages) sum += range.last - range.first + 1;
    counts.push_back(sum);
  }
  return counts;
}

std::string SteppedRecompute(const Setting& setting, const RankPlan& rank, int step) {
  const std::vector<OpSet> ladder = RecomputeLadder(setting, KindNamed(setting, rank.device_model));
  const auto now = ParseOpSet(rank.recompute);
  size_t at = now.ok() && now->all() ? ladder.size() - 1 : 0;
  for (size_t i = 0; now.ok() && i < ladder.size(); ++i) {
    if (ladder[i] == *now) at = i;
  }
  const std::ptrdiff_t next =
      std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(at) + step, 0, static_cast<std::ptrdiff_t>(ladder.size()) - 1);
  return ToText(ladder[static_cast<size_t>(next)]);
}

std::vector<OpSet> RecomputeLadder(const Setting& setting, int kind) {
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
  return ladder;
}

}  // namespace motley::planner
