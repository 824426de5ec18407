// auto: the best plan of the whole language that a bounded search (auto_search.h) finds, of the whole cluster or of a part of it
// (auto_parts.h). docs/inside/strategies/auto.md.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "planner/pricing/price.h"
#include "planner/setting/least_lack.h"
#include "planner/strategies/auto/auto_parts.h"
#include "planner/strategies/auto/auto_search.h"
#include "planner/strategies/catalog.h"
#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

constexpr double kFaster = 0.999;  // of a known plan; less is noise of the model
// A part that is searched in brief may lose so much of what a whole search finds. So many such parts are searched again.
constexpr double kNearMiss = 1.01;
constexpr size_t kNearMisses = 2;

// The whole cluster's plan, or the one of a part that is faster.
class PartSearch {
 public:
  explicit PartSearch(const Setting& setting)
      : setting_(setting), begun_(absl::Now()), best_(SearchWhole(setting, &prices_, &spent_)) {}

  absl::StatusOr<Plan> Run() {
    const std::vector<ClusterPart> parts = PartsOf(setting_);
    // A search of many nodes takes seconds: there all parts together have one budget, and the whole is searched once.
    const bool many = setting_.cluster.nodes.size() > kMostNodes;
    if (many && !parts.empty()) budget_of_part_ = setting_.request.budget_nodes / static_cast<int64_t>(parts.size());
    // The whole is one of its parts: so what a part finds, whoever asks for that part alone finds too.
    if (!many && !parts.empty()) Keep(SearchPart(setting_, Known(), &prices_, &spent_));
    for (const ClusterPart& part : parts) {
      if (stopped_ || part.bound_seconds >= Known()) break;  // so are all that follow
      // Where nothing fits on all nodes, something may on fewer: no rank for which there are too few samples holds activations.
      Try(part, budget_of_part_, [this](const Setting& alone, PriceBook* prices) {
        return best_.ok() ? SearchPart(alone, Known(), prices, &of_parts_) : SearchWhole(alone, prices, &of_parts_);
      });
    }
    if (!parts.empty() && best_.ok() && !stopped_) {
      if (!many) TryNearMisses();
      TryWhatIsUsed();
    }
    MOTLEY_RETURN_IF_ERROR(best_.status());
    spent_.parts = of_parts_.Total();
    best_->plan.predicted.notes.push_back(absl::StrCat("found with ", ToText(spent_)));
    if (stopped_) best_->plan.predicted.notes.push_back("not all parts of the cluster were searched before the deadline");
    return std::move(best_->plan);
  }

 private:
  double Known() const { return best_.ok() ? best_->seconds * kFaster : kInfinity; }

  // The parts that came nearest without being faster, each searched as if it were the whole.
  void TryNearMisses() {
    std::multimap<double, ClusterPart> missed = std::exchange(missed_, {});
    const std::vector<int> used = PartOf(setting_, NodesOf(setting_, best_->plan)).devices;
    std::erase_if(missed, [&](const auto& part) { return part.second.devices == used; });
    size_t tried = 0;
    for (const auto& [seconds, part] : missed) {
      if (stopped_ || tried++ == kNearMisses || seconds > kNearMiss * best_->seconds) return;
      TryAsTheWhole(part);
    }
  }

  // Whoever excludes what the plan leaves unused shall get no other plan.
  void TryWhatIsUsed() {
    const std::set<int> used = NodesOf(setting_, best_->plan);
    if (used.size() == setting_.cluster.nodes.size()) return;
    TryAsTheWhole(PartOf(setting_, used));
  }

  void TryAsTheWhole(const ClusterPart& part) {
    Try(part, setting_.request.budget_nodes,
        [this](const Setting& alone, PriceBook* prices) { return SearchWhole(alone, prices, &of_parts_); });
  }

  template <typename Search>
  void Try(const ClusterPart& part, int64_t budget_nodes, Search search) {
    Setting alone = setting_.Part(part.devices);
    alone.request.budget_nodes = budget_nodes;
    if (alone.request.deadline) *alone.request.deadline -= absl::Now() - begun_;
    stopped_ = alone.request.deadline && *alone.request.deadline <= absl::ZeroDuration();
    if (stopped_ || LeastLack(alone) > 0) return;
    absl::StatusOr<FoundPlan> found = search(alone, &prices_of_parts_[part.devices]);
    if (!IsFaster(found)) {
      if (found.ok()) missed_.emplace(found->seconds, part);
      return;
    }
    if (!FitsTheWhole(found->plan)) return;
    found->plan.predicted.notes.push_back(absl::StrCat("the best of ", part.nodes, " alone; all nodes together ",
                                                       best_.ok() ? "take longer" : "have no plan that fits"));
    for (int d = 0; d < setting_.num_devices(); ++d) {
      if (std::binary_search(part.devices.begin(), part.devices.end(), d)) continue;
      found->plan.unused.push_back({setting_.cluster.devices[d].id, "the step is shorter without its node"});
    }
    best_ = std::move(found);
  }

  // NCCL's buffers depend on all the cards of a cluster, also on those that a plan leaves out.
  bool FitsTheWhole(const Plan& plan) const {
    const absl::StatusOr<Evaluation> priced = Price(setting_, plan);
    return priced.ok() && priced->does_not_fit.empty();
  }

  bool IsFaster(const absl::StatusOr<FoundPlan>& found) const { return found.ok() && found->seconds < Known(); }
  void Keep(absl::StatusOr<FoundPlan> found) {
    if (IsFaster(found)) best_ = std::move(found);
  }

  const Setting& setting_;
  const absl::Time begun_;
  int64_t budget_of_part_ = setting_.request.budget_nodes;
  SpentNodes spent_, of_parts_;
  PriceBook prices_;
  std::map<std::vector<int>, PriceBook> prices_of_parts_;  // by devices
  absl::StatusOr<FoundPlan> best_;
  std::multimap<double, ClusterPart> missed_;  // by their plans' seconds
  bool stopped_ = false;                       // by the deadline
};

}  // namespace

absl::StatusOr<Plan> PlanAuto(const Setting& setting) { return PartSearch(setting).Run(); }

}  // namespace motley::planner
