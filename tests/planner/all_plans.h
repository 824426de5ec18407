// Every plan of the language for a tiny setting (two or three devices, a few layers, a batch of a few samples), one after another
// in a fixed order: the yardstick of strategies that search.
//
// Enumerated: subsets of the devices; their partitions into pipelines, stages in any order, and units; tensor-parallel shares of
// whole heads, even or not; ranks that only store; batches of pipelines and units; microbatches in every size; layers and
// ministages; recomputation by rank; the five schedules; microbatches in flight; ZeRO 0 to 3 with shards even, by memory, as even
// as memory allows, and all on one rank; ZeRO between pipelines; offload where all hosts' memory is known.
//
// Left out: microbatches in other than non-increasing order; recomputation by operator (see AllPlansGrid); shards between those
// named; offload that differs between ranks; a tensor-parallel unit alone in its stage whose shards are not its tensor-parallel
// shares (nothing would carry the state to where it is needed); orders of pipelines and of units, which decide ties only;
// explicit placements, which say no more than shards. `interleaved` with one ministage is 1f1b.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/costs/memory_model.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"
#include "tests/planner/all_pipelines.h"

namespace motley::planner {

struct AllPlansGrid {
  std::vector<OpSet> recompute = {OpSet::None(), OpSet::All()};  // the first costs least time
  bool in_flight = true;                                         // other limits than the schedule's
  bool exchanges = false;  // plans that differ by an exchange of like cards of a node alone: all, not only the first
};

class AllPlans {
 public:
  // Asked when devices, layers, batches and tensor-parallel shares are chosen, and again when recomputation is: whether to go on
  // with what is still open. What is open has the values that compute least.
  using Worth = std::function<bool(const Plan&)>;
  using Visit = std::function<void(const Plan&)>;

  explicit AllPlans(const Setting& setting, AllPlansGrid grid = {});
  void ForEach(const Worth& worth, const Visit& visit);
  void ForEach(const Visit& visit) {
    ForEach([](const Plan&) { return true; }, visit);
  }

 private:
  struct StageChoice {
    int zero_stage = 0;
    std::vector<double> shards;  // by rank; empty: as even as memory allows
  };
  // A stage that may keep another number of microbatches in flight than the schedule says, and the most of which it has.
  struct StageLimit {
    StagePlan* stage = nullptr;
    int64_t usual = 0, most = 0;
  };
  using Next = std::function<void()>;

  std::vector<StageChoice> StageChoices(const StagePlan& stage) const;

  void Pipelines(const Sets& parts, const Sizes& batches, size_t p);
  std::string Likeness() const;
  std::string Likeness(const DeviceId& device) const;
  void Recompute(const std::vector<RankPlan*>& ranks, size_t r);
  void Schedules();
  bool Allowed(ScheduleFamily schedule) const;
  std::vector<StageLimit> StageLimits();
  void InFlight(const std::vector<StageLimit>& stages, size_t s, const Next& next);
  void Offload(const Next& next);
  void Stage(const std::vector<StagePlan*>& stages, size_t s);
  std::vector<double> AsMemoryAllows(const StagePlan& stage) const;
  std::vector<StagePlan*> Stages();
  std::vector<RankPlan*> Ranks(bool computing);

  const Setting& setting_;
  const AllPlansGrid grid_;
  AllPipelines pipelines_;
  std::set<std::string> likenesses_;
  Plan plan_;
  Worth worth_;
  Visit visit_;
};

inline AllPlans::AllPlans(const Setting& setting, AllPlansGrid grid)
    : setting_(setting), grid_(std::move(grid)), pipelines_(setting) {
  plan_.strategy = "all";
  plan_.global_batch = setting.workload.global_batch;
  plan_.seq_len = setting.workload.seq_len;
  plan_.dtype = setting.workload.dtype;
}

inline void AllPlans::ForEach(const Worth& worth, const Visit& visit) {
  worth_ = worth;
  visit_ = visit;
  likenesses_.clear();
  const int devices = setting_.num_devices();
  for (uint32_t mask = 1; mask < (uint32_t{1} << devices); ++mask) {
    std::vector<int> used;
    plan_.unused.clear();
    for (int d = 0; d < devices; ++d) {
      if ((mask >> d) & 1) {
        used.push_back(d);
      } else {
        plan_.unused.push_back({setting_.cluster.devices[d].id, "left out"});
      }
    }
    for (const Sets& parts : SetPartitions(used)) {
      for (const Sizes& batches : Compositions(plan_.global_batch, static_cast<int64_t>(parts.size()), 1)) {
        plan_.pipelines.resize(parts.size());
        Pipelines(parts, batches, 0);
      }
    }
  }
}

inline void AllPlans::Pipelines(const Sets& parts, const Sizes& batches, size_t p) {
  if (p == parts.size()) {
    if (!grid_.exchanges && !likenesses_.insert(Likeness()).second) return;
    if (worth_(plan_)) Recompute(Ranks(/*computing=*/true), 0);
    return;
  }
  for (const PipelinePlan& pipeline : pipelines_.Of(parts[p], batches[p])) {
    plan_.pipelines[p] = pipeline;
    Pipelines(parts, batches, p + 1);
  }
}

// The same for cards of which each can stand for the other.
inline std::string AllPlans::Likeness(const DeviceId& device) const {
  for (const ClusterDevice& d : setting_.cluster.devices) {
    const bool roots = !setting_.cluster.nodes[d.node].pcie_roots.empty();
    if (d.id == device) return roots ? device.value() : absl::StrCat(d.node, "/", d.kind);
  }
  return device.value();
}

// What is chosen so far, the same for plans that differ by an exchange of like cards.
inline std::string AllPlans::Likeness() const {
  std::vector<std::string> pipelines;
  for (const PipelinePlan& pipeline : plan_.pipelines) {
    std::string& text = pipelines.emplace_back();
    for (const StagePlan& stage : pipeline.stages) {
      std::vector<std::string> units;
      for (const UnitPlan& unit : stage.units) {
        std::vector<std::string> ranks;
        for (const RankPlan& rank : unit.ranks) ranks.push_back(absl::StrCat(Likeness(rank.device), " ", rank.tp_share));
        std::sort(ranks.begin(), ranks.end());
        units.push_back(absl::StrCat(absl::StrJoin(ranks, "+"), "=", absl::StrJoin(unit.microbatches, ",")));
      }
      std::sort(units.begin(), units.end());
      absl::StrAppend(&text, "|", absl::StrJoin(units, ";"));
      for (const LayerRange& range : stage.ministages) absl::StrAppend(&text, " ", range.first, "-", range.last);
    }
  }
  std::sort(pipelines.begin(), pipelines.end());
  return absl::StrJoin(pipelines, "\n");
}

inline void AllPlans::Recompute(const std::vector<RankPlan*>& ranks, size_t r) {
  if (r == ranks.size()) {
    if (worth_(plan_)) Schedules();
    return;
  }
  for (const OpSet& recompute : grid_.recompute) {
    ranks[r]->recompute = recompute;
    Recompute(ranks, r + 1);
  }
  ranks[r]->recompute = grid_.recompute[0];
}

// Rule 5 of the language.
inline bool AllPlans::Allowed(ScheduleFamily schedule) const {
  bool several = false;
  for (const PipelinePlan& pipeline : plan_.pipelines) {
    const size_t stages = pipeline.stages.size(), rounds = pipeline.stages[0].ministages.size();
    several |= rounds > 1;
    if (rounds == 1 || stages == 1 || schedule == ScheduleFamily::kLayered) continue;
    if (schedule != ScheduleFamily::kInterleaved) return false;
    const size_t count = pipeline.stages[0].units[0].microbatches.size();
    for (const StagePlan& stage : pipeline.stages) {
      for (const UnitPlan& unit : stage.units) {
        const size_t own = unit.microbatches.size();
        if (own != 0 && (own != count || own % stages != 0)) return false;
      }
    }
  }
  return several || schedule != ScheduleFamily::kInterleaved;
}

inline std::vector<AllPlans::StageLimit> AllPlans::StageLimits() {
  std::vector<StageLimit> limits;
  for (PipelinePlan& pipeline : plan_.pipelines) {
    for (size_t s = 0; s < pipeline.stages.size() && pipeline.stages.size() > 1; ++s) {
      StagePlan& stage = pipeline.stages[s];
      size_t most = 0;
      for (const UnitPlan& unit : stage.units) most = std::max(most, unit.microbatches.size());
      limits.push_back({&stage, static_cast<int64_t>(pipeline.stages.size() - s), static_cast<int64_t>(most)});
    }
  }
  return limits;
}

inline void AllPlans::Schedules() {
  using enum ScheduleFamily;
  const int most_zero = plan_.pipelines.size() > 1 ? 2 : 0;
  for (const ScheduleFamily schedule : {kLayered, kGPipe, k1F1B, kInterleaved, kZeroBubble}) {
    if (!Allowed(schedule)) continue;
    plan_.schedule = schedule;
    const bool limited = grid_.in_flight && (schedule == k1F1B || schedule == kZeroBubble);
    const std::vector<StageLimit> limits = limited ? StageLimits() : std::vector<StageLimit>();
    for (plan_.pipelines_zero_stage = 0; plan_.pipelines_zero_stage <= most_zero; ++plan_.pipelines_zero_stage) {
      InFlight(limits, 0, [&] { Offload([&] { Stage(Stages(), 0); }); });
    }
  }
  plan_.schedule = kLayered;
  plan_.pipelines_zero_stage = 0;
}

inline void AllPlans::InFlight(const std::vector<StageLimit>& stages, size_t s, const Next& next) {
  if (s == stages.size()) return next();
  const auto& [stage, usual, most] = stages[s];
  for (stage->in_flight = 0; stage->in_flight <= most; ++stage->in_flight) {
    if (stage->in_flight != usual) InFlight(stages, s + 1, next);  // the usual number is what 0 means
  }
  stage->in_flight = 0;
}

inline void AllPlans::Offload(const Next& next) {
  const bool known = std::all_of(setting_.cluster.nodes.begin(), setting_.cluster.nodes.end(), [](const ClusterNode& node) {
    return node.host_memory_bytes > 0 && node.host_link_bytes_per_second > 0;
  });
  const std::vector<RankPlan*> ranks = Ranks(/*computing=*/false);
  for (int flags = 0; flags < (known ? 8 : 1); ++flags) {
    for (RankPlan* rank : ranks) {
      rank->offload.activations = (flags & 1) != 0;
      rank->offload.parameters = (flags & 2) != 0;
      rank->offload.optimizer = (flags & 4) != 0;
    }
    next();
  }
  for (RankPlan* rank : ranks) rank->offload.activations = rank->offload.parameters = rank->offload.optimizer = false;
}

// How the stage's state may be sharded. One unit alone has nobody to share with.
inline std::vector<AllPlans::StageChoice> AllPlans::StageChoices(const StagePlan& stage) const {
  std::vector<double> memory, one;
  double all = 0;
  for (const UnitPlan& unit : stage.units) {
    for (const RankPlan& rank : unit.ranks) {
      one.push_back(rank.tp_share);
      const auto device = std::find_if(setting_.cluster.devices.begin(), setting_.cluster.devices.end(),
                                       [&](const ClusterDevice& d) { return d.id == rank.device; });
      const int index = static_cast<int>(device - setting_.cluster.devices.begin());
      const auto free = static_cast<double>(setting_.UsableBytes(index) - setting_.costs.ContextBytes(device->kind));
      memory.push_back(std::max(0.0, free));
      all += memory.back();
    }
  }
  if (stage.units.size() == 1) return {{0, one}};
  const std::vector<double> even(memory.size(), 1.0 / static_cast<double>(memory.size()));
  std::vector<std::vector<double>> shards = {even};
  for (double& part : memory) part = all > 0 ? part / all : even[0];
  if (memory != even) shards.push_back(memory);
  for (size_t r = 0; r < memory.size(); ++r) {
    shards.emplace_back(memory.size(), 0.0)[r] = 1;
  }
  std::vector<StageChoice> choices;
  const bool stores =
      std::any_of(stage.units.begin(), stage.units.end(), [](const UnitPlan& u) { return u.microbatches.empty(); });
  if (!stores) choices.push_back({0, even});  // what only stores would hold nothing that others lack
  for (int zero = 1; zero <= 3; ++zero) {
    for (const std::vector<double>& shard : shards) choices.push_back({zero, shard});
    choices.push_back({zero, {}});
  }
  return choices;
}

inline void AllPlans::Stage(const std::vector<StagePlan*>& stages, size_t s) {
  if (s == stages.size()) return visit_(plan_);
  for (const StageChoice& choice : StageChoices(*stages[s])) {
    stages[s]->zero_stage = choice.zero_stage;
    std::vector<double> shards = choice.shards;
    if (shards.empty()) shards = AsMemoryAllows(*stages[s]);
    if (shards.empty()) continue;
    size_t r = 0;
    for (UnitPlan& unit : stages[s]->units) {
      for (RankPlan& rank : unit.ranks) rank.shard_ratio = shards[r++];
    }
    Stage(stages, s + 1);
  }
}

// As even as the ranks' memory allows with all else chosen. Empty: even shards fit, or none do.
inline std::vector<double> AllPlans::AsMemoryAllows(const StagePlan& stage) const {
  const auto view = ViewOf(setting_, plan_, {false, false});
  if (!view.ok()) return {};
  std::vector<double> room;
  for (const RankView& rank : view->ranks) {
    const StageView& its = view->stages[rank.stage];
    if (its.plan != &stage) continue;
    const std::vector<int64_t>& microbatches = stage.units[rank.unit].microbatches;
    RankDuty duty = DutyOf(*view, rank);
    duty.share = 0;
    const int64_t nothing = MemoryOf(setting_.costs, duty, microbatches).total();
    duty.share = 1;
    const int64_t all = MemoryOf(setting_.costs, duty, microbatches).total();
    constexpr int64_t kRounding = 1024;  // of a share to bytes
    const auto free = static_cast<double>(setting_.UsableBytes(rank.device) - nothing - kRounding);
    room.push_back(std::clamp(free / static_cast<double>(std::max<int64_t>(1, all - nothing)), 0.0, 1.0));
  }
  const double even = 1.0 / static_cast<double>(room.size());
  if (std::all_of(room.begin(), room.end(), [even](double r) { return r >= even; })) return {};
  if (std::accumulate(room.begin(), room.end(), 0.0) < 1) return {};
  std::vector<double> ascending = room;
  std::sort(ascending.begin(), ascending.end());
  double level = 1, left = 1;  // what every rank gets whose room is larger
  for (size_t r = 0; r < ascending.size(); ++r) {
    level = left / static_cast<double>(ascending.size() - r);
    if (ascending[r] >= level) break;
    left -= ascending[r];
  }
  for (double& share : room) share = std::min(share, level);
  return room;
}

inline std::vector<StagePlan*> AllPlans::Stages() {
  std::vector<StagePlan*> stages;
  for (PipelinePlan& pipeline : plan_.pipelines) {
    for (StagePlan& stage : pipeline.stages) stages.push_back(&stage);
  }
  return stages;
}

inline std::vector<RankPlan*> AllPlans::Ranks(bool computing) {
  std::vector<RankPlan*> ranks;
  for (StagePlan* stage : Stages()) {
    for (UnitPlan& unit : stage->units) {
      if (computing && unit.microbatches.empty()) continue;
      for (RankPlan& rank : unit.ranks) ranks.push_back(&rank);
    }
  }
  return ranks;
}

}  // namespace motley::planner
