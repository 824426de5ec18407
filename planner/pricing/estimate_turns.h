// 1F1B and zero bubble as a recurrence over the stages' passes: the part of the estimator (evaluate.h) for pipelines that run
// forward and backward in turn. What a closed formula cannot say: how far stages with unlike microbatches, slow borders and their
// own limits of microbatches in flight make each other wait.
#pragma once

#include <cstdint>
#include <vector>

namespace motley::planner {

// One stage. Rounds cut the pipeline's batch into equal parts; stages may have different numbers of them.
struct TurnStage {
  int64_t rounds = 1;
  int64_t in_flight = 1;        // forwards without their backward, at most; a stage that waits for more than the ones before
                                // let through makes those go beyond theirs
  double forward_seconds = 0;   // of a round
  double backward_seconds = 0;  // of a round; zero bubble: of the inputs' gradient
  double ahead_seconds = 0;     // of the backward: what is recomputed before the gradient comes
  double weight_seconds = 0;    // zero bubble: of the weights' gradient, `weight_delay` backwards later
  int64_t weight_delay = 0;
  double start_seconds = 0;           // before the first forward may begin
  double border_seconds = 0;          // of the whole batch to the next stage, one way
  double border_latency_seconds = 0;  // of each transfer
  bool operator==(const TurnStage&) const = default;
};

// When each stage has ended its last pass. A microbatch goes as soon as its stage's order lets it and its samples have arrived; a
// stage sends one transfer after the other, to both sides. Beyond 192 rounds the first 128 are followed and the rest go on at the
// pace of the second 64, where all stages' rounds are in step (equal, or a half, a quarter); stages that are not are followed to
// the end. O(rounds x stages).
std::vector<double> EndsOfTurns(const std::vector<TurnStage>& stages);

}  // namespace motley::planner
