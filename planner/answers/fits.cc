#include "planner/answers/fits.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/answers/plan_answer.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

// Samples of a step beyond which nobody asks. Strategies' tables grow with the batch.
constexpr int64_t kMostBatch = 1 << 16, kMostPlannedBatch = 1 << 13;
constexpr int64_t kMostMicrobatch = 1 << 16;

std::map<DeviceId, int> IndexOf(const Setting& setting) {
  std::map<DeviceId, int> index;
  for (int d = 0; d < setting.num_devices(); ++d) index[setting.cluster.devices[d].id] = d;
  return index;
}

// What decides at one setting: a plan that fits, or the one that comes nearest and why it does not.
struct Attempt {
  bool fits = false;
  Plan plan;
  std::vector<std::string> missing;
};

absl::StatusOr<Attempt> TryStrategy(const Setting& setting) {
  MOTLEY_ASSIGN_OR_RETURN(const CatalogEntry strategy, FindInCatalog(setting.request.strategy));
  absl::StatusOr<Evaluation> evaluation = PlanAndEvaluate(setting, strategy);
  if (evaluation.ok()) return Attempt{true, std::move(evaluation->plan), {}};
  if (!absl::IsResourceExhausted(evaluation.status())) return evaluation.status();
  return Attempt{false, {}, {std::string(evaluation.status().message())}};
}

absl::StatusOr<Attempt> TryFrugal(const Setting& setting, bool offload) {
  absl::StatusOr<Plan> plan = FrugalPlan(setting, offload);
  if (absl::IsResourceExhausted(plan.status())) return Attempt{false, {}, {std::string(plan.status().message())}};
  MOTLEY_RETURN_IF_ERROR(plan.status());
  Attempt attempt{true, *std::move(plan), {}};
  const std::map<DeviceId, int> index = IndexOf(setting);
  for (const UnitPlan& unit : attempt.plan.pipelines[0].stages[0].units) {
    const RankPlan& rank = unit.ranks[0];
    const int64_t missing = rank.predicted.peak_bytes - setting.UsableBytes(index.at(rank.device));
    if (missing <= 0) continue;
    attempt.fits = false;
    attempt.missing.push_back(
        absl::StrCat(rank.device.value(), " needs ", BytesText(rank.predicted.peak_bytes), " and lacks ", BytesText(missing)));
  }
  return attempt;
}

bool KnowsHosts(const Cluster& cluster) {
  return std::all_of(cluster.nodes.begin(), cluster.nodes.end(),
                     [](const ClusterNode& node) { return node.host_memory_bytes > 0; });
}

absl::StatusOr<Attempt> TryAll(const Setting& setting) {
  if (setting.request.strategy != "auto") return TryStrategy(setting);
  MOTLEY_ASSIGN_OR_RETURN(Attempt frugal, TryFrugal(setting, false));
  if (frugal.fits) return frugal;
  if (KnowsHosts(setting.cluster)) {
    MOTLEY_ASSIGN_OR_RETURN(Attempt offloaded, TryFrugal(setting, true));
    if (offloaded.fits) return offloaded;
  }
  MOTLEY_ASSIGN_OR_RETURN(Attempt best, TryStrategy(setting));
  if (best.fits || frugal.plan.pipelines.empty()) return best;
  return frugal;  // its bytes are known
}

// The largest value in 1..limit that fits, to a sixteenth; `now` is known to fit or not.
Largest FindLargest(int64_t now, bool now_fits, int64_t limit, const std::function<bool(int64_t)>& fits) {
  int64_t good = now_fits ? now : 0, bad = now_fits ? limit + 1 : now;
  for (int64_t value = now; now_fits && value < limit;) {
    value = std::min(2 * value, limit);
    if (!fits(value)) {
      bad = value;
      break;
    }
    good = value;
  }
  for (int64_t value = now / 2; !now_fits && value >= 1; value /= 2) {
    if (fits(value)) {
      good = value;
      break;
    }
    bad = value;
  }
  while (good > 0 && bad - good > std::max<int64_t>(1, good / 16)) {
    const int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return {good, good == limit};
}

bool FitsWith(const Setting& setting, const LatencyBook* book, const Cluster& cluster, const Workload& workload) {
  PlanRequest request = setting.request;
  request.exclude.clear();  // they are gone from the setting's cluster
  const auto changed = Setting::Create(cluster, workload, std::move(request), book);
  if (!changed.ok()) return false;
  const absl::StatusOr<Attempt> attempt = TryAll(**changed);
  return attempt.ok() && attempt->fits;
}

// Of cards in the order of their memory; what some of them hold, more do too.
std::vector<DeviceId> FewestThatFit(const Setting& setting, const LatencyBook* book) {
  std::vector<int> order(setting.cluster.devices.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return setting.UsableBytes(a) > setting.UsableBytes(b); });
  const auto first = [&](size_t count) {
    std::vector<int> devices(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
    std::sort(devices.begin(), devices.end());
    return devices;
  };
  size_t few = 0, enough = order.size();
  while (enough - few > 1) {
    const size_t middle = few + (enough - few) / 2;
    (FitsWith(setting, book, Restrict(setting.cluster, first(middle)), setting.workload) ? enough : few) = middle;
  }
  std::vector<DeviceId> devices;
  for (const int d : first(enough)) devices.push_back(setting.cluster.devices[d].id);
  return devices;
}

// Samples that a device of `kind` takes at once beside `share` of the state.
int64_t LargestMicrobatch(const Setting& setting, int device, const RankPlan& rank, const OpSet& recompute) {
  RankDuty duty = FrugalDuty(setting, device, rank.shard_ratio, rank.offload_optimizer);
  duty.recompute = recompute;
  const auto fits = [&](int64_t size) {
    return MemoryOf(setting.costs, duty, 1, size, 0).total() <= setting.UsableBytes(device);
  };
  int64_t good = 0;
  for (int64_t step = kMostMicrobatch; step >= 1; step /= 2) {
    if (good + step <= kMostMicrobatch && fits(good + step)) good += step;
  }
  return good;
}

std::vector<KindFit> KindsOf(const Setting& setting, const Plan& plan) {
  const std::map<DeviceId, int> index = IndexOf(setting);
  std::map<int, KindFit> kinds;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (const StagePlan& stage : pipeline.stages) {
      for (const UnitPlan& unit : stage.units) {
        for (const RankPlan& rank : unit.ranks) {
          const int device = index.at(rank.device);
          const int kind = setting.KindOf(device);
          KindFit& fit = kinds[kind];
          if (++fit.ranks > 1 && rank.predicted.memory.total() <= fit.memory.total()) continue;
          fit.kind = setting.cluster.kinds[kind].name;
          fit.device = rank.device;
          fit.memory = rank.predicted.memory;
          fit.usable_bytes = setting.UsableBytes(device);
          if (plan.pipelines.size() > 1 || pipeline.stages.size() > 1 || unit.ranks.size() > 1) continue;  // another duty
          fit.largest_microbatch_keep = LargestMicrobatch(setting, device, rank, OpSet::None());
          fit.largest_microbatch_recompute = LargestMicrobatch(setting, device, rank, OpSet::All());
        }
      }
    }
  }
  std::vector<KindFit> list;
  for (auto& [kind, fit] : kinds) list.push_back(std::move(fit));
  return list;
}

}  // namespace

absl::StatusOr<FitReport> FindFit(const Setting& setting, const LatencyBook* book) {
  MOTLEY_ASSIGN_OR_RETURN(Attempt attempt, TryAll(setting));
  FitReport report;
  report.fits = attempt.fits;
  report.missing = std::move(attempt.missing);
  report.plan = std::move(attempt.plan);
  report.kinds = KindsOf(setting, report.plan);
  report.state_bytes = setting.costs.TotalElements() * setting.costs.StateBytesPerElement();
  for (int d = 0; d < setting.num_devices(); ++d) report.usable_bytes += setting.UsableBytes(d);
  Workload workload = setting.workload;
  const int64_t limit = setting.request.strategy == "auto" ? kMostBatch : kMostPlannedBatch;
  report.batch = FindLargest(workload.global_batch, report.fits, std::max(limit, workload.global_batch), [&](int64_t batch) {
    workload.global_batch = batch;
    return FitsWith(setting, book, setting.cluster, workload);
  });
  workload = setting.workload;
  report.sequence = FindLargest(workload.seq_len, report.fits, workload.model.max_positions, [&](int64_t seq_len) {
    workload.seq_len = seq_len;
    return FitsWith(setting, book, setting.cluster, workload);
  });
  report.sequence.at_least = false;  // the model's positions end there
  if (!report.fits) report.ways = FindWaysOut(setting, book);
  if (report.fits && setting.request.strategy == "auto" && setting.request.pins.empty()) {
    report.fewest = FewestThatFit(setting, book);
  }
  return report;
}

}  // namespace motley::planner
