#include "planner/answers/fits.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/answers/plan_answer.h"
#include "planner/costs/memory_model.h"
#include "planner/plan/each_rank.h"
#include "planner/setting/least_lack.h"
#include "planner/strategies/frugal_plan.h"
#include "planner/util/lack_of_memory.h"
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
  absl::Status why_not;  // OK: it fits
  Plan plan;
};

absl::StatusOr<Attempt> TryStrategy(const Setting& setting) {
  MOTLEY_ASSIGN_OR_RETURN(const CatalogEntry strategy, FindInCatalog(setting.request.strategy));
  absl::StatusOr<Evaluation> evaluation = PlanAndEvaluate(setting, strategy);
  if (evaluation.ok()) return Attempt{absl::OkStatus(), std::move(evaluation->plan)};
  if (!absl::IsResourceExhausted(evaluation.status())) return evaluation.status();
  return Attempt{evaluation.status(), {}};
}

absl::StatusOr<Attempt> TryAll(const Setting& setting) {
  if (setting.request.strategy != "auto") return TryStrategy(setting);
  FrugalAnswer frugal = FindFrugal(setting);
  if (frugal.fits.ok()) return Attempt{absl::OkStatus(), std::move(frugal.plan)};
  MOTLEY_ASSIGN_OR_RETURN(Attempt best, TryStrategy(setting));
  if (!best.why_not.ok()) best.plan = std::move(frugal.plan);  // its bytes are known
  return best;
}

int64_t HostBytes(const Plan& plan) {
  int64_t bytes = 0;
  ForEachRank(plan, [&bytes](const RankPlan& rank) { bytes += rank.predicted.memory.host; });
  return bytes;
}

std::vector<std::string> Missing(const Setting& setting, const Attempt& attempt) {
  std::vector<std::string> missing;
  if (attempt.why_not.ok()) return missing;
  missing.push_back(ReasonText(setting, attempt.why_not));
  const std::map<DeviceId, int> index = IndexOf(setting);
  ForEachRank(attempt.plan, [&](const RankPlan& rank) {
    const int64_t lacks = rank.predicted.peak_bytes - setting.UsableBytes(index.at(rank.device));
    if (lacks <= 0) return;
    missing.push_back(
        absl::StrCat(rank.device.value(), " needs ", BytesText(rank.predicted.peak_bytes), " and lacks ", BytesText(lacks)));
  });
  return missing;
}

// The same, with the state that the engine keeps.
absl::Status RunsHereAtAll(const Setting& setting, const Attempt& attempt) {
  const auto said = [](const Setting& of, const absl::Status& why_not) {
    return why_not.ok() ? why_not : absl::Status(why_not.code(), ReasonText(of, why_not));
  };
  if (setting.request.runnable) return said(setting, attempt.why_not);
  if (absl::Status runs = StateRunsHere(setting.workload); !runs.ok()) return runs;
  const Setting as_run = setting.AsRun();
  const absl::StatusOr<Attempt> runs = TryAll(as_run);
  return runs.ok() ? said(as_run, runs->why_not) : runs.status();
}

// A tenth more.
int64_t BeyondIt(int64_t value) { return static_cast<int64_t>(std::ceil(1.1 * static_cast<double>(value))); }

// The largest value in 1..limit that fits, to a sixteenth; `now` is known to fit or not. A tenth more does not: what fits with
// less is what a search finds, so it is asked.
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
  while (good > 0 && good < limit && BeyondIt(good) <= limit && fits(BeyondIt(good))) good = BeyondIt(good);
  return {good, good == limit};
}

// Nothing where it cannot be posed so.
std::unique_ptr<Setting> Changed(const Setting& setting, const LatencyBook* book, const Cluster& cluster,
                                 const Workload& workload) {
  PlanRequest request = setting.request;
  request.exclude.clear();  // they are gone from the setting's cluster
  auto changed = Setting::Create(cluster, workload, std::move(request), book);
  return changed.ok() ? *std::move(changed) : nullptr;
}

// The plan that fits, or nothing.
std::optional<Plan> FitsWith(const Setting& setting, const LatencyBook* book, const Cluster& cluster, const Workload& workload) {
  const std::unique_ptr<Setting> changed = Changed(setting, book, cluster, workload);
  if (changed == nullptr || LeastLack(*changed) > 0) return std::nullopt;
  absl::StatusOr<Attempt> attempt = TryAll(*changed);
  if (!attempt.ok() || !attempt->why_not.ok()) return std::nullopt;
  return std::move(attempt->plan);
}

// Where samples go one by one at more of them than anybody asks for, no more of them will ever bind.
bool TakesAnyBatch(const Setting& setting, const LatencyBook* book, const Largest& batch) {
  if (!batch.at_least || setting.request.strategy != "auto") return false;
  Workload workload = setting.workload;
  workload.global_batch = batch.value;
  const std::unique_ptr<Setting> changed = Changed(setting, book, setting.cluster, workload);
  return changed != nullptr && FindFrugal(*changed).fits.ok();
}

// Of cards in the order of their memory; what some of them hold, more do too.
void FindFewest(const Setting& setting, const LatencyBook* book, FitReport* report) {
  std::vector<int> order(setting.cluster.devices.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return setting.UsableBytes(a) > setting.UsableBytes(b); });
  const auto first = [&](size_t count) {
    std::vector<int> devices(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
    std::sort(devices.begin(), devices.end());
    return devices;
  };
  size_t few = 0, enough = order.size();
  report->fewest_host_bytes = report->host_bytes;
  while (enough - few > 1) {
    const size_t middle = few + (enough - few) / 2;
    const std::optional<Plan> plan = FitsWith(setting, book, Restrict(setting.cluster, first(middle)), setting.workload);
    if (plan) report->fewest_host_bytes = HostBytes(*plan);
    (plan ? enough : few) = middle;
  }
  for (const int d : first(enough)) report->fewest.push_back(setting.cluster.devices[d].id);
}

// Samples that a device of `kind` takes at once beside `share` of the state.
int64_t LargestMicrobatch(const Setting& setting, int device, const RankPlan& rank, size_t ranks, const OpSet& recompute) {
  RankDuty duty = FrugalDuty(setting, device, rank.shard_ratio, {rank.offload, static_cast<int64_t>(ranks), 0});
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
          fit.largest_microbatch_keep = LargestMicrobatch(setting, device, rank, stage.units.size(), OpSet::None());
          fit.largest_microbatch_recompute = LargestMicrobatch(setting, device, rank, stage.units.size(), OpSet::All());
        }
      }
    }
  }
  std::vector<KindFit> list;
  for (auto& [kind, fit] : kinds) list.push_back(std::move(fit));
  return list;
}

}  // namespace

QuickFit FindQuickFit(const Setting& setting) {
  const absl::StatusOr<Attempt> attempt = TryAll(setting);
  if (!attempt.ok()) return {attempt.status(), 0, 0, attempt.status()};
  return {attempt->why_not, LackingBytes(attempt->why_not).value_or(0), attempt->why_not.ok() ? HostBytes(attempt->plan) : 0,
          RunsHereAtAll(setting, *attempt)};
}

absl::StatusOr<FitReport> FindFit(const Setting& setting, const LatencyBook* book, bool with_ways) {
  MOTLEY_ASSIGN_OR_RETURN(Attempt attempt, TryAll(setting));
  FitReport report;
  report.fits = attempt.why_not.ok();
  report.lacking_bytes = LackingBytes(attempt.why_not).value_or(0);
  report.missing = Missing(setting, attempt);
  report.runs_here = RunsHereAtAll(setting, attempt);
  report.host_bytes = report.fits ? HostBytes(attempt.plan) : 0;
  report.plan = std::move(attempt.plan);
  report.kinds = KindsOf(setting, report.plan);
  report.state_bytes = setting.costs.TotalElements() * setting.costs.StateBytesPerElement();
  for (int d = 0; d < setting.num_devices(); ++d) report.usable_bytes += setting.UsableBytes(d);
  Workload workload = setting.workload;
  // Of the frugal plan a batch costs nothing to try; a search takes the longer the more samples there are.
  const bool frugal = setting.request.strategy == "auto" && FindFrugal(setting).fits.ok();
  const int64_t limit = frugal ? kMostBatch : kMostPlannedBatch;
  report.batch = FindLargest(workload.global_batch, report.fits, std::max(limit, workload.global_batch), [&](int64_t batch) {
    workload.global_batch = batch;
    return FitsWith(setting, book, setting.cluster, workload).has_value();
  });
  report.batch.any = TakesAnyBatch(setting, book, report.batch);
  workload = setting.workload;
  report.sequence = FindLargest(workload.seq_len, report.fits, workload.model.max_positions, [&](int64_t seq_len) {
    workload.seq_len = seq_len;
    return FitsWith(setting, book, setting.cluster, workload).has_value();
  });
  report.sequence.at_least = false;  // the model's positions end there
  if (!report.fits && with_ways) report.ways = FindWaysOut(setting, book);
  if (report.fits && setting.request.strategy == "auto" && setting.request.pins.empty()) FindFewest(setting, book, &report);
  return report;
}

}  // namespace motley::planner
