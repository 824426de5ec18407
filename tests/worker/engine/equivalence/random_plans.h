// Random plans of what the engine runs: one pipeline of single devices, tensor-parallel units among them, several pipelines.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "common/model/model.h"
#include "common/model/parameters.h"
#include "planner/plan/plan.h"
#include "tests/worker/engine/equivalence/tiny_job.h"

namespace motley::engine {

// kUpToFour: in half of the stages units of two to four ranks, whose shares are any whole parts of the model; in a third of these
// each unit is of another width and other shares.
enum class UnitWidths { kOne, kUpToFour };

// Draws everything that ValidateForEngine lets through, over one to eight devices: stages and ministages of unlike sizes, the
// schedules, ZeRO stages, shares with zeros, owned ranges in any order, ranks without samples, microbatches that do not line up,
// in_flight, recompute by rank and operator. The same plan for the same seed on every machine.
class RandomEnginePlan {
 public:
  explicit RandomEnginePlan(uint64_t seed, UnitWidths widths = UnitWidths::kOne) : random_(seed), widths_(widths) {}
  // `pipelines`: of unlike shapes, on at least as many devices.
  planner::Plan Draw(const TinyJob& job, int64_t pipelines = 1);

 private:
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool Sometimes(int64_t one_in) { return Below(one_in) == 0; }
  // `total` in `parts` numbers of at least `least`, any of them as likely large as small.
  std::vector<int64_t> Cut(int64_t total, int64_t parts, int64_t least);
  planner::PipelinePlan DrawPipeline(const TinyJob& job, const planner::Plan& plan, int64_t devices, int64_t batch);
  void DrawBatches(planner::ScheduleFamily schedule, int64_t batch, int64_t stages, int64_t rounds, planner::StagePlan& stage);
  // What a unit of several sums between its segments is kept.
  planner::OpSet DrawRecompute(const ModelShape& model, bool sums);
  // Of so many devices; those that do not make up a unit are left out.
  void DrawUnits(const ModelShape& model, int64_t devices, planner::StagePlan& stage);
  void DrawShares(planner::StagePlan& stage);
  void DrawOwnership(const ModelShape& model, planner::Plan& plan);

  std::mt19937_64 random_;
  const UnitWidths widths_;
};

}  // namespace motley::engine
