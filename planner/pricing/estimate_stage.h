// What the estimator (evaluate.h) knows of a stage: seconds of its chunks and of its transfers, summed once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/pricing/stage_work.h"
#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// As the lowering overlaps the last backward's reductions, and the first forward's gathers.
inline constexpr double kReductionPieces = 16;
// What transfers of a whole stage, a piece after the other, add after a pass that they follow, or before one that follows them.
inline double Unhidden(double transfers, double pass) {
  return std::max(transfers / kReductionPieces, transfers - (1 - 1 / kReductionPieces) * pass);
}

// One pass of a chunk: all microbatches of the slowest actor, the first one of the quickest, the last one of the slowest.
struct ChunkSeconds {
  double all = 0, first = 0, last = 0;
};

// Equal microbatches of an actor that follow each other.
struct MicrobatchRun {
  int64_t samples = 0, count = 0;  // of a microbatch; microbatches
};

// A microbatch's passes of a chunk.
struct PassesSeconds {
  double forward = 0, backward = 0;
  double recompute = 0;  // of the backward, what is computed again before it
  double copy = 0;       // offloaded activations: to the host, and back before the backward
};

struct ActorSeconds {
  const ActorView* actor = nullptr;
  std::vector<MicrobatchRun> runs;
  std::vector<PassesSeconds> passes;  // by chunk and, in it, by run
};

struct StageEstimate {
  StageWork work;
  std::vector<ActorSeconds> actors;             // that compute
  std::vector<ChunkSeconds> forward, backward;  // by chunk; backward with recomputation
  // By chunk. What waits in host memory: its parameters that come from there, its summed gradients that go there.
  std::vector<double> gather_seconds, reduce_seconds, fetch_seconds, leave_seconds;
  double input_part = 1;     // of a backward without recomputation: the gradient of the input, where that is an instruction
  double reduce_all = 0;     // of the whole stage at once
  double start_seconds = 0;  // of the step: until parameters let a forward begin
  double optimizer = 0;      // of the slowest actor, its host copies included
  int64_t rounds = 0;        // the most microbatches of a unit
  bool in_step[2] = {false, false};  // forward, backward: ranks meet in every round
  // Of ministages that step in turn, behind their own reductions: the last one's.
  double last_step = 0;
  double hidden = 1;  // of its collectives: Links::HiddenPart
  // Blocks of layers that a backward computes one by one (model_blocks.h): usually, and in the last round. Only the first one's
  // recomputation does not wait for the gradient that comes.
  int64_t blocks = 1, last_blocks = 1;
  bool copies() const { return !actors.empty() && actors.front().passes.front().copy > 0; }
  // The part of a chunk's recomputation that comes before the gradient.
  double PartAhead(size_t chunk, bool last) const {
    const int64_t layers = std::max<int64_t>(1, work.chunks[chunk].part.layers);
    return 1 / static_cast<double>(std::min(layers, last ? last_blocks : blocks));
  }
};

// Seconds of compute and a transfer beside it, which costs the compute all but the part `hidden` (Links::HiddenPart) of it.
double Hidden(double compute, double transfer, double hidden);
StageEstimate EstimateStage(const Setting& setting, const PlanView& view, int stage);
// Bytes of parameters that the stage holds of `part`.
double PartBytes(const Setting& setting, const StageView& stage, const Part& part);

}  // namespace motley::planner
