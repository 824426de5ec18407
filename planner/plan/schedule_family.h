// The families of schedules and what is true of each: a row of traits. A new family is a row here, an order in
// planner/plan/family_order and a row of docs/inside/simulator.md's table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
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
  // Two ministages a stage in a V, and no bubble but the fill of one ministage where forward and the two halves of the backward
  // take as long; keeps what 1F1B's first stage keeps (ZB-V).
  kZeroBubbleV,
};

// How virtual stages go over the stages (planner/plan/virtual_stages.h).
enum class VirtualStageMap {
  kRoundRobin,  // 0 1 2 0 1 2: ministage i of every stage before ministage i + 1 of any
  kV,           // 0 1 2 2 1 0: to and fro, so that the first stage holds the embedding and the head
};

struct ScheduleTraits {
  ScheduleFamily family;
  std::string_view name;
  bool by_ministage;     // all microbatches pass a ministage before any enters the next
  bool keeps_all;        // the last forward comes before the first backward, so that all activations are kept
  bool alternates;       // forwards and backwards take turns: ranks go at the pace of the pipeline, not at their own
  bool takes_in_flight;  // follows StagePlan::in_flight; without it 1F1B's own
  bool splits_backward;  // the gradients of the weights apart from those of the input
  bool fixed_order;      // has no limit in flight that mending could raise
  size_t ministages;     // that each of several stages has; 0 = any number
  VirtualStageMap map;
};

// Every family has a row.
const ScheduleTraits& TraitsOf(ScheduleFamily family);

// Backwards by which a stage puts off the gradients of the weights, where no fixed order says when they come.
int64_t WeightsPutOff(ScheduleFamily family, int64_t stage);

// The names of those of which it holds: "layered, gpipe and 1f1b".
std::string NamesOf(absl::FunctionRef<bool(const ScheduleTraits&)> holds, const char* conjunction);

std::string_view ScheduleName(ScheduleFamily schedule);  // "layered", "gpipe", "1f1b", "interleaved", "zero_bubble", "zb_v"
// INVALID_ARGUMENT: lists the names, or the one that was meant.
absl::StatusOr<ScheduleFamily> ParseSchedule(std::string_view name);

}  // namespace motley::planner
