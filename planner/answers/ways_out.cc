#include "planner/answers/ways_out.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "planner/answers/more_cards.h"
#include "planner/answers/quick_plan.h"
#include "planner/strategies/catalog.h"
#include "planner/util/lack_of_memory.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

constexpr int kMostExtraCards = 64, kMostPlannedCards = 4;
constexpr int kMostTries = 64;  // changed problems; enough for every kind of way on a usual cluster
constexpr double kLeastReserve = 0.03;
constexpr int64_t kShortestPart = 8;  // of the sequence: below it, it is another training
constexpr int64_t kUsualHostBytes = int64_t{512} << 30;

// What to change, as whoever asked says it: on the command line or in a job file.
struct Knob {
  const char *flag, *key;
};
constexpr Knob kStrategy = {"--strategy", "planner.strategy"},
               kFidelity = {"--fidelity published", "planner.fidelity = published"},
               kZeroStage = {"--zero-stage", "its ZeRO stage"}, kPin = {"--pin", "planner.pins"},
               kRecompute = {"--recompute none", "planner.recompute = none"}, kMaxTp = {"--max-tp", "planner.max_tp"},
               kOffload = {"--offload", "planner.offload"}, kReserve = {"--memory-reserve", "planner.memory_reserve"},
               kDtype = {"--dtype", "training.dtype"}, kHalfDtype = {"--dtype", "training.mixed_precision_param"},
               kGlobalBatch = {"--global-batch", "training.global_batch_size"}, kSeqLen = {"--seq-len", "training.seq_len"};

class Finder {
 public:
  Finder(const Setting& setting, const LatencyBook* book, std::optional<absl::Duration> left) : setting_(setting), book_(book) {
    if (!left) left = setting.request.deadline;
    if (left) end_ = absl::Now() + *left;
  }

  std::vector<WayOut> Find(size_t most) {
    using Way = std::optional<WayOut> (Finder::*)() const;
    std::vector<WayOut> ways;
    for (const Way way : {&Finder::Strategy, &Finder::Request, &Finder::Reserve, &Finder::Batch, &Finder::Host,
                          &Finder::Precision, &Finder::Sequence}) {
      if (ways.size() >= most) return ways;
      if (std::optional<WayOut> found = (this->*way)()) ways.push_back(*std::move(found));
    }
    AddCards(most, &ways);
    return ways;
  }

 private:
  const char* NameOf(const Knob& knob) const { return setting_.request.from_job ? knob.key : knob.flag; }
  template <typename Value>
  std::string Set(const Knob& knob, const Value& value) const {
    return absl::StrCat(NameOf(knob), setting_.request.from_job ? " = " : " ", value);
  }

  // More state than all cards hold: no strategy needs to be asked. Hosts may take state, so they are asked where there are any.
  static bool CannotFit(const Setting& setting) {
    int64_t usable = 0;
    for (int d = 0; d < setting.num_devices(); ++d) {
      usable += setting.UsableBytes(d) - setting.costs.ContextBytes(setting.KindOf(d));
      if (setting.limits().offload.takes_state() && setting.cluster.nodes[setting.cluster.devices[d].node].host_memory_bytes > 0)
        return false;
    }
    return setting.costs.TotalElements() * setting.costs.StateBytesPerElement() > usable;
  }

  // Who stands for auto: the quick strategies, or itself beside them, which alone offloads what none of them does.
  enum class Asked { kQuick, kAuto };
  using Tried = QuickPlan;

  static WayOut Way(std::string what, const Tried& tried, const Workload& workload) {
    const auto tokens = static_cast<double>(workload.global_batch * workload.seq_len);
    return {std::move(what), tried.step_seconds, tried.runs_here_seconds, tokens};
  }

  // Where the tried plans do not run here, those that do are asked for, too.
  std::optional<Tried> Try(const Cluster& cluster, const Workload& workload, const PlanRequest& request,
                           Asked asked = Asked::kQuick) const {
    std::optional<Tried> tried = TryAs(cluster, workload, request, asked);
    if (!tried || tried->runs_here_seconds > 0 || request.runnable || !StateRunsHere(workload).ok()) return tried;
    PlanRequest runnable = request;
    runnable.runnable = true;
    if (const auto again = TryAs(cluster, workload, std::move(runnable))) tried->runs_here_seconds = again->runs_here_seconds;
    return tried;
  }

  // Of the changed problem; nothing when it does not fit, or cannot be posed.
  std::optional<Tried> TryAs(const Cluster& cluster, const Workload& workload, PlanRequest request,
                             Asked asked = Asked::kQuick) const {
    request.budget_nodes = std::min(request.budget_nodes, kTryBudget);
    std::vector<std::string> strategies = QuickStrategies(request);
    if (asked == Asked::kAuto && request.strategy == "auto") strategies.emplace_back("auto");
    return PlanOf(cluster, workload, std::move(request), strategies);
  }

  std::optional<Tried> PlanOf(const Cluster& cluster, const Workload& workload, PlanRequest request,
                              const std::vector<std::string>& strategies) const {
    request.exclude.clear();  // they are gone from the setting's cluster
    if (OutOfTime(&request)) return std::nullopt;
    const auto changed = Setting::Create(cluster, workload, std::move(request), book_);
    if (!changed.ok() || CannotFit(**changed) || tries_left_ == 0) return std::nullopt;
    --tries_left_;
    return FindQuickPlan(**changed, strategies, [this](PlanRequest* of) { return OutOfTime(of); });
  }

  // Gives the request what is left of the time.
  bool OutOfTime(PlanRequest* request) const {
    if (!end_) return false;
    const absl::Duration left = *end_ - absl::Now();
    if (left <= absl::ZeroDuration()) return true;
    request->deadline = left;
    return false;
  }

  std::optional<WayOut> Strategy() const {
    std::optional<WayOut> best;
    if (setting_.request.strategy == "auto") return best;  // it tried the others
    PlanRequest quick;
    for (const std::string& name : QuickStrategies(quick)) {
      if (name == setting_.request.strategy) continue;
      PlanRequest request = setting_.request;
      request.strategy = name;
      const std::optional<Tried> tried = Try(setting_.cluster, setting_.workload, request);
      if (!tried || (best && best->step_seconds <= tried->step_seconds)) continue;
      best = Way(Set(kStrategy, request.strategy), *tried, setting_.workload);
    }
    return best;
  }

  OffloadKinds MayOffloadWith(const PlanRequest& request) const {
    Setting setting = setting_;
    setting.request = request;
    return setting.MayOffload();
  }

  // Restrictions that the user may lift.
  std::optional<WayOut> Request() const {
    PlanRequest request = setting_.request;
    std::string what;
    const auto lift = [this, &what](bool there, const Knob& knob) {
      if (there) absl::StrAppend(&what, what.empty() ? "without " : " and ", NameOf(knob));
    };
    lift(request.fidelity == Fidelity::kPublished, kFidelity);
    lift(request.zero_stage.has_value(), kZeroStage);
    lift(!request.pins.empty(), kPin);
    lift(request.recompute == RecomputePolicy::kNone, kRecompute);
    lift(request.max_tp < PlanRequest().max_tp, kMaxTp);
    request.offload = OffloadKinds::All();
    lift(setting_.request.offload != request.offload && setting_.MayOffload() != MayOffloadWith(request), kOffload);
    if (what.empty()) return std::nullopt;
    request.fidelity = Fidelity::kTuned;
    request.zero_stage.reset();
    request.pins.clear();
    request.recompute = RecomputePolicy::kAuto;
    request.max_tp = std::max(request.max_tp, PlanRequest().max_tp);
    const std::optional<Tried> tried = Try(setting_.cluster, setting_.workload, request);
    return tried ? std::optional(Way(what, *tried, setting_.workload)) : std::nullopt;
  }

  // Down to what no allocator needs less of.
  std::optional<WayOut> Reserve() const {
    const double now = setting_.request.memory_reserve.value_or(1 - setting_.cluster.usable_memory);
    for (const double reserve : {0.06, kLeastReserve}) {
      if (reserve >= now) continue;
      PlanRequest request = setting_.request;
      request.memory_reserve = reserve;
      const std::optional<Tried> tried = Try(setting_.cluster, setting_.workload, request);
      if (!tried) continue;
      const std::string value = absl::StrCat(reserve), percent = absl::StrCat(100 * reserve, "%");
      return Way(absl::StrCat(Set(kReserve, setting_.request.from_job ? value : percent), " instead of ",
                              setting_.request.from_job ? absl::StrCat(now) : absl::StrFormat("%.3g%%", 100 * now)),
                 *tried, setting_.workload);
    }
    return std::nullopt;
  }

  std::optional<WayOut> Precision() const {
    Workload workload = setting_.workload;
    if (IsHalf(workload.dtype)) return std::nullopt;
    const bool to_half = workload.dtype == DType::kFloat32;
    workload.dtype = to_half ? DType::kFloat16 : DType::kFloat32;
    const std::optional<Tried> tried = Try(setting_.cluster, workload, setting_.request);
    if (!tried) return std::nullopt;
    return Way(Set(to_half ? kHalfDtype : kDtype, std::string(DTypeName(workload.dtype))), *tried, workload);
  }

  // The largest value from `least` to below `now` that fits, to an eighth: the next digit is not worth the planning. What fits at
  // a value fits below, so the search bisects, between powers of two first.
  std::optional<WayOut> Smaller(const Knob& knob, int64_t least, int64_t now,
                                const std::function<Workload(int64_t)>& with) const {
    const auto holds = [&](int64_t value) { return TryAs(setting_.cluster, with(value), setting_.request).has_value(); };
    if (now <= least || !holds(least)) return std::nullopt;
    int64_t fits = least, too_much = now;
    while (too_much - fits > std::max<int64_t>(fits / 8, 1)) {
      const bool far = too_much / fits >= 4;
      const auto middle = far ? static_cast<int64_t>(std::sqrt(static_cast<double>(fits) * static_cast<double>(too_much)))
                              : fits + (too_much - fits) / 2;
      (holds(middle) ? fits : too_much) = middle;
    }
    const std::optional<Tried> tried = Try(setting_.cluster, with(fits), setting_.request);
    if (!tried) return std::nullopt;  // the time or the tries are spent
    return Way(absl::StrCat(Set(knob, fits), " instead of ", now), *tried, with(fits));
  }

  std::optional<WayOut> Batch() const {
    return Smaller(kGlobalBatch, 1, setting_.workload.global_batch, [this](int64_t batch) {
      Workload workload = setting_.workload;
      workload.global_batch = batch;
      return workload;
    });
  }

  std::optional<WayOut> Sequence() const {
    const int64_t now = setting_.workload.seq_len;
    return Smaller(kSeqLen, std::max<int64_t>(1, now / kShortestPart), now, [this](int64_t seq_len) {
      Workload workload = setting_.workload;
      workload.seq_len = seq_len;
      return workload;
    });
  }

  // Memory of the hosts, where the cluster's file says nothing of it.
  std::optional<WayOut> Host() const {
    Cluster cluster = setting_.cluster;
    bool changed = false;
    for (ClusterNode& node : cluster.nodes) {
      if (node.host_memory_bytes > 0 || !setting_.limits().offload.any()) continue;
      node.host_memory_bytes = kUsualHostBytes;
      if (node.host_link_bytes_per_second == 0) node.host_link_bytes_per_second = node.device_link_bytes_per_second;
      changed = true;
    }
    if (!changed) return std::nullopt;
    const std::optional<Tried> tried = Try(cluster, setting_.workload, setting_.request, Asked::kAuto);
    if (!tried) return std::nullopt;
    const char* const what = setting_.request.from_job
                                 ? "offloading, with worker.host_memory_bytes = 549755813888 on every node that offers none"
                                 : "offloading, with host_memory_gib = 512 in the cluster's file for every node without";
    return Way(what, *tried, setting_.workload);
  }

  // For each kind the fewest more cards; of equal numbers the one with the least memory first, which is the cheapest. Those
  // that are shown, and not too many to buy, are planned as a file that has them would be.
  void AddCards(size_t most, std::vector<WayOut>* ways) const {
    std::vector<int> kinds;
    for (int k = 0; k < static_cast<int>(setting_.cluster.kinds.size()); ++k) kinds.push_back(k);
    std::stable_sort(kinds.begin(), kinds.end(), [this](int a, int b) { return Kind(a).memory_bytes < Kind(b).memory_bytes; });
    std::vector<std::pair<int, int>> found;  // how many, of which kind
    for (const int kind : kinds) {
      if (const std::optional<int> count = FewestCards(kind)) found.emplace_back(*count, kind);
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [count, kind] : found) {
      if (ways->size() >= most) return;
      int node = 0;
      const Cluster larger = WithMoreCards(setting_.cluster, kind, count, &node);
      std::optional<Tried> tried = count <= kMostPlannedCards ? Planned(larger) : std::nullopt;
      if (!tried) tried = Try(larger, setting_.workload, setting_.request);  // too many, or no time for more
      if (!tried) continue;
      ways->push_back(
          Way(absl::StrCat(count, " more ", KindText(setting_.cluster, kind), " on ", setting_.cluster.nodes[node].name.value()),
              *tried, setting_.workload));
    }
  }

  // As a file of the cluster would be; and as one that runs here, where that plan does not.
  std::optional<Tried> Planned(const Cluster& cluster) const {
    PlanRequest request = setting_.request;
    std::optional<Tried> tried = PlanOf(cluster, setting_.workload, request, {request.strategy});
    if (!tried || tried->runs_here_seconds > 0 || request.runnable || !StateRunsHere(setting_.workload).ok()) return tried;
    request.runnable = true;
    const std::optional<Tried> runs = PlanOf(cluster, setting_.workload, request, {request.strategy});
    if (runs) tried->runs_here_seconds = runs->runs_here_seconds;
    return tried;
  }

  std::optional<int> FewestCards(int kind) const {
    const auto holds = [&](int count) {
      return TryAs(WithMoreCards(setting_.cluster, kind, count), setting_.workload, setting_.request).has_value();
    };
    int enough = 1;
    while (enough <= kMostExtraCards && !holds(enough)) enough *= 2;
    if (enough > kMostExtraCards) return std::nullopt;
    for (int too_few = enough / 2; enough - too_few > 1;) {
      const int middle = too_few + (enough - too_few) / 2;
      (holds(middle) ? enough : too_few) = middle;
    }
    return enough;
  }

  const CardKind& Kind(int kind) const { return setting_.cluster.kinds[kind]; }

  const Setting& setting_;
  const LatencyBook* const book_;
  std::optional<absl::Time> end_;
  mutable int tries_left_ = kMostTries;
};

}  // namespace

std::vector<WayOut> FindWaysOut(const Setting& setting, const LatencyBook* book, size_t most,
                                std::optional<absl::Duration> left) {
  return Finder(setting, book, left).Find(most);
}

absl::Status NothingFits(const Setting& setting, const LatencyBook* book, const absl::Status& why,
                         std::optional<absl::Duration> left) {
  const Workload& w = setting.workload;
  const int64_t state = setting.costs.TotalElements() * setting.costs.StateBytesPerElement();
  int64_t usable = 0;
  for (int d = 0; d < setting.num_devices(); ++d) usable += setting.UsableBytes(d);
  const std::string what = absl::StrCat(w.model_name, " on ", setting.cluster.name, " with batch ", w.global_batch, ", sequence ",
                                        w.seq_len, ", ", std::string(DTypeName(w.dtype)));
  const std::string bytes =
      absl::StrCat("the training state is ", BytesText(state), ", the cards' usable memory ", BytesText(usable));
  const std::string reason = ReasonText(setting, why);
  std::string message;
  if (state > usable) {
    message = absl::StrCat(what, " does not fit: ", bytes, "; ", BytesText(state - usable), " are missing\n", reason);
  } else {
    message = absl::StrCat(what, ": no plan: ", reason, "\n", bytes);
  }
  const std::vector<WayOut> ways = FindWaysOut(setting, book, kWaysShown, left);
  if (ways.empty()) {
    absl::StrAppend(&message, "\nno single change that was tried helps: a smaller model or more devices");
    return absl::ResourceExhaustedError(message);
  }
  absl::StrAppend(&message, state > usable ? "\nwhat would fit, the cheapest first:" : "\nwhat would work, the cheapest first:");
  absl::StrAppend(&message, "\n", absl::StripSuffix(ToText(setting, ways), "\n"));
  return absl::ResourceExhaustedError(message);
}

std::string ReasonText(const Setting& setting, const absl::Status& why) {
  const bool nearest = setting.request.strategy == "auto" && LackingBytes(why).has_value();
  return absl::StrCat(nearest ? "the nearest miss: " : "", why.message());
}

std::string ToText(const Setting& setting, const std::vector<WayOut>& ways) {
  std::string text;
  for (const WayOut& way : ways) {
    absl::StrAppend(&text, "  ", way.what, ": ", SecondsText(way.step_seconds), " a step, ",
                    absl::StrFormat("%.0f tokens/s", way.tokens_per_second()));
    const bool said = setting.request.runnable;  // then all of them run
    if (!said && way.runs_here_seconds == 0) absl::StrAppend(&text, ", does not run here");
    if (!said && way.runs_here_seconds > 0) absl::StrAppend(&text, "; runs here in ", SecondsText(way.runs_here_seconds));
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace motley::planner
