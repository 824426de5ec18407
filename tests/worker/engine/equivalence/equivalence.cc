#include "tests/worker/engine/equivalence/equivalence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/data/sampling.h"
#include "planner/plan/each_rank.h"
#include "tests/worker/engine/equivalence/plan_assignments.h"
#include "tests/worker/engine/equivalence/random_plans.h"

namespace motley::engine {
namespace {

// A plan rounds in more ways than the simplest ones do.
constexpr double kMostWobbles = 4, kMostStateWobbles = 2;

// The batch in these microbatches, by one rank or by two of which the first has this share of the tensor-parallel work.
planner::Plan OneUnitPlan(const TinyJob& job, std::vector<int64_t> microbatches, double first_share) {
  planner::Plan plan = OneDevicePlan(job);
  planner::UnitPlan& unit = plan.pipelines[0].stages[0].units[0];
  unit.microbatches = std::move(microbatches);
  if (first_share == 1) return plan;
  unit.ranks.push_back(unit.ranks[0]);
  unit.ranks[1].device = DeviceId("n1/gpu0");
  unit.ranks[0].tp_share = unit.ranks[0].shard_ratio = first_share;
  unit.ranks[1].tp_share = unit.ranks[1].shard_ratio = 1 - first_share;
  return plan;
}

// Each sample alone, halves, and the first alone.
std::vector<std::vector<int64_t>> SimpleDivisions(int64_t batch) {
  std::vector<std::vector<int64_t>> divisions = {std::vector<int64_t>(static_cast<size_t>(batch), 1)};
  if (batch > 2) divisions.push_back({batch / 2, batch - batch / 2});
  if (batch > 3) divisions.push_back({1, batch - 1});
  return divisions;
}

absl::StatusOr<TrainingRun> Train(const PlannedJob& planned, std::optional<uint64_t> delays, Devices devices) {
  MOTLEY_RETURN_IF_ERROR(planner::ValidateForEngine(planned.plan, planned.job.model));
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<RankAssignment> assignments,
                          AssignmentsOf(planned.job.model, planned.job.config, planned.plan, FourSamples(planned.plan)));
  return TrainOnThreads(assignments, delays, devices, planned.job.overflowing_step);
}

bool HasUnitsOfSeveral(const planner::Plan& plan) {
  bool any = false;
  planner::ForEachUnit(plan, [&](const planner::UnitPlan& unit) { any |= unit.ranks.size() > 1; });
  return any;
}

uint64_t Drawn(uint64_t seed, int64_t n) { return Mix64(Mix64(seed) + static_cast<uint64_t>(n)); }

TinyJob DrawTinyJob(uint64_t drawn, int64_t n, const std::filesystem::path& folder, bool half) {
  const ModelFamily family = n % 2 == 0 ? ModelFamily::kGpt2 : ModelFamily::kLlama;
  const TinySize size = kTinySizes[drawn % std::size(kTinySizes)];
  const DType whole = n / 2 % 4 == 3 ? DType::kFloat32 : DType::kFloat64;
  const DType compute = !half ? whole : n / 2 % 2 == 0 ? DType::kBFloat16 : DType::kFloat16;
  return MakeTinyJob(family, size, compute, folder);
}

// Of a job of Llama.
TinyJob OfFamily(TinyJob job, ModelFamily family) {
  job.model.family = family;
  if (TraitsOf(family).rotary_layers == RotaryLayers::kChosen) {
    for (int64_t layer = 0; layer < job.model.num_layers; ++layer) job.model.layer_kinds.push_back({.rotary = layer % 2 == 1});
  }
  return job;
}

// Of three tokens, in every layer or in every other one.
void AddWindows(TinyJob* job, int64_t n) {
  job->model.layer_kinds.resize(static_cast<size_t>(job->model.num_layers));
  for (int64_t layer = n / 8 % 2; layer < job->model.num_layers; layer += 1 + n / 8 % 2) {
    job->model.layer_kinds[static_cast<size_t>(layer)].window = 3;
    if (TraitsOf(job->model.family).rotary_bases == RotaryBases::kByWindow) {
      job->model.layer_kinds[static_cast<size_t>(layer)].rope_theta = 100;
    }
  }
}

// For tensor-parallel units.
TinyJob ToBeCut(TinyJob job, int64_t n) {
  constexpr ModelFamily kLikeLlama[] = {ModelFamily::kQwen2, ModelFamily::kQwen3, ModelFamily::kPhi3, ModelFamily::kSmolLm3};
  if (n % 4 == 3) job = OfFamily(std::move(job), kLikeLlama[n / 8 % std::ssize(kLikeLlama)]);
  if (n % 8 == 1) AddWindows(&job, n);
  return WithHeads(std::move(job), n / 4 % 2 == 0 ? 6 : 8);
}

PlannedJob WithPlan(TinyJob job, uint64_t drawn, UnitWidths widths, int64_t pipelines = 1) {
  PlannedJob planned;
  planned.job = std::move(job);
  planned.plan = RandomEnginePlan(drawn, widths).Draw(planned.job, pipelines);
  return planned;
}

}  // namespace

int NumPlans(int daily, int all) { return std::getenv("MOTLEY_ALL_PLANS") != nullptr ? all : daily; }

PlannedJob DrawPlannedJob(uint64_t seed, int64_t n, const std::filesystem::path& folder, bool half) {
  const uint64_t drawn = Drawn(seed, n);
  TinyJob job = DrawTinyJob(drawn, n, folder, half);
  if (n % 8 == 7) job.model.family = ModelFamily::kOlmo2;   // which tensor parallelism does not cut
  if (n % 8 == 3) job.model.family = ModelFamily::kGemma3;  // nor this one
  if (n % 8 == 5 || n % 8 == 3) AddWindows(&job, n);
  return WithPlan(std::move(job), drawn, UnitWidths::kOne);
}

PlannedJob DrawTensorParallelJob(uint64_t seed, int64_t n, const std::filesystem::path& folder, bool half) {
  const uint64_t drawn = Drawn(seed, n);
  return WithPlan(ToBeCut(DrawTinyJob(drawn, n, folder, half), n), drawn, UnitWidths::kUpToFour);
}

PlannedJob DrawSeveralPipelinesJob(uint64_t seed, int64_t n, const std::filesystem::path& folder, bool half) {
  const uint64_t drawn = Drawn(seed, n);
  TinyJob job = ToBeCut(DrawTinyJob(drawn, n, folder, half), n);
  return WithPlan(std::move(job), drawn, n % 3 == 0 ? UnitWidths::kOne : UnitWidths::kUpToFour,
                  2 + static_cast<int64_t>(drawn / 64 % 2));
}

PlannedJob DrawRowsJob(uint64_t seed, int64_t n, const std::filesystem::path& folder, bool half) {
  constexpr std::array kKinds = {DrawPlannedJob, DrawTensorParallelJob, DrawSeveralPipelinesJob};
  PlannedJob planned = kKinds[static_cast<size_t>(n) % kKinds.size()](seed, n, folder, half);
  planned.job = OnRows(std::move(planned.job));
  return planned;
}

PlannedJob DrawFamilyOnRowsJob(uint64_t seed, int64_t n, const std::filesystem::path& folder, bool half) {
  const uint64_t drawn = Drawn(seed, n);
  const int64_t turn = n / std::ssize(kRowFamilies), kind = turn % 3;
  const TinySize size = kTinySizes[drawn % std::size(kTinySizes)];
  const bool odd = turn % 2 == 1;
  const DType compute = half ? (odd ? DType::kFloat16 : DType::kBFloat16) : (odd ? DType::kFloat32 : DType::kFloat64);
  TinyJob job = OfFamily(MakeTinyJob(ModelFamily::kLlama, size, compute, folder), kRowFamilies[n % std::ssize(kRowFamilies)]);
  if (kind > 0) job = WithHeads(std::move(job), odd ? 8 : 6);
  const int64_t pipelines = kind < 2 ? 1 : 2 + static_cast<int64_t>(drawn / 64 % 2);
  return WithPlan(OnRows(std::move(job)), drawn, kind > 0 ? UnitWidths::kUpToFour : UnitWidths::kOne, pipelines);
}

PlannedJob DrawWideJob(uint64_t seed, int64_t n, const std::filesystem::path& folder, UnitWidths widths, int64_t pipelines) {
  const uint64_t drawn = Drawn(seed, n);
  TinyJob job = DrawTinyJob(drawn, n, folder, /*half=*/n % 3 == 2);
  if (widths != UnitWidths::kOne) job = ToBeCut(std::move(job), n);
  return WithPlan(Widened(std::move(job)), drawn, widths, pipelines);
}

absl::StatusOr<TrainingRun> Equivalence::OneDevice(const TinyJob& job) {
  const auto found = one_device_.find(job.Name());
  if (found != one_device_.end()) return found->second;
  MOTLEY_ASSIGN_OR_RETURN(TrainingRun run, Train({job, OneDevicePlan(job)}, std::nullopt, Devices::kHosts));
  return one_device_[job.Name()] = std::move(run);
}

absl::StatusOr<Differences> Equivalence::Wobble(const TinyJob& job, bool divided) {
  const std::pair<std::string, bool> key(job.Name(), divided);
  if (const auto found = wobble_.find(key); found != wobble_.end()) return found->second;
  MOTLEY_ASSIGN_OR_RETURN(const TrainingRun whole, OneDevice(job));
  const std::vector<std::vector<int64_t>> divisions = SimpleDivisions(OneDevicePlan(job).global_batch);
  std::vector<planner::Plan> plans;
  for (const std::vector<int64_t>& microbatches : divisions) plans.push_back(OneUnitPlan(job, microbatches, 1));
  const int64_t heads = job.model.num_kv_heads;
  if (divided && heads > 1) {
    for (const int64_t first : std::set<int64_t>{1, heads / 2, heads - 1}) {
      plans.push_back(OneUnitPlan(job, divisions[0], static_cast<double>(first) / static_cast<double>(heads)));
    }
  }
  Differences wobble;
  for (planner::Plan& plan : plans) {
    MOTLEY_ASSIGN_OR_RETURN(const TrainingRun run, Train({job, std::move(plan)}, std::nullopt, Devices::kHosts));
    const Differences differences = Compare(run, whole, job.model);
    wobble.curve.Take(differences.curve.relative, differences.curve.where);
    wobble.state.Take(differences.state.relative, differences.state.where);
  }
  return wobble_[key] = wobble;
}

absl::StatusOr<Differences> Equivalence::Run(const PlannedJob& planned, uint64_t seed) {
  MOTLEY_ASSIGN_OR_RETURN(const TrainingRun expected, OneDevice(planned.job));
  MOTLEY_ASSIGN_OR_RETURN(const TrainingRun run, Train(planned, seed, devices_));
  Differences differences = Compare(run, expected, planned.job.model);
  // Cards that are not there share the process's memory, those that are there one card's.
  if (devices_ == Devices::kHosts) {
    MOTLEY_ASSIGN_OR_RETURN(const std::vector<planner::MemoryByPurpose> predicted, predictions_.Of(planned));
    for (size_t r = 0; r < predicted.size(); ++r) {
      const RankMemory rank{predicted[r], run.peak_bytes[r], run.host_bytes[r]};
      differences.memory.Take(
          std::abs(rank.Excess(kUncountedBytes)),
          absl::StrCat("memory of rank ", r, " (", rank.measured_bytes, " bytes, predicted ", predicted[r].total(), ")"));
    }
  }
  return differences;
}

std::string Equivalence::Complaint(const PlannedJob& planned, uint64_t seed) {
  const absl::StatusOr<Differences> differences = Run(planned, seed);
  if (!differences.ok()) return differences.status().ToString();
  const bool divided = HasUnitsOfSeveral(planned.plan);
  Limits limits = LimitsOf(planned.plan.dtype, divided);
  // Where a gradient's norm leaps, roundings that differ leap with it.
  const bool beyond = differences->curve.relative > limits.curve || differences->state.relative > limits.state;
  if (IsHalf(planned.plan.dtype) && beyond) {
    const absl::StatusOr<Differences> wobble = Wobble(planned.job, divided);
    if (!wobble.ok()) return wobble.status().ToString();
    limits.curve = std::max(limits.curve, kMostWobbles * wobble->curve.relative);
    limits.state = std::max(limits.state, kMostStateWobbles * wobble->state.relative);
  }
  return motley::engine::Complaint(*differences, limits);
}

std::string ToText(const PlannedJob& planned) {
  return absl::StrCat(planned.job.Name(), "\n", planner::LayoutText(planned.plan), planner::ToJson(planned.plan), "\n");
}

}  // namespace motley::engine
