// One finished optimizer step, as the step line shows it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/base/memory_by_purpose.h"

namespace motley {

// Of one rank, as it reported after its newest step; 0 = it has not.
struct RankMemory {
  DeviceId device;
  int64_t held_bytes = 0, peak_bytes = 0;     // of the device: when the step began, at most
  int64_t host_bytes = 0;                     // of the host
  std::optional<MeasuredMemory> memory = {};  // of the device by purpose; nothing: not measured
  friend bool operator==(const RankMemory&, const RankMemory&) = default;
};

struct StepStats {
  int64_t step = 0;  // 1-based: optimizer steps done
  Epoch epoch;
  double loss = 0, grad_norm = 0;  // NaN or infinite where a step was skipped
  double lr = 0;
  double tokens_per_second = 0;
  int64_t peak_memory_bytes = 0;  // of the device that is fullest relative to its own capacity
  double peak_memory_share = 0;
  int64_t host_memory_bytes = 0, planned_host_memory_bytes = 0;  // of all ranks together, for what waits in their hosts' memory
  double step_seconds = 0, predicted_step_seconds = 0;
  double elapsed_seconds = 0;  // since the job began
  double remaining_seconds = 0;
  std::optional<double> validation_loss;  // NaN or infinite where the weights have diverged
  // Of that loss, where its data are text and say its bytes (loss_figures.h). Its perplexity follows from it alone.
  std::optional<double> validation_bits_per_byte;
  double lateness_seconds = 0;    // how late the host made emulated devices, the worst rank
  double loss_scale = 0;          // of float16: what the loss was multiplied by in this step; 0 = nothing
  bool skipped = false;           // a scaled gradient overflowed: nothing was applied
  std::vector<RankMemory> ranks;  // by rank; of a job's newest step alone
};

}  // namespace motley
