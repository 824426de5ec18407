// The families of schedules and what is true of each: a row of traits. A new family is a row here, an order in
// planner/scheduling/family_order and a row of docs/simulator.md's table.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"

namespace motley::planner {

enum class ScheduleFamily {
  // All microbatches of a ministage before the next ministage, forward and backward (Cephalo section 2.2: ministage = layer;
  // Zorse section 3.1.1). With ZeRO 3 every layer is gathered once forward and once backward, whatever the microbatches.
  kLayered,
  // All forwards of a stage, then all backwards. One stage: gradient accumulation with activations kept.
  kGPipe,
  // One forward, one backward, at most (stages - s) microbatches in flight on stage s. One stage: plain gradient accumulation,
  // with ZeRO 3 gathering every layer for every microbatch (FSDP, Poplar).
  k1F1B,
  // 1F1B over ministages (Megatron's virtual stages).
  kInterleaved,
  // 1F1B with the backward of the weights deferred into the bubbles (ZB-H1).
  kZeroBubble,
};

struct ScheduleTraits {
  ScheduleFamily family;
  std::string_view name;
  bool by_ministage;     // all microbatches pass a ministage before any enters the next
  bool keeps_all;        // the last forward comes before the first backward, so that all activations are kept
  bool alternates;       // forwards and backwards take turns: ranks go at the pace of the pipeline, not at their own
  bool takes_in_flight;  // follows StagePlan::in_flight; without it 1F1B's own
  bool splits_backward;  // the gradients of the weights apart from those of the input
};

// Every family has a row.
const ScheduleTraits& TraitsOf(ScheduleFamily family);

std::string_view ScheduleName(ScheduleFamily schedule);  // "layered", "gpipe", "1f1b", "interleaved", "zero_bubble"
// INVALID_ARGUMENT: lists the names, or the one that was meant.
absl::StatusOr<ScheduleFamily> ParseSchedule(std::string_view name);

}  // namespace motley::planner
