#include "planner/search/width_moves.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/model/model_slice.h"
#include "planner/groups/megatron_layout.h"
#include "planner/search/plan_classes.h"
#include "planner/search/unit_moves.h"

namespace motley::planner {
namespace {

constexpr double kEven = 1e-9;  // shares are computed

class WidthMovesGenerator {
 public:
  WidthMovesGenerator(const Setting& setting, const Plan& plan, std::vector<Move>* moves)
      : setting_(setting),
        plan_(plan),
        moves_(*moves),
        degrees_(TensorParallelDegrees(setting.workload.model, setting.request.max_tp)) {
    for (const ClusterDevice& device : setting.cluster.devices) node_of_[device.id.value()] = device.node;
  }

  void Run() {
    for (const PipelineClass& shape : PipelineClassesOf(plan_)) {
      const size_t stages = plan_.pipelines[shape.pipelines[0]].stages.size();
      for (size_t s = 0; s < stages; ++s) {
        Join(shape, s);
        Cut(shape, s);
      }
    }
  }

 private:
  using Pair = std::pair<size_t, size_t>;

  const std::vector<UnitPlan>& Units(const PipelineClass& shape, size_t s) const {
    return plan_.pipelines[shape.pipelines[0]].stages[s].units;
  }
  // -1: in several nodes.
  int NodeOf(const UnitPlan& unit) const {
    int node = -1;
    for (const RankPlan& rank : unit.ranks) {
      const auto at = node_of_.find(rank.device.value());
      const int own = at == node_of_.end() ? -1 : at->second;
      if (own < 0 || (node >= 0 && node != own)) return -1;
      node = own;
    }
    return node;
  }
  static std::string Look(const UnitPlan& unit) { return absl::StrCat(unit.ranks.size(), " x ", unit.ranks[0].device_model); }
  static bool Even(const UnitPlan& unit) {
    return std::all_of(unit.ranks.begin(), unit.ranks.end(), [&](const RankPlan& rank) {
      return std::abs(rank.tp_share - unit.ranks[0].tp_share) < kEven && rank.device_model == unit.ranks[0].device_model;
    });
  }
  bool Possible(size_t ranks) const {
    return std::find(degrees_.begin(), degrees_.end(), static_cast<int>(ranks)) != degrees_.end();
  }

  double Speed(const RankPlan& rank) const {
    const int kind = KindOfRank(setting_, rank);
    return 1 /
           (setting_.costs.ForwardSeconds(kind, UnitKind::kLayer, 1) + setting_.costs.BackwardSeconds(kind, UnitKind::kLayer, 1));
  }

  // The first one's share of a unit of both, which are in one node; none: they do not go together.
  std::optional<double> FirstShare(const UnitPlan& a, const UnitPlan& b) const {
    if (a.ranks.size() != b.ranks.size()) return std::nullopt;
    if (Look(a) == Look(b) && Even(a) && Even(b)) {
      return Possible(2 * a.ranks.size()) ? std::optional<double>(0.5) : std::nullopt;
    }
    const int64_t heads = NumParts(setting_.workload.model);
    if (a.ranks.size() > 1 || heads < 2 || setting_.request.max_tp < 2) return std::nullopt;
    const double wanted = Speed(a.ranks[0]) / (Speed(a.ranks[0]) + Speed(b.ranks[0]));
    const int64_t whole = std::clamp<int64_t>(std::llround(wanted * static_cast<double>(heads)), 1, heads - 1);
    return static_cast<double>(whole) / static_cast<double>(heads);
  }

  // Pairs that do not overlap, by what they look like.
  void Join(const PipelineClass& shape, size_t s) {
    const std::vector<UnitPlan>& units = Units(shape, s);
    std::map<int, std::vector<size_t>> of_node;
    for (size_t u = 0; u < units.size(); ++u) {
      if (const int node = NodeOf(units[u]); node >= 0) of_node[node].push_back(u);
    }
    std::map<std::string, std::vector<Pair>> alike;
    std::set<size_t> taken;
    for (const auto& [node, here] : of_node) {
      for (size_t i = 0; i < here.size(); ++i) {
        for (size_t j = i + 1; j < here.size() && !taken.contains(here[i]); ++j) {
          const size_t u = here[i], v = here[j];
          if (taken.contains(v) || !FirstShare(units[u], units[v])) continue;
          alike[absl::StrCat(Look(units[u]), " and ", Look(units[v]))].push_back({u, v});
          taken.insert({u, v});
        }
      }
    }
    for (const auto& [look, pairs] : alike) {
      Add(absl::StrCat(look, " of stage ", s, " as one unit"), shape, s, [&](StagePlan* stage) { JoinPairs({pairs[0]}, stage); });
      if (pairs.size() < 2) continue;
      Add(absl::StrCat("all ", look, " of stage ", s, " as one unit each"), shape, s,
          [&](StagePlan* stage) { JoinPairs(pairs, stage); });
    }
  }

  void JoinPairs(const std::vector<Pair>& pairs, StagePlan* stage) const {
    std::set<size_t> gone;
    for (const auto& [u, v] : pairs) {
      UnitPlan &into = stage->units[u], &from = stage->units[v];
      const double first = FirstShare(into, from).value_or(0.5);
      const size_t count = std::max<size_t>(1, std::max(into.microbatches.size(), from.microbatches.size()));
      const int64_t batch = into.batch() + from.batch();
      for (RankPlan& rank : into.ranks) rank.tp_share *= first;
      for (RankPlan& rank : from.ranks) rank.tp_share *= 1 - first;
      into.ranks.insert(into.ranks.end(), from.ranks.begin(), from.ranks.end());
      for (RankPlan& rank : into.ranks) rank.recompute = setting_.RecomputedIn(into.ranks.size(), rank.recompute);
      into.microbatches = EvenParts(batch, static_cast<int64_t>(count));
      gone.insert(v);
    }
    for (auto v = gone.rbegin(); v != gone.rend(); ++v)
      stage->units.erase(stage->units.begin() + static_cast<std::ptrdiff_t>(*v));
  }

  void Cut(const PipelineClass& shape, size_t s) {
    const std::vector<UnitPlan>& units = Units(shape, s);
    std::map<std::string, std::vector<size_t>> alike;
    for (size_t u = 0; u < units.size(); ++u) {
      if (units[u].ranks.size() % 2 == 0 && Even(units[u]) && units[u].batch() > 1) alike[Look(units[u])].push_back(u);
    }
    for (const auto& [look, which] : alike) {
      Add(absl::StrCat(look, " of stage ", s, " as two units"), shape, s, [&](StagePlan* stage) { CutUnits({which[0]}, stage); });
      if (which.size() < 2) continue;
      Add(absl::StrCat("all ", look, " of stage ", s, " as two units each"), shape, s,
          [&](StagePlan* stage) { CutUnits(which, stage); });
    }
  }

  static void CutUnits(const std::vector<size_t>& which, StagePlan* stage) {
    for (auto u = which.rbegin(); u != which.rend(); ++u) {
      UnitPlan& whole = stage->units[*u];
      const auto count = static_cast<int64_t>(whole.microbatches.size());
      const int64_t batch = whole.batch();
      UnitPlan half;
      const auto middle = whole.ranks.begin() + static_cast<std::ptrdiff_t>(whole.ranks.size() / 2);
      half.ranks.assign(middle, whole.ranks.end());
      whole.ranks.erase(middle, whole.ranks.end());
      for (UnitPlan* unit : {&whole, &half}) {
        for (RankPlan& rank : unit->ranks) rank.tp_share = 1.0 / static_cast<double>(unit->ranks.size());
      }
      whole.microbatches = EvenParts(batch - batch / 2, count);
      half.microbatches = EvenParts(batch / 2, count);
      stage->units.insert(stage->units.begin() + static_cast<std::ptrdiff_t>(*u) + 1, std::move(half));
    }
  }

  template <typename Function>
  void Add(std::string what, const PipelineClass& shape, size_t s, Function change) {
    moves_.push_back({std::move(what), plan_});
    for (const size_t p : shape.pipelines) {
      StagePlan& stage = moves_.back().plan.pipelines[p].stages[s];
      change(&stage);
      ShareEvenly(&stage);
    }
  }

  const Setting& setting_;
  const Plan& plan_;
  std::vector<Move>& moves_;
  const std::vector<int> degrees_;
  std::map<std::string, int> node_of_;
};

}  // namespace

void AddWidthMoves(const Setting& setting, const Plan& plan, std::vector<Move>* moves) {
  WidthMovesGenerator(setting, plan, moves).Run();
}

}  // namespace motley::planner
