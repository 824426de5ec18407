// What a device of a live cluster is to run when its memory is probed (Poplar, algorithm 1), and what the ledger says of it: the
// samples as one microbatch, through all layers, nothing recomputed and nothing on the host. Pure. docs/inside/profiles.md
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/program/ownership.h"
#include "common/program/program.h"
#include "planner/live/live_inputs.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// A probe tries no more.
inline constexpr int64_t kMostProbedSamples = 512;
// What a plan leaves free where bytes are trusted. The ledger allows what the rest holds.
inline constexpr double kProbeReserve = 0.01;

struct TrialPlan {
  Program program;
  Ownership ownership;
  MemoryByPurpose memory;  // the ledger's
};

// `input`: one device with its profile; its model has the layers that are tried, and its profile is of a model of as many or
// more. The device's limit does not count. Errors of DescribeLive and Price.
absl::StatusOr<TrialPlan> PlanTrial(const PlannerInput& input, int64_t samples);

// Whether the ledger would allow this many bytes on the device.
bool LedgerAllows(const DeviceDescription& device, int64_t bytes);

// The most layers of which the ledger allows one sample, below those of the model. 0: not even one.
absl::StatusOr<int64_t> MostLayers(const PlannerInput& input);

// The model cut off behind so many layers.
ModelShape FirstLayers(ModelShape model, int64_t layers);

}  // namespace motley::planner
