// Poplar on a setting: probes every kind of device at a ZeRO stage, states the batch search (poplar_problem.h), turns its answer
// into plans and lets the simulator choose between the few best.
//
// Tuned: all ZeRO stages, shards from even to by memory, recomputation none or full by device, the exact search over the costs'
// own curves, devices that cannot take part left out. As published: even shards; the smallest ZeRO stage at which every device
// takes a sample ("automatically increase the ZeRO stage"); no recomputation unless nothing fits without; a round's communication
// is not hidden; the paper's own search (poplar_algorithm2.h), within poplar_limits.h.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/costs/memory_model.h"
#include "planner/published/poplar_algorithm2.h"
#include "planner/published/poplar_limits.h"
#include "planner/published/poplar_spline.h"
#include "planner/search/best_plan.h"
#include "planner/setting/blank_plan.h"
#include "planner/setting/least_lack.h"
#include "planner/split/poplar_problem.h"
#include "planner/strategies/catalog.h"
#include "planner/strategies/poplar/poplar_exact.h"
#include "planner/strategies/poplar/poplar_probe.h"

namespace motley::planner {
namespace {

// Between even shards (0) and shards that leave every device equally full (1).
constexpr double kShardBlends[] = {0, 0.5, 1};

// Devices of one kind; they are alike, so they store and choose alike up to one sample.
struct Group {
  int kind = 0;
  std::vector<int> devices;
  double share = 0;  // of each device
};

class PoplarSearch {
 public:
  PoplarSearch(const Setting& setting, PoplarLimits limits)
      : setting_(setting), costs_(setting.costs), ways_(setting.RecomputeWays()), limits_(limits) {
    for (int d = 0; d < setting.num_devices(); ++d) {
      const int kind = setting.KindOf(d);
      auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.kind == kind; });
      if (group == groups_.end()) group = groups_.insert(groups_.end(), Group{kind, {}, 0});
      group->devices.push_back(d);
    }
  }

  absl::StatusOr<Plan> Published();
  absl::StatusOr<Plan> Tuned();

 private:
  std::vector<int> Stages() const {
    if (setting_.request.zero_stage) return {*setting_.request.zero_stage};
    if (!setting_.request.keeps_replicas()) return {1, 2, 3};
    return {0, 1, 2, 3};
  }

  RankDuty Duty(const Group& group, int zero_stage, OpSet recompute, int64_t ranks) const;
  int64_t PeakBytes(const Group& group, int zero_stage, OpSet recompute, int64_t ranks, int64_t microbatch) const;
  int64_t Usable(const Group& group) const { return setting_.UsableBytes(group.devices.front()); }
  double StepSeconds(int kind, OpSet recompute, int64_t microbatch) const;
  // Empty when not even one sample fits.
  std::vector<double> TimeTable(const Group& group, int zero_stage, OpSet recompute, int64_t ranks) const;

  // Shares of the given blend; false when a group's devices cannot even store theirs.
  std::vector<Group> WithShares(std::vector<Group> groups, int zero_stage, double blend) const;
  std::vector<Group> WithoutHopeless(std::vector<Group> groups, int zero_stage, double blend) const;

  PoplarProblem MakeProblem(const std::vector<Group>& groups, int zero_stage, const std::vector<OpSet>& ways) const;
  // One pass over all units of the model.
  double CollectiveSeconds(Collective collective, const std::vector<Group>& groups) const;
  std::string WhyUnused(int device, int zero_stage) const;
  Plan MakePlan(const std::vector<Group>& groups, int zero_stage, const std::vector<OpSet>& ways,
                const PoplarAnswer& answer) const;
  void AddCandidates(const std::vector<Group>& given, int zero_stage, std::vector<Plan>* candidates) const;
  std::vector<std::pair<size_t, int>> Affordable(const std::vector<Group>& by_speed) const;
  int64_t Nodes(const std::vector<Group>& groups, int zero_stage) const;
  absl::Status NothingFits() const;

  const Setting& setting_;
  const Costs& costs_;
  const std::vector<OpSet> ways_;  // the last needs least memory
  const PoplarLimits limits_;
  std::vector<Group> groups_;
};

int64_t CountDevices(const std::vector<Group>& groups) {
  int64_t count = 0;
  for (const Group& group : groups) count += static_cast<int64_t>(group.devices.size());
  return count;
}

RankDuty PoplarSearch::Duty(const Group& group, int zero_stage, OpSet recompute, int64_t ranks) const {
  RankDuty duty;
  duty.kind = group.kind;
  duty.layers = duty.largest_ministage = setting_.workload.model.num_layers;
  duty.embedding = duty.head = true;
  duty.schedule = ScheduleFamily::k1F1B;
  duty.zero_stage = zero_stage;
  duty.share = group.share;
  duty.recompute = recompute;
  duty.group_size = ranks;
  return duty;
}

int64_t PoplarSearch::PeakBytes(const Group& group, int zero_stage, OpSet recompute, int64_t ranks, int64_t microbatch) const {
  const RankDuty duty = Duty(group, zero_stage, recompute, ranks);
  // Plain accumulation holds one microbatch at a time; a second one shows what stays between them.
  return MemoryOf(costs_, duty, microbatch > 0 ? 2 : 0, microbatch, 0).total();
}

double PoplarSearch::StepSeconds(int kind, OpSet recompute, int64_t microbatch) const {
  const double b = static_cast<double>(microbatch), layers = static_cast<double>(setting_.workload.model.num_layers);
  double seconds = 0;
  for (const UnitKind unit : {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kHead}) {
    seconds +=
        (unit == UnitKind::kLayer ? layers : 1) * (costs_.ForwardSeconds(kind, unit, b) + costs_.BackwardSeconds(kind, unit, b));
  }
  return seconds + layers * costs_.RecomputeSeconds(kind, UnitKind::kLayer, recompute, b);
}

std::vector<double> PoplarSearch::TimeTable(const Group& group, int zero_stage, OpSet recompute, int64_t ranks) const {
  const int64_t usable = Usable(group);
  const auto fits = [&](int64_t batch) { return PeakBytes(group, zero_stage, recompute, ranks, batch) <= usable; };
  const auto seconds = [&](int64_t batch) { return StepSeconds(group.kind, recompute, batch); };
  const PoplarProbe probe = ProbeLargestBatch(fits, setting_.workload.global_batch);
  if (probe.largest == 0) return {};
  if (limits_.speeds_by_spline) return SecondsBySpline(probe.batches, seconds);
  std::vector<double> table = {0};
  for (int64_t batch = 1; batch <= probe.largest; ++batch) table.push_back(seconds(batch));
  return table;
}

std::vector<Group> PoplarSearch::WithShares(std::vector<Group> groups, int zero_stage, double blend) const {
  const int64_t ranks = CountDevices(groups);
  double all = 0;
  std::vector<double> headroom;
  for (Group& group : groups) {
    group.share = 0;
    const int64_t used = PeakBytes(group, zero_stage, ways_.front(), ranks, 1);
    headroom.push_back(static_cast<double>(std::max<int64_t>(0, Usable(group) - used)));
    all += headroom.back() * static_cast<double>(group.devices.size());
  }
  const double even = 1.0 / static_cast<double>(ranks);
  for (size_t g = 0; g < groups.size(); ++g) {
    groups[g].share = all > 0 ? (1 - blend) * even + blend * headroom[g] / all : even;
  }
  return groups;
}

std::vector<Group> PoplarSearch::WithoutHopeless(std::vector<Group> groups, int zero_stage, double blend) const {
  while (!groups.empty()) {
    groups = WithShares(std::move(groups), zero_stage, blend);
    const int64_t ranks = CountDevices(groups);
    // The group that lacks most goes first: the others' shares grow by it.
    size_t worst = groups.size();
    int64_t most = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      // Without sharding a device that takes no sample has nothing to do.
      const int64_t samples = zero_stage == 0 ? 1 : 0;
      const int64_t lacks = PeakBytes(groups[g], zero_stage, ways_.back(), ranks, samples) - Usable(groups[g]);
      if (lacks <= most) continue;
      most = lacks;
      worst = g;
    }
    if (worst == groups.size()) break;
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(worst));
  }
  return groups;
}

double PoplarSearch::CollectiveSeconds(Collective collective, const std::vector<Group>& groups) const {
  // Ascending devices with their shares: the ring's order.
  std::vector<std::pair<int, double>> by_device;
  for (const Group& group : groups) {
    for (const int device : group.devices) by_device.emplace_back(device, group.share);
  }
  std::sort(by_device.begin(), by_device.end());
  std::vector<int> devices;
  std::vector<double> shares;
  for (const auto& [device, share] : by_device) {
    devices.push_back(device);
    shares.push_back(share);
  }
  const auto seconds = [&](UnitKind unit) {
    const double bytes = static_cast<double>(costs_.UnitElements(unit)) * costs_.RingBytes(collective);
    return setting_.links.SecondsAlone(setting_.links.Ring(collective, devices, bytes, shares));
  };
  return seconds(UnitKind::kEmbedding) + seconds(UnitKind::kHead) +
         static_cast<double>(setting_.workload.model.num_layers) * seconds(UnitKind::kLayer);
}

PoplarProblem PoplarSearch::MakeProblem(const std::vector<Group>& groups, int zero_stage, const std::vector<OpSet>& ways) const {
  PoplarProblem problem;
  problem.batch = setting_.workload.global_batch;
  problem.synchronise_rounds = zero_stage >= 2;
  const int64_t ranks = CountDevices(groups);
  if (zero_stage >= 2) problem.round_seconds = CollectiveSeconds(Collective::kReduceScatter, groups);
  // Gathered forward and once more backward.
  if (zero_stage == 3) problem.round_seconds += 2 * CollectiveSeconds(Collective::kAllGather, groups);
  for (const Group& group : groups) {
    PoplarKind kind;
    kind.count = static_cast<int>(group.devices.size());
    for (const OpSet way : ways) kind.ways.push_back(TimeTable(group, zero_stage, way, ranks));
    problem.kinds.push_back(std::move(kind));
  }
  return problem;
}

std::string PoplarSearch::WhyUnused(int device, int zero_stage) const {
  const auto of_kind = [&](const Group& group) { return group.kind == setting_.KindOf(device); };
  const Group& group = *std::find_if(groups_.begin(), groups_.end(), of_kind);
  const std::vector<Group> even = WithShares(groups_, zero_stage, 0);
  const Group& shared = *std::find_if(even.begin(), even.end(), of_kind);
  const int64_t needs = PeakBytes(shared, zero_stage, ways_.back(), setting_.num_devices(), zero_stage == 0 ? 1 : 0);
  if (needs > Usable(group)) return absl::StrCat("its memory does not hold what ZeRO stage ", zero_stage, " asks of it");
  return "the synchronisation that it needs would cost more than it computes";
}

Plan PoplarSearch::MakePlan(const std::vector<Group>& groups, int zero_stage, const std::vector<OpSet>& ways,
                            const PoplarAnswer& answer) const {
  struct Member {
    int device = 0;
    double share = 0;
    const PoplarShare* batch = nullptr;
  };
  std::vector<Member> members;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (size_t d = 0; d < groups[g].devices.size(); ++d) {
      members.push_back({groups[g].devices[d], groups[g].share, &answer.shares[g][d]});
    }
  }
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.device < b.device; });

  Plan plan = BlankPlan(setting_, "poplar", ScheduleFamily::k1F1B);
  StagePlan stage;
  stage.zero_stage = zero_stage;
  stage.ministages = {{0, setting_.workload.model.num_layers - 1}};
  std::vector<bool> used(static_cast<size_t>(setting_.num_devices()), false);
  for (const Member& member : members) {
    used[member.device] = true;
    if (zero_stage == 0 && member.batch->microbatches.empty()) {
      plan.unused.push_back({setting_.cluster.devices[member.device].id,
                             "got no samples, and at ZeRO stage 0 there is nothing to store for others"});
      continue;
    }
    RankPlan rank = RankOn(setting_, member.device);
    rank.recompute = ways[member.batch->way];
    rank.shard_ratio = member.share;
    stage.units.push_back({{rank}, member.batch->microbatches});
  }
  for (int d = 0; d < setting_.num_devices(); ++d) {
    if (used[d]) continue;
    plan.unused.push_back({setting_.cluster.devices[d].id, WhyUnused(d, zero_stage)});
  }
  plan.pipelines = {{{std::move(stage)}}};
  return plan;
}

// What the most frugal way asks of the device that lacks least where one may be left out, of the one that lacks most where none
// may. Devices that lack nothing are no reason.
absl::Status PoplarSearch::NothingFits() const {
  const int zero_stage = Stages().back();
  std::optional<std::pair<int64_t, int>> binding;
  for (const Group& group : WithShares(groups_, zero_stage, 0)) {
    const int64_t needs = PeakBytes(group, zero_stage, ways_.back(), setting_.num_devices(), 1);
    const std::pair<int64_t, int> lacks = {needs - Usable(group), group.devices.front()};
    const bool first = !binding || binding->first <= 0;
    const auto binds = [&] { return limits_.all_devices ? lacks.first > binding->first : lacks.first < binding->first; };
    if (first || (lacks.first > 0 && binds())) binding = lacks;
  }
  const char* const recomputation = ways_.back().all() ? "full" : "no";
  return OneDeviceLacks(setting_, std::max<int64_t>(0, binding->first),
                        absl::StrCat("poplar: no plan fits: with ZeRO stage ", zero_stage, ", even shards and ", recomputation,
                                     " recomputation ", setting_.cluster.devices[binding->second].id.value()),
                        " for one sample");
}

absl::StatusOr<Plan> PoplarSearch::Published() {
  for (const OpSet way : ways_) {
    for (const int zero_stage : Stages()) {
      const std::vector<Group> groups = WithShares(groups_, zero_stage, 0);
      const PoplarProblem problem = MakeProblem(groups, zero_stage, {way});
      const bool all_fit =
          std::all_of(problem.kinds.begin(), problem.kinds.end(), [](const PoplarKind& k) { return !k.ways[0].empty(); });
      if (!all_fit) continue;
      const PoplarAnswer answer = SolvePoplarPublished(problem);
      if (!answer.feasible) continue;
      std::vector<Plan> plan = {MakePlan(groups, zero_stage, {way}, answer)};
      return BestPlan(setting_, std::move(plan));
    }
  }
  return NothingFits();
}

// Adds the plans of one ZeRO stage over these groups.
void PoplarSearch::AddCandidates(const std::vector<Group>& given, int zero_stage, std::vector<Plan>* candidates) const {
  for (const double blend : kShardBlends) {
    if (zero_stage == 0 && blend > 0) continue;  // nothing is sharded
    const std::vector<Group> groups = WithoutHopeless(given, zero_stage, blend);
    if (groups.empty()) continue;
    PoplarProblem problem = MakeProblem(groups, zero_stage, ways_);
    // How much of a round's communication hides depends on its order; with less in hiding, rounds are fewer and longer.
    for (const double part : {1.0, 0.5, 0.0}) {
      if (part < 1 && !problem.synchronise_rounds) continue;
      problem.overlap = part * setting_.links.HiddenPartOfAll();
      const PoplarAnswer answer = SolvePoplarExact(problem);
      if (!answer.feasible) continue;
      candidates->push_back(MakePlan(groups, zero_stage, ways_, answer));
    }
  }
}

// Kinds kept and ZeRO stage. The search is exact and its time grows with the square of the kinds and more. Where a job waits for
// it, what the budget allows is asked: most kinds first, and those alone of which not even one is too much.
std::vector<std::pair<size_t, int>> PoplarSearch::Affordable(const std::vector<Group>& by_speed) const {
  std::vector<std::pair<size_t, int>> affordable;
  int64_t left = setting_.request.runnable ? setting_.request.budget_nodes / 2 : std::numeric_limits<int64_t>::max();
  for (size_t kept = by_speed.size(); kept > 0; --kept) {
    for (const int zero_stage : Stages()) {
      const int64_t nodes = Nodes({by_speed.begin(), by_speed.begin() + static_cast<std::ptrdiff_t>(kept)}, zero_stage);
      if (nodes > left) continue;
      left -= nodes;
      affordable.emplace_back(kept, zero_stage);
    }
  }
  return affordable;
}

// Of AddCandidates, about: a node is a microsecond (polish.h). Tables are as long as the largest microbatch that fits.
int64_t PoplarSearch::Nodes(const std::vector<Group>& groups, int zero_stage) const {
  constexpr double kStepsANode = 1000;
  const auto batch = static_cast<double>(setting_.workload.global_batch), kinds = static_cast<double>(groups.size());
  double entries = 0;
  for (const Group& group : groups) {
    const auto fits = [&](int64_t b) {
      return PeakBytes(group, zero_stage, ways_.back(), setting_.num_devices(), b) <= Usable(group);
    };
    entries += static_cast<double>(ProbeLargestBatch(fits, setting_.workload.global_batch).largest);
  }
  if (zero_stage < 2) return static_cast<int64_t>(2 * batch * entries / kStepsANode) + 1;
  const double combinations = kinds <= 4 ? std::exp2(kinds) : 2 * kinds + 1, questions = 9;
  const double once = entries * kinds * 10 + std::min(entries, batch) * batch;
  return static_cast<int64_t>(questions * combinations * once / kStepsANode) + 1;
}

absl::StatusOr<Plan> PoplarSearch::Tuned() {
  std::vector<Group> by_speed = groups_;
  std::stable_sort(by_speed.begin(), by_speed.end(), [&](const Group& a, const Group& b) {
    return StepSeconds(a.kind, OpSet::None(), 1) < StepSeconds(b.kind, OpSet::None(), 1);
  });
  const std::vector<std::pair<size_t, int>> affordable = Affordable(by_speed);
  std::vector<Plan> candidates;
  for (const int zero_stage : Stages()) {
    // All kinds, then without the slowest 1, 2, ...: a round costs all of them its communication.
    for (std::vector<Group> kept = by_speed; !kept.empty(); kept.pop_back()) {
      const bool asked = std::find(affordable.begin(), affordable.end(), std::pair(kept.size(), zero_stage)) != affordable.end();
      if (asked) AddCandidates(kept, zero_stage, &candidates);
    }
  }
  if (candidates.empty()) return NothingFits();
  return BestPlan(setting_, std::move(candidates));
}

}  // namespace

absl::StatusOr<Plan> PlanPoplar(const Setting& setting) {
  for (int d = 0; d < setting.num_devices(); ++d) {
    if (setting.pinned_stage[d] <= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("poplar has one stage, stage0; ", setting.cluster.devices[d].id.value(),
                                                   " is pinned to stage", setting.pinned_stage[d]));
  }
  absl::StatusOr<Plan> published = PoplarSearch(setting, PublishedPoplar()).Published();
  if (setting.request.fidelity == Fidelity::kPublished) return published;
  return FasterPlan(setting, PoplarSearch(setting, {}).Tuned(), std::move(published));
}

}  // namespace motley::planner
