// Whether plans train like one device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "tests/worker/engine/equivalence/difference.h"
#include "tests/worker/engine/equivalence/memory_predictions.h"
#include "tests/worker/engine/equivalence/planned_job.h"
#include "tests/worker/engine/equivalence/random_plans.h"
#include "tests/worker/engine/equivalence/tiny_job.h"

namespace motley::engine {

// How many plans a test takes; with MOTLEY_ALL_PLANS in the environment all.
int NumPlans(int daily, int all);

// Number `n` of a seed: of four one in float32, the others in float64; both models alike. With `half` all in half types, both
// alike.
PlannedJob DrawPlannedJob(uint64_t seed, int64_t n, const std::filesystem::path& folder, bool half = false);
// The same with tensor-parallel units: models of all families with six or eight heads of keys and values.
PlannedJob DrawTensorParallelJob(uint64_t seed, int64_t n, const std::filesystem::path& folder, bool half = false);
// Two or three pipelines, in two of three with tensor-parallel units.
PlannedJob DrawSeveralPipelinesJob(uint64_t seed, int64_t n, const std::filesystem::path& folder, bool half = false);
// One of these three kinds on packed rows.
PlannedJob DrawRowsJob(uint64_t seed, int64_t n, const std::filesystem::path& folder, bool half = false);
// On packed rows, of a family that is compared with PyTorch on nothing else (kRowFamilies in turn; three kinds of plans and two
// types of each in six turns). OLMo 2 has no tensor-parallel units.
PlannedJob DrawFamilyOnRowsJob(uint64_t seed, int64_t n, const std::filesystem::path& folder, bool half = false);
inline constexpr ModelFamily kRowFamilies[] = {ModelFamily::kQwen3, ModelFamily::kSmolLm3, ModelFamily::kOlmo2,
                                               ModelFamily::kPhi3};
// One of them for wide models, every third in a half type: jobs whose bytes are looked at, too short to compare what they
// compute.
PlannedJob DrawWideJob(uint64_t seed, int64_t n, const std::filesystem::path& folder, UnitWidths widths = UnitWidths::kOne,
                       int64_t pipelines = 1);

// Not thread-safe. Trains each job once on one device of the host and keeps what came out.
class Equivalence {
 public:
  // What plans run on.
  explicit Equivalence(Devices devices = Devices::kHosts) : devices_(devices) {}

  // Errors of the run.
  absl::StatusOr<TrainingRun> OneDevice(const TinyJob& job);
  // What roundings alone do in a half type: how far one device's curve and arrays are at most from those of the simplest plans,
  // which divide the batch in other ways on one rank and, `divided`, take a sample at a time on two with unlike tensor-parallel
  // shares.
  absl::StatusOr<Differences> Wobble(const TinyJob& job, bool divided);
  // Lowers and trains the plan, with its lanes delayed by `seed`. Errors of ValidateForEngine, the lowering, the checks, the run.
  absl::StatusOr<Differences> Run(const PlannedJob& planned, uint64_t seed);
  // Empty: the plan trains like one device. Else what is wrong, in a line.
  std::string Complaint(const PlannedJob& planned, uint64_t seed);

 private:
  const Devices devices_;
  std::map<std::string, TrainingRun> one_device_;
  std::map<std::pair<std::string, bool>, Differences> wobble_;
  MemoryPredictions predictions_;
};

// The job and the plan: its text for people, and its JSON to be given to another run.
std::string ToText(const PlannedJob& planned);

}  // namespace motley::engine
