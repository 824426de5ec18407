#include "planner/search/unit_moves.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/search/plan_classes.h"

namespace motley::planner {
namespace {

constexpr size_t kDonors = 2;  // stages that may give a unit to the busiest one

std::vector<int64_t> BySize(int64_t batch, int64_t size) {
  std::vector<int64_t> out(static_cast<size_t>(batch / size), size);
  if (batch % size > 0) out.push_back(batch % size);
  return out;
}

int64_t Largest(const UnitPlan& unit) {
  return unit.microbatches.empty() ? 0 : *std::max_element(unit.microbatches.begin(), unit.microbatches.end());
}

double Busy(const UnitPlan& unit) {
  double busy = 0;
  for (const RankPlan& rank : unit.ranks) busy = std::max(busy, rank.predicted.busy_seconds);
  return busy;
}

int64_t BatchOf(const StagePlan& stage) {
  return std::accumulate(stage.units.begin(), stage.units.end(), int64_t{0},
                         [](int64_t sum, const UnitPlan& unit) { return sum + unit.batch(); });
}

// Who takes how much of `batch`: in proportion to `weights`, what rounding leaves to the first ones.
std::vector<int64_t> Shared(int64_t batch, const std::vector<double>& weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> out;
  int64_t left = batch;
  for (const double weight : weights) {
    out.push_back(std::min(left, static_cast<int64_t>(static_cast<double>(batch) * weight / total)));
    left -= out.back();
  }
  for (size_t i = 0; left > 0; i = (i + 1) % out.size()) {
    if (weights[i] <= 0) continue;
    ++out[i];
    --left;
  }
  return out;
}

class UnitMovesGenerator {
 public:
  UnitMovesGenerator(const Setting& setting, const Plan& plan, std::vector<Move>* moves)
      : setting_(setting), plan_(plan), classes_(UnitClassesOf(plan)), moves_(*moves) {}

  void Run() {
    Sizes();
    Rounds();
    Recomputation();
    Batches();
    Devices();
  }

 private:
  Plan& Add(std::string what) {
    moves_.push_back({std::move(what), plan_});
    return moves_.back().plan;
  }

  void Sizes() {
    const auto resized = [](int64_t size, int how) {
      return how == 0 ? size + 1 : how == 1 ? size - 1 : how == 2 ? size * 2 : size / 2;
    };
    static constexpr const char* kHow[] = {"one larger", "one smaller", "twice as large", "half as large"};
    for (int how = 0; how < 4; ++how) {
      for (const UnitClass& c : classes_) {
        const UnitPlan& unit = FirstUnit(c, plan_);
        const int64_t size = Largest(unit), wanted = resized(size, how);
        if (size == 0 || wanted < 1 || wanted > unit.batch() || wanted == size) continue;
        Plan& plan = Add(absl::StrCat("microbatches of ", Place(c, plan_), " ", kHow[how]));
        ForEachUnit(c, &plan, [wanted](UnitPlan& u) { u.microbatches = BySize(u.batch(), wanted); });
      }
      if (classes_.size() < 2) continue;
      Plan& plan = Add(absl::StrCat("all microbatches ", kHow[how]));
      for (const UnitClass& c : classes_) {
        ForEachUnit(c, &plan, [&](UnitPlan& unit) {
          const int64_t size = Largest(unit);
          if (size > 0) unit.microbatches = BySize(unit.batch(), std::clamp<int64_t>(resized(size, how), 1, unit.batch()));
        });
      }
    }
  }

  // Stages whose units have as many microbatches as their neighbours' wait least for each other.
  void Rounds() {
    int64_t now = 0;
    bool staged = false;
    for (const UnitClass& c : classes_) {
      now = std::max(now, static_cast<int64_t>(FirstUnit(c, plan_).microbatches.size()));
      staged |= c.stage > 0;
    }
    if (!staged) return;
    for (const int64_t rounds : {now - 1, now, now + 1, now * 2, now / 2, now * 3 / 2}) {
      if (rounds < 1) continue;
      Plan plan = plan_;
      bool changed = false;
      for (const UnitClass& c : classes_) {
        ForEachUnit(c, &plan, [&](UnitPlan& unit) {
          std::vector<int64_t> wanted = EvenParts(unit.batch(), rounds);
          changed |= wanted != unit.microbatches;
          unit.microbatches = std::move(wanted);
        });
      }
      if (changed) moves_.push_back({absl::StrCat("everyone in ", rounds, " microbatches"), std::move(plan)});
    }
  }

  void Recompute(const std::vector<UnitClass>& classes, const std::string& what,
                 const std::function<OpSet(const RankPlan&, size_t)>& set) {
    Plan plan = plan_;
    bool changed = false;
    for (const UnitClass& c : classes) {
      ForEachUnit(c, &plan, [&](UnitPlan& unit) {
        for (RankPlan& rank : unit.ranks) {
          const OpSet wanted = set(rank, unit.ranks.size());
          changed |= wanted != rank.recompute;
          rank.recompute = wanted;
        }
      });
    }
    if (changed) moves_.push_back({what, std::move(plan)});
  }

  void Recomputation() {
    std::vector<std::pair<std::string, std::vector<UnitClass>>> targets = {{"all", classes_}};
    for (const UnitClass& c : classes_) targets.push_back({Place(c, plan_), {c}});
    if (classes_.size() == 1) targets.pop_back();
    OpSet least = OpSet::None(), most = OpSet::All();
    if (!setting_.MayRecomputeByOperator()) {  // as the request wants it
      const std::vector<OpSet> ladder = RecomputeLadder(setting_, 0, 1);
      least = ladder.front();
      most = ladder.back();
    }
    for (const auto& [where, classes] : targets) {
      Recompute(classes, absl::StrCat("no recomputation on ", where), [&](const RankPlan&, size_t) { return least; });
      Recompute(classes, absl::StrCat("full recomputation on ", where), [&](const RankPlan&, size_t) { return most; });
      if (!setting_.MayRecomputeByOperator()) continue;
      Recompute(classes, absl::StrCat("one operator less recomputed on ", where),
                [this](const RankPlan& rank, size_t ranks) { return SteppedRecompute(setting_, rank, ranks, -1); });
      Recompute(classes, absl::StrCat("one operator more recomputed on ", where),
                [this](const RankPlan& rank, size_t ranks) { return SteppedRecompute(setting_, rank, ranks, 1); });
    }
  }

  // The classes of one stage of one class of pipelines that are busiest and least busy.
  void Batches() {
    for (size_t first = 0; first < classes_.size();) {
      size_t end = first;
      while (end < classes_.size() && SameStage(classes_[first], classes_[end])) ++end;
      const auto busy = [this](const UnitClass& a, const UnitClass& b) {
        return Busy(FirstUnit(a, plan_)) < Busy(FirstUnit(b, plan_));
      };
      const auto begin = classes_.begin() + static_cast<std::ptrdiff_t>(first),
                 stop = classes_.begin() + static_cast<std::ptrdiff_t>(end);
      const UnitClass &from = *std::max_element(begin, stop, busy), &to = *std::min_element(begin, stop, busy);
      if (&from != &to) {
        MoveSamples(from, to, 1);
        const auto rounds = static_cast<int64_t>(FirstUnit(from, plan_).microbatches.size());
        if (rounds > 1) MoveSamples(from, to, rounds);
      }
      first = end;
    }
  }

  static bool SameStage(const UnitClass& a, const UnitClass& b) {
    return a.stage == b.stage && a.places[0].first == b.places[0].first;
  }

  // In each pipeline so many samples from every unit of `from`, dealt over the units of `to`.
  void MoveSamples(const UnitClass& from, const UnitClass& to, int64_t samples) {
    Plan plan = plan_;
    const auto at = [&plan](const UnitClass& c, size_t i) -> UnitPlan& {
      return plan.pipelines[c.places[i].first].stages[c.stage].units[c.places[i].second];
    };
    const auto resize = [](UnitPlan* unit, int64_t by) {
      const auto count = std::max<int64_t>(1, static_cast<int64_t>(unit->microbatches.size()));
      unit->microbatches = EvenParts(unit->batch() + by, count);
    };
    for (size_t i = 0, j = 0; i < from.places.size(); ++i) {
      // Both lists are in the order of their pipelines.
      while (j < to.places.size() && to.places[j].first < from.places[i].first) ++j;
      if (j == to.places.size() || to.places[j].first != from.places[i].first || at(from, i).batch() <= samples) return;
      resize(&at(from, i), -samples);
      resize(&at(to, j), samples);
      const bool last_of_pipeline = j + 1 == to.places.size() || to.places[j + 1].first != to.places[j].first;
      if (!last_of_pipeline) {
        ++j;
      } else {
        while (j > 0 && to.places[j - 1].first == to.places[j].first) --j;
      }
    }
    moves_.push_back({absl::StrCat(samples, samples == 1 ? " sample" : " samples", " each from ", Place(from, plan_), " to ",
                                   Place(to, plan_)),
                      std::move(plan)});
  }

  // In every pipeline of a class: one unit of a stage that waits to the busiest stage; both share their batches anew by speed.
  void Devices() {
    for (const PipelineClass& shape : PipelineClassesOf(plan_)) {
      const std::vector<StagePlan>& stages = plan_.pipelines[shape.pipelines[0]].stages;
      std::vector<std::pair<double, size_t>> busy;
      for (size_t s = 0; s < stages.size(); ++s) {
        double most = 0;
        for (const UnitPlan& unit : stages[s].units) most = std::max(most, Busy(unit));
        busy.emplace_back(most, s);
      }
      std::sort(busy.begin(), busy.end());
      for (size_t i = 0; i + 1 < busy.size() && i < kDonors; ++i) MoveUnits(shape, busy[i].second, busy.back().second);
    }
  }

  void MoveUnits(const PipelineClass& shape, size_t from, size_t to) {
    const std::vector<UnitPlan>& units = plan_.pipelines[shape.pipelines[0]].stages[from].units;
    if (units.size() < 2) return;
    std::vector<std::string> tried;
    for (size_t u = 0; u < units.size(); ++u) {
      const std::string card =
          units[u].ranks.empty() ? "" : absl::StrCat(units[u].ranks.size(), " x ", units[u].ranks[0].device_model);
      if (std::find(tried.begin(), tried.end(), card) != tried.end()) continue;
      tried.push_back(card);
      Plan& plan = Add(absl::StrCat("a unit of ", card, " from stage ", from, " to stage ", to));
      for (const size_t p : shape.pipelines) MoveUnit(u, &plan.pipelines[p].stages[from], &plan.pipelines[p].stages[to]);
    }
  }

  double Speed(const UnitPlan& unit) const {
    const int kind = KindOfRank(setting_, unit.ranks.front());
    const double samples = static_cast<double>(std::max<int64_t>(1, Largest(unit)));
    return static_cast<double>(unit.ranks.size()) * samples /
           (setting_.costs.ForwardSeconds(kind, UnitKind::kLayer, samples) +
            setting_.costs.BackwardSeconds(kind, UnitKind::kLayer, samples));
  }

  void MoveUnit(size_t u, StagePlan* from, StagePlan* to) {
    for (StagePlan* stage : {from, to}) {
      const int64_t batch = BatchOf(*stage);
      size_t rounds = 1;
      for (const UnitPlan& unit : stage->units) rounds = std::max(rounds, unit.microbatches.size());
      if (stage == from) {
        moving_ = stage->units[u];
        stage->units.erase(stage->units.begin() + static_cast<std::ptrdiff_t>(u));
      } else {
        stage->units.push_back(moving_);
      }
      std::vector<double> speeds;
      for (const UnitPlan& unit : stage->units) speeds.push_back(Speed(unit));
      const std::vector<int64_t> batches = Shared(batch, speeds);
      for (size_t i = 0; i < batches.size(); ++i)
        stage->units[i].microbatches = EvenParts(batches[i], static_cast<int64_t>(rounds));
      ShareEvenly(stage);
    }
  }

  const Setting& setting_;
  const Plan& plan_;
  const std::vector<UnitClass> classes_;
  std::vector<Move>& moves_;
  UnitPlan moving_;
};

}  // namespace

void AddUnitMoves(const Setting& setting, const Plan& plan, std::vector<Move>* moves) {
  UnitMovesGenerator(setting, plan, moves).Run();
}

void ShareEvenly(StagePlan* stage) {
  size_t ranks = 0;
  for (const UnitPlan& unit : stage->units) ranks += unit.ranks.size();
  for (UnitPlan& unit : stage->units) {
    for (RankPlan& rank : unit.ranks)
      rank.shard_ratio = stage->units.size() == 1 ? rank.tp_share : 1.0 / static_cast<double>(ranks);
  }
}

std::vector<int64_t> EvenParts(int64_t batch, int64_t count) {
  count = std::min(count, batch);
  std::vector<int64_t> out;
  if (count < 1) return out;
  out.reserve(static_cast<size_t>(count));
  // ceil(i batch / count) less the one before, without dividing each time.
  const int64_t whole = batch / count, rest = batch % count;
  for (int64_t i = 0, over = 0; i < count; ++i) {
    over += rest;
    const bool more = over > 0;
    out.push_back(whole + (more ? 1 : 0));
    if (more) over -= count;
  }
  return out;
}

}  // namespace motley::planner
