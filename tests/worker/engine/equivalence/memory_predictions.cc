#include "tests/worker/engine/equivalence/memory_predictions.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/costs/latency_book.h"
#include "planner/costs/motley_profile.h"
#include "planner/plan/each_rank.h"
#include "planner/pricing/price.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"
#include "worker/engine/base/memory.h"
#include "worker/engine/model/unit_bench.h"
#include "worker/engine/model/unit_model.h"

namespace motley::engine {
namespace {

constexpr int64_t kMostSamples = 16;

// What the profiler says of bytes, whatever the time that it takes: on a host half types are slow, and the profiler's is over
// before the larger microbatches.
UnitProfile BytesOf(UnitModel& model, const TinyJob& job, Precision precision, UnitKind kind, MemoryAccount& account) {
  UnitBench bench(model, job.model, job.config.training.seq_len, precision, c10::kCPU, kind);
  UnitProfile profile;
  for (int64_t samples = 1; samples <= kMostSamples; samples *= 2) {
    ComputePoint& point = profile.points.emplace_back();
    point.microbatch = samples;
    bench.Prepare(samples);
    const int64_t before = account.current_bytes();
    account.ResetPeak();
    bench.Forward();
    const int64_t at_backward = account.current_bytes(), forward = account.peak_bytes() - at_backward;
    point.saved_bytes = at_backward - before - bench.output_bytes() + bench.input_bytes();
    account.ResetPeak();
    bench.Backward();
    point.forward_workspace_bytes = forward;
    point.workspace_bytes = std::max(forward, account.peak_bytes() - at_backward - bench.input_grad_bytes());
    bench.Clear();
  }
  return profile;
}

// The profile's bytes; seconds are the setting's, which knows no card.
planner::MeasuredSeries SeriesOf(const planner::Costs& costs, int kind, UnitKind unit, const UnitProfile& profile) {
  planner::MeasuredSeries series;
  for (const ComputePoint& point : profile.points) {
    const auto samples = static_cast<double>(point.microbatch);
    series.samples.push_back(samples);
    series.forward_seconds.push_back(costs.EvaluationSeconds(kind, unit, samples));
    series.backward_seconds.push_back(costs.BackwardSeconds(kind, unit, samples));
    series.saved_bytes.push_back(point.saved_bytes);
    series.workspace_bytes.push_back(point.workspace_bytes);
    series.forward_workspace_bytes.push_back(point.forward_workspace_bytes);
  }
  return series;
}

planner::MotleyProfile ProfileOfThreads(const planner::Setting& setting, const ComputeProfile& measured) {
  planner::MotleyProfile profile;
  profile.source = "measured here";
  profile.models[setting.workload.model_name] = setting.workload.model;
  for (size_t k = 0; k < setting.cluster.kinds.size(); ++k) {
    const auto series = [&](UnitKind unit, const UnitProfile& points) {
      return SeriesOf(setting.costs, static_cast<int>(k), unit, points);
    };
    planner::MeasuredCard card;
    card.model = setting.workload.model_name;
    card.card = setting.cluster.kinds[k].name;
    card.seq_len = setting.workload.seq_len;
    card.dtype = setting.workload.dtype;
    card.layer = series(UnitKind::kLayer, measured.layer);
    card.embedding = series(UnitKind::kEmbedding, measured.embedding);
    card.head = series(UnitKind::kHead, measured.head);
    card.context_bytes = measured.context_bytes;
    profile.cards.push_back(std::move(card));
  }
  return profile;
}

double ExcessOver(int64_t measured, int64_t predicted, int64_t uncounted_bytes) {
  const int64_t more = measured - predicted;
  if (std::abs(more) <= uncounted_bytes) return 0;
  return static_cast<double>(more) / static_cast<double>(predicted);
}

}  // namespace

double RankMemory::Excess(int64_t uncounted_bytes) const {
  return ExcessOver(measured_bytes, predicted.total(), uncounted_bytes);
}

double RankMemory::ExcessOf(int64_t MemoryByPurpose::*purpose, int64_t uncounted_bytes) const {
  return ExcessOver(measured.most.*purpose, predicted_most.*purpose, uncounted_bytes);
}

absl::StatusOr<ComputeProfile> MemoryPredictions::ProfileOf(const TinyJob& job) {
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(job.config.training));
  const std::string name = absl::StrCat(static_cast<int>(job.model.family), " ", job.model.hidden_size, " ",
                                        job.config.training.seq_len, " ", std::string(DTypeName(precision.compute)));
  const auto found = profiles_.find(name);
  if (found != profiles_.end()) return found->second;
  InstallCounting();
  at::set_num_threads(1);  // as ranks compute: what kernels take for themselves is per thread
  const auto account = std::make_shared<MemoryAccount>();
  const CountingIn counting(account);
  UnitModel model(job.model, job.config.training.seq_len, precision.compute);
  ComputeProfile profile;
  profile.context_bytes = account->current_bytes();
  profile.embedding = BytesOf(model, job, precision, UnitKind::kEmbedding, *account);
  profile.layer = BytesOf(model, job, precision, UnitKind::kLayer, *account);
  profile.head = BytesOf(model, job, precision, UnitKind::kHead, *account);
  return profiles_[name] = std::move(profile);
}

// Schedules follow seconds, those of other settings may be others: what is run is what is priced.
absl::StatusOr<planner::Evaluation> MemoryPredictions::Price(const PlannedJob& planned, Devices devices) {
  MOTLEY_ASSIGN_OR_RETURN(const ComputeProfile measured, ProfileOf(planned.job));
  const planner::PlanRequest request{.runnable = true};
  MOTLEY_ASSIGN_OR_RETURN(const auto seconds, SettingOfThreads(planned.job.model, planned.plan, planned.plan.dtype, request));
  MOTLEY_ASSIGN_OR_RETURN(const planner::LatencyBook book,
                          planner::LatencyBook::Of(ProfileOfThreads(*seconds, measured), "measured here"));
  planner::Cluster cluster = seconds->cluster;
  for (planner::CardKind& kind : cluster.kinds) kind.launches_ahead = devices == Devices::kCards;
  MOTLEY_ASSIGN_OR_RETURN(const auto setting,
                          planner::Setting::Create(std::move(cluster), seconds->workload, seconds->request, &book));
  MOTLEY_ASSIGN_OR_RETURN(planner::Plan plan, ScheduledOnThreads(planned.job.model, planned.plan));
  return planner::Price(*setting, std::move(plan));
}

absl::StatusOr<std::vector<planner::MemoryByPurpose>> MemoryPredictions::Of(const PlannedJob& planned, Devices devices) {
  MOTLEY_ASSIGN_OR_RETURN(const planner::Evaluation evaluation, Price(planned, devices));
  std::vector<planner::MemoryByPurpose> by_rank;
  planner::ForEachRank(evaluation.plan, [&](const planner::RankPlan& rank) { by_rank.push_back(rank.predicted.memory); });
  return by_rank;
}

absl::StatusOr<std::vector<RankMemory>> MemoryPredictions::AndMeasured(const PlannedJob& planned, Devices devices) {
  MOTLEY_ASSIGN_OR_RETURN(const planner::Evaluation evaluation, Price(planned, devices));
  MOTLEY_ASSIGN_OR_RETURN(std::vector<RankAssignment> assignments,
                          AssignmentsOf(planned.job.model, planned.job.config, planned.plan, FourSamples(planned.plan)));
  for (RankAssignment& assignment : assignments) assignment.evaluation = Program();  // predicted is what training takes
  MOTLEY_ASSIGN_OR_RETURN(const Checkpoints run, TrainAndKeep(assignments, std::nullopt, devices));
  std::vector<RankMemory> ranks;
  planner::ForEachRank(evaluation.plan, [&](const planner::RankPlan& rank) {
    const size_t r = ranks.size();
    ranks.push_back(
        {rank.predicted.memory, run.peak_bytes[r], run.host_bytes[r], rank.predicted.most, run.memory[r], rank.predicted.waits});
  });
  return ranks;
}

}  // namespace motley::engine
