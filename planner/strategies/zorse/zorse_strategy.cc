// zorse (arXiv 2507.10392): pipelines of groups of different size and kind, layered schedule over ministages, parameters gathered
// once a ministage and pass, gradients and optimizer sharded in the group, parameters and boundaries in host memory.
//
// Phase 1 divides the cluster: SPLIT for every k as published, and the candidates of groupings.h, since the paper's own results
// (groups by kind) do not come out of SPLIT on real rates. Phase 2 enumerates ministages, microbatch sizes, offload and (tuned)
// who recomputes in closed form (zorse_model.h); the best few are simulated. docs/inside/strategies/zorse.md says what is
// published and what is tuned.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/in_parallel.h"
#include "common/base/status_macros.h"
#include "planner/groups/groupings.h"
#include "planner/groups/split_cut.h"
#include "planner/published/zorse_limits.h"
#include "planner/search/best_plan.h"
#include "planner/search/plan_moves.h"
#include "planner/setting/least_lack.h"
#include "planner/strategies/catalog.h"
#include "planner/strategies/zorse/zorse_model.h"
#include "planner/strategies/zorse/zorse_plan.h"
#include "planner/util/lack_of_memory.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

constexpr size_t kEstimated = 24, kSimulated = 6;  // plans that leave the closed form
constexpr size_t kSplit = 6;                       // of the first, those that the exact splitter works over as well
constexpr size_t kOfOneGrouping = 3;               // so that one grouping does not fill the list
constexpr double kWorthChecking = 1.3;             // times the best so far: slower ones are not asked for their memory
constexpr double kSplitWork = 6e8;                 // of SPLIT, in n^3 steps: bounds the parts on large clusters

struct Found {
  double seconds = 0;
  ZorseChoice choice;
};

// Phase 1: both searches begin with it.
std::vector<Grouping> Groupings(const Setting& setting) {
  std::vector<Grouping> result;
  std::set<std::vector<std::vector<int>>> seen;
  const auto add = [&](Grouping grouping) {
    grouping = WithPins(std::move(grouping), setting.pinned_stage);
    if (seen.insert(grouping.groups).second) result.push_back(std::move(grouping));
  };
  for (Grouping& grouping : CandidateGroupings(setting)) add(std::move(grouping));
  const int n = setting.num_devices();
  const double steps = static_cast<double>(n) * n * n;
  const int parts =
      static_cast<int>(std::min<double>(static_cast<double>(setting.workload.model.num_layers), kSplitWork / steps));
  EdgeWeights rates(static_cast<size_t>(n), std::vector<double>(static_cast<size_t>(n), 0));
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      if (a != b) rates[a][b] = setting.links.Rate(std::min(a, b), std::max(a, b));
    }
  }
  for (Parts& partition : SplitCuts(rates, parts)) add(Grouping{std::move(partition), "SPLIT"});
  return result;
}

// One way to search.
struct ZorseWay {
  ZorseLimits limits;
  RecomputePolicy recompute = RecomputePolicy::kFull;  // auto: by group, what memory does not hold otherwise
  bool optimizer = false;                              // it waits on the host in any case, and so do sums that wait for it
};

class ZorseSearch {
 public:
  ZorseSearch(const Setting& setting, const ZorseModel& model, ZorseWay way, absl::Time deadline)
      : setting_(setting),
        model_(model),
        limits_(way.limits),
        recompute_(way.recompute),
        optimizer_(way.optimizer),
        deadline_(deadline) {}

  // `others`: choices of another search, for the exact splitter only.
  absl::StatusOr<Plan> Run(const std::vector<Grouping>& groupings, const std::vector<Found>& others = {});
  const std::vector<Found>& found() const { return found_; }  // fastest first; of this search while it lives

 private:
  void Search(const Grouping& grouping);
  void Try(ZorseChoice choice, std::vector<Found>* found);
  bool Stop();
  std::vector<int> ByBandwidth(const std::vector<const ZorseGroup*>& groups) const;
  std::vector<int64_t> Microbatches() const;
  std::vector<int64_t> Ministages(size_t stages) const;
  std::vector<OffloadKinds> Offloads() const;
  const ZorseGroup* GroupOf(const std::vector<int>& devices);
  const ZorseLoad* LoadOf(const ZorseGroup* group, int64_t microbatch, bool recompute);
  void AddOtherOrders();
  absl::Status DoesNotFit() const;

  const Setting& setting_;
  const ZorseModel& model_;
  const ZorseLimits limits_;
  const RecomputePolicy recompute_;
  const bool optimizer_;
  const absl::Time deadline_;
  bool stopped_by_clock_ = false;
  int64_t nodes_ = 0;
  std::map<std::vector<int>, std::unique_ptr<ZorseGroup>> groups_;
  // By kinds of the devices, microbatch and recomputation.
  std::map<std::tuple<std::vector<int>, int64_t, bool>, std::unique_ptr<ZorseLoad>> loads_;
  std::vector<Found> found_;
  double best_seconds_ = std::numeric_limits<double>::infinity();
  ZorseFit nearest_;  // of what did not fit, the one that lacks least
};

absl::StatusOr<Plan> ZorseSearch::Run(const std::vector<Grouping>& groupings, const std::vector<Found>& others) {
  for (const Grouping& grouping : groupings) Search(grouping);
  const auto faster = [](const Found& a, const Found& b) { return a.seconds < b.seconds; };
  std::stable_sort(found_.begin(), found_.end(), faster);
  if (found_.empty() && others.empty()) return DoesNotFit();
  if (found_.size() > kEstimated) found_.resize(kEstimated);
  if (!limits_.order_by_bandwidth) AddOtherOrders();
  std::vector<Plan> plans;
  for (size_t i = 0; i < found_.size(); ++i) {
    plans.push_back(ToPlan(setting_, model_, found_[i].choice, limits_.even_shares));
    if (limits_.closed_form || i >= kSplit) continue;
    absl::StatusOr<Plan> split = WithSplitGroups(setting_, model_, found_[i].choice, recompute_);
    if (split.ok()) plans.push_back(*std::move(split));
  }
  for (size_t i = 0; i < std::min(kSplit, others.size()); ++i) {
    absl::StatusOr<Plan> split = WithSplitGroups(setting_, model_, others[i].choice, recompute_);
    if (split.ok()) plans.push_back(*std::move(split));
  }
  MOTLEY_ASSIGN_OR_RETURN(Plan plan, BestPlan(setting_, std::move(plans), kSimulated));
  if (stopped_by_clock_) plan.predicted.notes.push_back("stopped at the deadline: another run may find another plan");
  return plan;
}

bool ZorseSearch::Stop() {
  ++nodes_;
  if (nodes_ > setting_.request.budget_nodes) return true;
  if (nodes_ % 256 == 0 && setting_.request.deadline.has_value() && absl::Now() > deadline_) stopped_by_clock_ = true;
  return stopped_by_clock_;
}

std::vector<int64_t> ZorseSearch::Microbatches() const {
  std::set<int64_t> sizes;
  const int64_t batch = setting_.workload.global_batch;
  for (int64_t size = 1; size <= batch; size *= 2) sizes.insert(size);
  if (!limits_.powers_of_two) {
    for (int64_t size = 3; size <= std::min<int64_t>(batch, 64); size += std::max<int64_t>(1, size / 4)) sizes.insert(size);
  }
  return {sizes.begin(), sizes.end()};
}

// Where they need not be equal they may differ by a layer.
std::vector<int64_t> ZorseSearch::Ministages(size_t stages) const {
  const int64_t layers = setting_.workload.model.num_layers;
  std::vector<int64_t> result;
  for (int64_t v = 1; v * static_cast<int64_t>(stages) <= layers; v += limits_.equal_ministages || v < 8 ? 1 : v / 4) {
    if (!limits_.equal_ministages || layers % v == 0) result.push_back(v);
  }
  return result;
}

std::vector<OffloadKinds> ZorseSearch::Offloads() const {
  const OffloadKinds parameters = {.parameters = true}, activations = {.activations = true};
  const OffloadKinds both = {.activations = true, .parameters = true}, none;
  std::vector<OffloadKinds> ways = {none, parameters, activations, both};
  if (limits_.offload_together) ways = {both, none};  // the second where no host memory is known to suffice
  std::vector<OffloadKinds> allowed;
  for (OffloadKinds& way : ways) {
    if (optimizer_) {
      way.optimizer = true;
      way.gradients = !(way.parameters && setting_.limits().steps_in_turn);
    }
    const OffloadKinds within = way.And(setting_.limits().offload);
    if (std::find(allowed.begin(), allowed.end(), within) == allowed.end()) allowed.push_back(within);
  }
  return allowed;
}

const ZorseGroup* ZorseSearch::GroupOf(const std::vector<int>& devices) {
  std::unique_ptr<ZorseGroup>& group = groups_[devices];
  if (group == nullptr) group = std::make_unique<ZorseGroup>(model_.Group(devices));
  return group.get();
}

const ZorseLoad* ZorseSearch::LoadOf(const ZorseGroup* group, int64_t microbatch, bool recompute) {
  std::unique_ptr<ZorseLoad>& load = loads_[{group->kinds, microbatch, recompute}];
  if (load == nullptr)
    load = std::make_unique<ZorseLoad>(model_.Split(*group, microbatch, limits_.whole_microbatches, recompute));
  return load.get();
}

// Descending bandwidth inside the group (section 3.3.3): the first ministage's gather hides behind nothing.
std::vector<int> ZorseSearch::ByBandwidth(const std::vector<const ZorseGroup*>& groups) const {
  std::vector<int> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return groups[a]->slowest_rate > groups[b]->slowest_rate; });
  return order;
}

void ZorseSearch::Search(const Grouping& grouping) {
  std::vector<const ZorseGroup*> groups;
  for (const std::vector<int>& devices : grouping.groups) groups.push_back(GroupOf(devices));
  const std::vector<int> order = OrderWithPins(grouping, setting_.pinned_stage, ByBandwidth(groups));
  if (order.empty()) return;
  std::vector<Found> found;
  for (int64_t microbatch : Microbatches()) {
    ZorseChoice choice;
    choice.microbatch = microbatch;
    for (int group : order) {
      choice.groups.push_back(groups[group]);
      choice.loads.push_back(LoadOf(groups[group], microbatch, recompute_ == RecomputePolicy::kFull));
      if (recompute_ == RecomputePolicy::kAuto) choice.frugal.push_back(LoadOf(groups[group], microbatch, true));
    }
    for (int64_t ministages : Ministages(groups.size())) {
      choice.ministages = ministages;
      for (const OffloadKinds& offload : Offloads()) {
        if (Stop()) break;
        choice.offload = offload;
        Try(choice, &found);
      }
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.seconds < b.seconds; });
  if (found.size() > kOfOneGrouping) found.resize(kOfOneGrouping);
  std::move(found.begin(), found.end(), std::back_inserter(found_));
}

void ZorseSearch::Try(ZorseChoice choice, std::vector<Found>* found) {
  choice.layers = model_.SplitLayers(choice.loads, limits_.equal_ministages ? choice.ministages : 1);
  if (choice.layers.empty()) return;
  if (*std::min_element(choice.layers.begin(), choice.layers.end()) < choice.ministages) return;
  double seconds = model_.StepSeconds(choice);
  if (seconds > kWorthChecking * best_seconds_) return;
  ZorseFit fit = model_.Fit(choice, limits_.even_shares);
  if (fit.missing_bytes > 0 && !limits_.layers_by_speed && model_.SplitLayersByMemory(limits_.even_shares, &choice)) {
    fit = model_.Fit(choice, limits_.even_shares);
    seconds = model_.StepSeconds(choice);
  }
  if (fit.missing_bytes > 0) {
    if (nearest_.missing_bytes == 0 || fit.missing_bytes < nearest_.missing_bytes) nearest_ = fit;
    return;
  }
  best_seconds_ = std::min(best_seconds_, seconds);
  found->push_back({seconds, std::move(choice)});
}

// The paper orders by bandwidth inside groups alone. Others: back to front (the head, or the largest batch of boundaries,
// elsewhere), and each group beside the one it is best connected to.
void ZorseSearch::AddOtherOrders() {
  const size_t by_bandwidth = std::min(found_.size(), kSimulated);
  for (size_t i = 0; i < by_bandwidth; ++i) {
    const ZorseChoice base = found_[i].choice;  // a copy: found_ grows below
    if (base.groups.size() < 2 || !setting_.request.pins.empty()) continue;
    std::vector<std::vector<size_t>> orders(1);
    for (size_t s = base.groups.size(); s-- > 0;) orders[0].push_back(s);
    for (size_t start : {size_t{0}, base.groups.size() - 1}) {
      std::vector<size_t> chain = {start};
      while (chain.size() < base.groups.size()) {
        size_t next = base.groups.size();
        double rate = -1;
        for (size_t s = 0; s < base.groups.size(); ++s) {
          if (std::find(chain.begin(), chain.end(), s) != chain.end()) continue;
          const double to = setting_.links.Rate(base.groups[chain.back()]->devices[0], base.groups[s]->devices[0]);
          if (to > rate) rate = to, next = s;
        }
        chain.push_back(next);
      }
      orders.push_back(std::move(chain));
    }
    for (const std::vector<size_t>& order : orders) {
      ZorseChoice choice = base;
      for (size_t s = 0; s < order.size(); ++s) {
        choice.groups[s] = base.groups[order[s]];
        choice.loads[s] = LoadOf(choice.groups[s], base.microbatch, recompute_ == RecomputePolicy::kFull);
        if (!base.frugal.empty()) choice.frugal[s] = base.frugal[order[s]];
      }
      if (choice.groups == base.groups || !model_.SplitLayersByMemory(limits_.even_shares, &choice) ||
          model_.Fit(choice, limits_.even_shares).missing_bytes > 0)
        continue;
      const double seconds = model_.StepSeconds(choice);
      found_.push_back({seconds, std::move(choice)});
    }
  }
}

absl::Status ZorseSearch::DoesNotFit() const {
  if (nearest_.missing_bytes == 0) {
    return absl::InvalidArgumentError(
        "zorse: no division into groups puts the pinned devices into their stages; pin fewer devices or lower stages");
  }
  if (nearest_.device < 0) {
    return LackOfMemory(nearest_.missing_bytes,
                        absl::StrCat("zorse: host memory of ", setting_.cluster.nodes[nearest_.node].name.value(), " lacks ",
                                     BytesText(nearest_.missing_bytes), " in the division that comes nearest"),
                        LackIn::kOneDevice);
  }
  const ClusterDevice& device = setting_.cluster.devices[nearest_.device];
  return OneDeviceLacks(setting_, nearest_.missing_bytes,
                        absl::StrCat("zorse: ", device.id.value(), " (", setting_.cluster.kinds[device.kind].name, ")"),
                        " in the division that comes nearest");
}

}  // namespace

absl::StatusOr<Plan> PlanZorse(const Setting& setting) {
  const std::vector<Grouping> groupings = Groupings(setting);
  const ZorseModel model(setting);
  const absl::Time deadline =
      setting.request.deadline.has_value() ? absl::Now() + *setting.request.deadline : absl::InfiniteFuture();
  const auto begin = [&](ZorseWay way) { return ZorseSearch(setting, model, way, deadline); };
  const RecomputePolicy policy = setting.request.recompute;
  if (setting.request.fidelity == Fidelity::kPublished) return begin({PublishedZorse(), RecomputePolicy::kFull}).Run(groupings);
  // The paper's state stays on the devices. Where nothing fits so, and the hosts have room, it waits there.
  const auto or_on_the_hosts = [&](absl::StatusOr<Plan> plan, RecomputePolicy recompute) {
    if (!absl::IsResourceExhausted(plan.status()) || !setting.MayOffload().optimizer) return plan;
    absl::StatusOr<Plan> other = begin({{}, recompute, /*optimizer=*/true}).Run(groupings);
    return other.ok() || IsNearerMiss(other.status(), plan.status()) ? other : plan;
  };
  // As published everything is recomputed.
  if (policy == RecomputePolicy::kNone) return or_on_the_hosts(begin({{}, policy}).Run(groupings), policy);
  // More candidates are no guarantee: the few that are simulated may all be others. So every way is searched by itself.
  absl::StatusOr<Plan> full, published;
  ZorseSearch all = begin({{}, RecomputePolicy::kFull});
  InParallel(2, [&](size_t i) {
    if (i == 0) full = all.Run(groupings);
    if (i == 1) published = begin({PublishedZorse(), RecomputePolicy::kFull}).Run(groupings);
  });
  absl::StatusOr<Plan> best = FasterPlan(setting, std::move(full), std::move(published));
  // What does not fit with everything recomputed fits in no way.
  if (!best.ok()) return or_on_the_hosts(std::move(best), RecomputePolicy::kFull);
  if (policy == RecomputePolicy::kFull) return best;
  return FasterPlan(setting, std::move(best), begin({{}, policy}).Run(groupings, all.found()));
}

}  // namespace motley::planner
