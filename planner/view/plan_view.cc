#include "planner/view/plan_view.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "planner/plan/virtual_stages.h"
#include "planner/util/work_count.h"

namespace motley::planner {
namespace {

// Devices by name. Plans list devices nearly in the cluster's order, so the next one is tried before the table, which is made
// only when it is needed.
class DeviceFinder {
 public:
  explicit DeviceFinder(const Cluster& cluster) : cluster_(cluster), used_(cluster.devices.size(), false) {}

  absl::StatusOr<int> Find(const DeviceId& id) {
    if (next_ >= cluster_.devices.size() || cluster_.devices[next_].id != id) {
      if (index_.empty()) {
        for (size_t d = 0; d < cluster_.devices.size(); ++d) index_.emplace(cluster_.devices[d].id.value(), d);
      }
      const auto found = index_.find(std::string_view(id.value()));
      if (found == index_.end()) {
        return absl::InvalidArgumentError(absl::StrCat("plan: device ", id.value(), " is not in the cluster ", cluster_.name,
                                                       " (or is excluded); it has ", cluster_.devices.size(), " devices"));
      }
      next_ = found->second;
    }
    if (used_[next_]) return absl::InvalidArgumentError(absl::StrCat("plan: device ", id.value(), " is there twice"));
    used_[next_] = true;
    return static_cast<int>(next_++);
  }

 private:
  const Cluster& cluster_;
  std::vector<bool> used_;
  size_t next_ = 0;
  absl::flat_hash_map<std::string_view, size_t> index_;
};

// The devices of its node that it reaches by a slow pair, by their distance.
std::vector<int> SlowWays(const ClusterNode& node, int device) {
  std::vector<int> ways;
  for (const DevicePair& pair : node.slow_pairs) {
    if (pair.a == device || pair.b == device) ways.push_back(pair.a + pair.b - 2 * device);
  }
  return ways;
}

// What makes links differ between two devices of a kind.
auto LinksOf(const Cluster& cluster, int device) {
  const ClusterNode& node = cluster.nodes[cluster.devices[device].node];
  return std::make_tuple(node.region, node.devices.size(), node.device_link_bytes_per_second, node.nic_bytes_per_second,
                         node.host_link_bytes_per_second, node.pcie_roots.size(), SlowWays(node, device));
}

// Shares that differ by rounding to whole elements are equal.
constexpr double kShareTolerance = 1e-6;
// Actors that one class of units is cut into where its neighbours in the pipeline are narrower.
constexpr int64_t kMostPieces = 8;

bool RanksAlike(const Cluster& cluster, const RankView& a, const RankView& b) {
  return a.kind == b.kind && a.recompute == b.recompute && a.plan->tp_share == b.plan->tp_share &&
         std::abs(a.share - b.share) <= kShareTolerance && a.plan->offload == b.plan->offload &&
         LinksOf(cluster, a.device) == LinksOf(cluster, b.device);
}

class Viewer {
 public:
  Viewer(const Setting& setting, const Plan& plan, ViewOptions options)
      : setting_(setting), plan_(plan), options_(options), finder_(setting.cluster) {}

  absl::StatusOr<PlanView> View() {
    view_.schedule = plan_.schedule;
    view_.pipelines_zero_stage = plan_.pipelines_zero_stage;
    for (size_t p = 0; p < plan_.pipelines.size(); ++p) MOTLEY_RETURN_IF_ERROR(AddPipeline(static_cast<int>(p)));
    return std::move(view_);
  }

 private:
  absl::Status AddPipeline(int p) {
    const PipelinePlan& pipeline = plan_.pipelines[p];
    PipelineView result;
    result.first_stage = static_cast<int>(view_.stages.size());
    result.num_stages = static_cast<int>(pipeline.stages.size());
    const std::vector<VirtualStage> order = VirtualStagesOf(pipeline);
    for (int s = 0; s < result.num_stages; ++s) MOTLEY_RETURN_IF_ERROR(AddStage(p, s, order));
    for (const UnitPlan& unit : pipeline.stages[0].units) result.batch += unit.batch();
    if (options_.merge && options_.assign_samples && result.num_stages > 1) Refine(result.first_stage, result.num_stages);
    for (int s = result.first_stage; s < result.first_stage + result.num_stages; ++s) {
      NumberActors(&view_.stages[s]);
      if (options_.assign_samples) AssignSamples(view_.stages[s]);
    }
    for (const VirtualStage& v : order) {
      const LayerRange& range = pipeline.stages[v.stage].ministages[v.ministage];
      Element element;
      element.stage = result.first_stage + static_cast<int>(v.stage);
      element.ministage = static_cast<int>(v.ministage);
      element.first_layer = range.first;
      element.layers = range.layers();
      result.elements.push_back(element);
    }
    result.elements.front().embedding = true;
    result.elements.back().head = true;
    AddNeighbours(result);
    view_.pipelines.push_back(std::move(result));
    return absl::OkStatus();
  }

  // Who hands over to whom, and how much at once.
  void AddNeighbours(const PipelineView& pipeline) {
    std::vector<int64_t> largest;
    for (int s = 0; s < pipeline.num_stages; ++s) largest.push_back(LargestMicrobatch(view_.stages[pipeline.first_stage + s]));
    for (size_t e = 1; e < pipeline.elements.size(); ++e) {
      StageView &before = view_.stages[pipeline.elements[e - 1].stage], &behind = view_.stages[pipeline.elements[e].stage];
      if (&before == &behind) continue;
      behind.from_previous = std::max(behind.from_previous, largest[before.index]);
      before.from_next = std::max(before.from_next, largest[behind.index]);
    }
  }

  int64_t LargestMicrobatch(const StageView& stage) const {
    int64_t largest = 0;
    for (const int a : stage.actors) {
      for (const int64_t m : *view_.actors[a].microbatches) largest = std::max(largest, m);
    }
    return largest;
  }

  absl::Status AddStage(int p, int s, const std::vector<VirtualStage>& order) {
    const PipelinePlan& pipeline = plan_.pipelines[p];
    StageView stage;
    stage.pipeline = p;
    stage.index = s;
    stage.num_stages = static_cast<int>(pipeline.stages.size());
    stage.plan = &pipeline.stages[s];
    stage.state = StateOf(plan_, *stage.plan);
    if (setting_.workload.state != StateKeeping::kEngine) stage.state = AsPublished(stage.state);
    stage.embedding = static_cast<size_t>(s) == order.front().stage;
    stage.head = static_cast<size_t>(s) == order.back().stage;
    stage.tied_copy = stage.head && !stage.embedding && setting_.workload.model.tie_embeddings;
    for (const LayerRange& range : stage.plan->ministages) {
      stage.layers += range.layers();
      stage.largest_ministage = std::max(stage.largest_ministage, range.layers());
    }
    stage.first_rank = static_cast<int>(view_.ranks.size());
    stage.num_units = static_cast<int>(stage.plan->units.size());
    const int index = static_cast<int>(view_.stages.size());
    for (size_t u = 0; u < stage.plan->units.size(); ++u) MOTLEY_RETURN_IF_ERROR(AddUnit(index, static_cast<int>(u), &stage));
    stage.num_ranks = static_cast<int>(view_.ranks.size()) - stage.first_rank;
    classes_.push_back(ClassesOf(index, stage));
    view_.stages.push_back(std::move(stage));
    return absl::OkStatus();
  }

  absl::Status AddUnit(int index, int u, StageView* stage) {
    for (const RankPlan& rank : stage->plan->units[u].ranks) {
      RankView view;
      MOTLEY_ASSIGN_OR_RETURN(view.device, finder_.Find(rank.device));
      view.kind = setting_.KindOf(view.device);
      view.pipeline = stage->pipeline;
      view.stage = index;
      view.unit = u;
      view.share = rank.shard_ratio;
      view.plan = &rank;
      view.recompute = rank.recompute;
      view_.ranks.push_back(view);
    }
    return absl::OkStatus();
  }

  bool UnitsAlike(const ActorView& actor, const UnitPlan& unit, int first_rank) const {
    if (static_cast<size_t>(actor.ranks_per_unit) != unit.ranks.size() || *actor.microbatches != unit.microbatches) return false;
    for (int r = 0; r < actor.ranks_per_unit; ++r) {
      if (!RanksAlike(setting_.cluster, view_.ranks[actor.first_rank + r], view_.ranks[first_rank + r])) {
        return false;
      }
    }
    return true;
  }

  std::vector<ActorView> ClassesOf(int index, const StageView& stage) const {
    std::vector<ActorView> classes;
    int first_rank = stage.first_rank;
    for (const UnitPlan& unit : stage.plan->units) {
      auto like = std::find_if(classes.begin(), classes.end(),
                               [&](const ActorView& actor) { return UnitsAlike(actor, unit, first_rank); });
      if (!options_.merge || like == classes.end()) {
        ActorView added;
        added.stage = index;
        added.first_rank = first_rank;
        added.ranks_per_unit = static_cast<int>(unit.ranks.size());
        added.microbatches = &unit.microbatches;
        like = classes.insert(classes.end(), std::move(added));
      }
      like->unit_ranks.push_back(first_rank);
      first_rank += static_cast<int>(unit.ranks.size());
    }
    return classes;
  }

  // The most samples that a microbatch of one of the stage's actors stands for.
  int64_t LargestSlot(int stage) const {
    int64_t largest = 1;
    for (const ActorView& actor : classes_[stage]) {
      if (actor.count() > 0) largest = std::max(largest, actor.samples(0));
    }
    return largest;
  }

  // An actor whose microbatch stands for more samples than its neighbours' would wait for several of theirs, where its first
  // units need not: it is cut into as many actors as keep its slots no larger than theirs, a few at most.
  void Refine(int first_stage, int num_stages) {
    std::vector<int64_t> slots;
    for (int s = 0; s < num_stages; ++s) slots.push_back(LargestSlot(first_stage + s));
    for (int s = 0; s < num_stages; ++s) {
      int64_t limit = s > 0 ? slots[static_cast<size_t>(s) - 1] : slots[1];
      if (s + 1 < num_stages) limit = std::min(limit, slots[static_cast<size_t>(s) + 1]);
      std::vector<ActorView> refined;
      for (ActorView& actor : classes_[first_stage + s]) {
        const int64_t size = actor.count() > 0 ? actor.size(0) : limit;
        const int64_t pieces = std::min(kMostPieces, (actor.units() * size + limit - 1) / limit), units = actor.units();
        const int64_t cuts = std::min(pieces, units);
        for (int64_t i = 0; i < cuts; ++i) {
          ActorView piece = actor;
          piece.unit_ranks.assign(actor.unit_ranks.begin() + i * units / cuts, actor.unit_ranks.begin() + (i + 1) * units / cuts);
          piece.first_rank = piece.unit_ranks.front();
          refined.push_back(std::move(piece));
        }
      }
      classes_[first_stage + s] = std::move(refined);
    }
  }

  void NumberActors(StageView* stage) {
    view_.actor_of_rank.resize(view_.ranks.size(), -1);
    const size_t index = static_cast<size_t>(stage - view_.stages.data());
    for (ActorView& actor : classes_[index]) {
      const int number = static_cast<int>(view_.actors.size());
      stage->actors.push_back(number);
      for (const int first : actor.unit_ranks) {
        for (int r = 0; r < actor.ranks_per_unit; ++r) view_.actor_of_rank[first + r] = number;
      }
      view_.actors.push_back(std::move(actor));
    }
  }

  double LayerSeconds(const ActorView& actor, int64_t k) const {
    double slowest = 0;
    for (int r = 0; r < actor.ranks_per_unit; ++r) {
      const RankView& rank = view_.ranks[actor.first_rank + r];
      slowest = std::max(slowest, setting_.costs.ForwardSeconds(rank.kind, UnitKind::kLayer, static_cast<double>(actor.size(k)),
                                                                rank.plan->tp_share));
    }
    return slowest;
  }

  static void AssignInTurn(ActorView* actor) {
    int64_t next = 0;
    for (int64_t k = 0; k < actor->count(); ++k) {
      actor->begin.push_back(next);
      next += actor->samples(k);
    }
  }

  // Zorse section 3.2, cross-stage communication: the i-th microbatch that a stage completes goes to whoever of the next stage
  // is due. Here both stages' microbatches are put in order of the time at which their unit has computed them, and the batch's
  // samples are dealt out in this order on either side; a microbatch then meets those that cover its samples. Where forward and
  // backward take turns, units go at the pace at which the pipeline feeds them: time counts as a part of the unit's own total.
  // Times are compared as moments of the stage's: units of equal counts are done at the same ones, where sums of seconds differ
  // in their last digit, and neighbours whose units take turns in another order can be stuck.
  void AssignSamples(const StageView& stage) {
    if (stage.actors.size() == 1) return AssignInTurn(&view_.actors[stage.actors.front()]);
    struct Due {
      double seconds = 0;
      int actor = 0;
      int64_t k = 0;
      int64_t moment = 0;
    };
    constexpr double kMoments = int64_t{1} << 32;  // of the whole time
    std::vector<Due> order;
    const bool paced = TraitsOf(plan_.schedule).alternates;
    double longest = 0;
    for (const int a : stage.actors) {
      ActorView& actor = view_.actors[a];
      actor.begin.resize(static_cast<size_t>(actor.count()));
      double seconds = 0;
      const size_t first = order.size();
      for (int64_t k = 0; k < actor.count(); ++k) {
        seconds += LayerSeconds(actor, k);
        order.push_back({seconds, a, k});
      }
      for (size_t i = first; paced && i < order.size(); ++i) order[i].seconds /= seconds;
      longest = std::max(longest, paced ? 1 : seconds);
    }
    for (Due& due : order) due.moment = static_cast<int64_t>(due.seconds / longest * kMoments + 0.5);
    std::sort(order.begin(), order.end(),
              [](const Due& a, const Due& b) { return std::tie(a.moment, a.actor, a.k) < std::tie(b.moment, b.actor, b.k); });
    int64_t next = 0;
    for (const Due& due : order) {
      ActorView& actor = view_.actors[due.actor];
      actor.begin[due.k] = next;
      next += actor.samples(due.k);
    }
  }

  const Setting& setting_;
  const Plan& plan_;
  const ViewOptions options_;
  DeviceFinder finder_;
  std::vector<std::vector<ActorView>> classes_;  // by stage, until they are numbered
  PlanView view_;
};

}  // namespace

absl::StatusOr<PlanView> ViewOf(const Setting& setting, const Plan& plan, ViewOptions options) {
  ++WorkOfThread().views;
  return Viewer(setting, plan, options).View();
}

std::string UnitText(const PlanView& view, const RankView& rank) {
  const UnitPlan& unit = view.stages[rank.stage].plan->units[rank.unit];
  if (unit.ranks.size() == 1) return "";
  std::string devices, shares;
  for (const RankPlan& member : unit.ranks) {
    absl::StrAppend(&devices, devices.empty() ? "" : "+", member.device.value());
    absl::StrAppendFormat(&shares, "%s%.3g", shares.empty() ? "" : "/", member.tp_share);
  }
  return absl::StrCat(devices, " (tp ", shares, ")");
}

RankDuty DutyOf(const PlanView& view, const RankView& rank) {
  const StageView& stage = view.stages[rank.stage];
  RankDuty duty;
  duty.kind = rank.kind;
  duty.layers = stage.layers;
  duty.largest_ministage = stage.largest_ministage;
  duty.ministages = static_cast<int64_t>(stage.plan->ministages.size());
  duty.embedding = stage.embedding;
  duty.head = stage.head;
  duty.schedule = view.schedule;
  duty.stage = stage.index;
  duty.num_stages = stage.num_stages;
  duty.zero_stage = stage.plan->zero_stage;
  duty.share = rank.share;
  duty.tp_share = rank.plan->tp_share;
  if (view.pipelines_zero_stage > 0) duty.replica_share = 1.0 / static_cast<double>(view.pipelines.size());
  duty.replica_gradients = view.pipelines_zero_stage >= 2;
  duty.recompute = rank.recompute;
  duty.offload = rank.plan->offload;
  duty.stage_offload = stage.state.offload;
  duty.prefetch = stage.state.prefetch;
  duty.steps_in_turn = stage.state.steps_in_turn;
  duty.sums_across = view.pipelines.size() > 1;
  duty.group_size = stage.num_units;
  for (const int a : stage.actors) duty.rounds = std::max(duty.rounds, view.actors[a].count());
  duty.from_previous = stage.from_previous;
  duty.from_next = stage.from_next;
  // What a stage puts off of the weights' gradients it keeps beside what is in flight.
  if (stage.plan->in_flight > 0) duty.in_flight = stage.plan->in_flight + WeightsPutOff(view.schedule, stage.index);
  return duty;
}

int64_t MostInFlight(const PlanView& view, const StageView& stage, int64_t count) {
  // Both schedules let forwards in as 1F1B does; zero bubble puts off weights beside that.
  const auto limit = [](const StageView& s, int64_t rounds) {
    return s.plan->in_flight > 0 ? s.plan->in_flight : InFlight(ScheduleFamily::k1F1B, s.index, s.num_stages, 1, rounds);
  };
  int64_t most = limit(stage, count);
  const int first = view.pipelines[stage.pipeline].first_stage;
  for (int i = first; i < first + stage.index; ++i) {
    const StageView& before = view.stages[i];
    if (before.plan->in_flight == 0 && stage.plan->in_flight == 0) continue;
    int64_t rounds = 1;
    for (const int a : before.actors) rounds = std::max(rounds, view.actors[a].count());
    most = std::min(most, std::max<int64_t>(1, (limit(before, rounds) * count + rounds - 1) / rounds));
  }
  return most;
}

int64_t ElementsOf(const Costs& costs, const PlanView& view, const Element& element) {
  int64_t elements = element.layers * costs.UnitElements(UnitKind::kLayer);
  const bool copy = element.head && view.stages[element.stage].tied_copy;
  if (element.embedding || copy) elements += costs.UnitElements(UnitKind::kEmbedding);
  if (element.head) elements += costs.UnitElements(UnitKind::kHead);
  return elements;
}

}  // namespace motley::planner
