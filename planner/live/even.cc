#include "planner/live/even.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/live/device_memory.h"
#include "planner/live/memory_ledger.h"
#include "planner/live/plan_builder.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

// Bytes that a device lacks for its batch and an equal shard; 0 or less = fits.
int64_t MissingBytes(const CostModel& cost, int rank, int64_t batch, int64_t microbatch, bool recompute) {
  const int64_t m = std::min(batch, microbatch);
  const int64_t state = (TotalStateBytes(cost) + cost.world() - 1) / cost.world();
  const int64_t activations = batch == 0 ? 0 : PeakOfTerms(LayeredMemoryTerms(cost, rank, recompute, m), batch, m);
  return state + activations - FreeBytes(cost, rank);
}

}  // namespace

absl::StatusOr<Plan> PlanEven(const PlannerInput& input, const CostModel& cost) {
  const int64_t batch = input.config.training.global_batch_size, world = cost.world();
  std::vector<int64_t> batches;
  for (int64_t r = 0; r < world; ++r) batches.push_back(batch / world + (r < batch % world ? 1 : 0));
  int64_t largest_power = 1;
  while (2 * largest_power <= batches.front()) largest_power *= 2;

  int lacking = -1;  // of the newest, most frugal attempt
  int64_t missing = 0;
  for (const bool recompute : {false, true}) {
    if (input.config.planner.recompute == (recompute ? "none" : "full")) continue;
    for (int64_t m = largest_power; m >= 1; m /= 2) {
      lacking = -1;
      for (int r = 0; r < cost.world() && lacking < 0; ++r) {
        missing = MissingBytes(cost, r, batches[static_cast<size_t>(r)], m, recompute);
        if (missing > 0) lacking = r;
      }
      if (lacking >= 0) continue;
      std::vector<DeviceDuty> duties;
      for (size_t r = 0; r < batches.size(); ++r) {
        duties.push_back({r, batches[r], std::min(m, batches[r]), recompute, 1.0 / static_cast<double>(world)});
      }
      return BuildPlan(input, cost, "even", duties, {});
    }
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the even split does not fit: ", cost.device(lacking).id.value(), " lacks ", BytesText(missing), " (", missing,
                   " bytes) of its ", BytesText(cost.UsableBytes(lacking)), " usable for ", batches[static_cast<size_t>(lacking)],
                   " samples one by one and 1/", world,
                   " of the training state; use strategy cephalo, a smaller global batch, or devices with more memory"));
}

}  // namespace motley::planner
