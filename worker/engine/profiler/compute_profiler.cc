#include "worker/engine/profiler/compute_profiler.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/operators.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/lanes/lane_timer.h"
#include "worker/engine/model/optimizer.h"
#include "worker/engine/profiler/timed_runs.h"
#include "worker/engine/profiler/unit_profiler.h"

namespace motley::engine {
namespace {

constexpr double kEmbeddingBudgetSeconds = 0.3;
constexpr double kLayerBudgetSeconds = 2.5;
constexpr double kHeadBudgetSeconds = 0.8;
// Longer for devices with a declared speed: a node's are measured at the same time, those at the host's speed one by one.
constexpr double kDeclaredBudget = 1.6;
// A card does the few in the time of its launch, and says nothing of an element.
constexpr int64_t kOptimizerElements = 1 << 16, kOptimizerElementsOnStream = 1 << 22;

// While it lives, the device refuses nothing: what one layer needs is known even where it does not fit, and the planner judges.
class CapLift {
 public:
  CapLift(DeviceBackend& backend, const DeviceId& device)
      : backend_(backend), device_(device.value()), cap_bytes_(backend.MemoryCapBytes()) {
    backend_.SetMemoryCap(0, device_);
  }
  ~CapLift() { backend_.SetMemoryCap(cap_bytes_, device_); }
  CapLift(const CapLift&) = delete;
  CapLift& operator=(const CapLift&) = delete;
  int64_t cap_bytes() const { return cap_bytes_; }  // 0 = there was none

 private:
  DeviceBackend& backend_;
  const std::string device_;
  const int64_t cap_bytes_;
};

void MeasureOptimizer(const RankAssignment& assignment, DType dtype, DeviceBackend& backend, ComputePacer& pacer,
                      ComputeProfile& profile) {
  const auto type = at::TensorOptions().dtype(ScalarTypeOf(dtype)).device(backend.tensors());
  at::Tensor parameter, gradient, exp_avg, exp_avg_sq;
  LaneTimer timer(backend.StreamOf(Lane::kCompute), pacer);
  const int64_t most = timer.on_stream() ? kOptimizerElementsOnStream : kOptimizerElements;
  const int64_t elements = std::min(most, NumParameters(assignment.model));
  timer.Settle();
  timer.Run([&] {
    parameter = at::zeros({elements}, type), gradient = at::full({elements}, 1e-3, type);
    exp_avg = at::zeros({elements}, type), exp_avg_sq = at::zeros({elements}, type);
    return absl::OkStatus();
  });
  std::vector<LaneTime> times;
  const int warm_ups = WarmUpsOf(timer);
  for (int step = 1; step <= warm_ups + kRepeats; ++step) {
    const LaneTime time = timer.Measure(kOptimizerFlopsPerElement * static_cast<double>(elements), [&, step] {
      AdamWStep(assignment.config.optimizer, 1e-3, step, 1.0, gradient, parameter, exp_avg, exp_avg_sq);
      return absl::OkStatus();
    });
    if (step > warm_ups) times.push_back(time);
  }
  Check(timer.Await());
  double best = std::numeric_limits<double>::infinity();
  for (const LaneTime& time : times) best = std::min(best, time.seconds());
  // The declared launch falls once a step and not by element.
  const double launch = assignment.device.flops_per_second > 0 ? absl::ToDoubleSeconds(assignment.device.launch) : 0;
  profile.optimizer_seconds_per_element = (best - launch) / static_cast<double>(elements);
  profile.step_overhead_seconds = launch;
}

}  // namespace

ComputeProfile ProfileUnits(const RankAssignment& assignment, DeviceBackend& backend, ComputePacer& pacer) {
  const SystemClock clock;
  const absl::Duration start = clock.Now();
  const auto precision = PrecisionOf(assignment.config.training);
  TORCH_CHECK(precision.ok(), std::string(precision.status().message()));
  const CapLift lift(backend, assignment.device.id);

  ComputeProfile profile;
  profile.device = assignment.device.id;
  profile.digest =
      ComputeProfileDigest(assignment.device, assignment.model, assignment.config.training.seq_len, precision->compute);
  const int64_t before = backend.CurrentBytes();
  std::optional<UnitModel> model;  // its tables are made where they are used
  LaneTimer timer(backend.StreamOf(Lane::kCompute), pacer);
  timer.Run([&] {
    model.emplace(assignment.model, assignment.config.training.seq_len, precision->compute, backend.tensors());
    return absl::OkStatus();
  });
  Check(timer.Await());
  profile.context_bytes = backend.CurrentBytes() - before;
  std::optional<UnitModel> part;
  if (const ModelSlice slice = SliceToMeasure(assignment.model); !slice.whole()) {
    timer.Run([&] {
      part.emplace(assignment.model, assignment.config.training.seq_len, precision->compute, backend.tensors(), slice);
      return absl::OkStatus();
    });
    Check(timer.Await());
  }
  const ProfiledRank rank{assignment, *precision, backend, pacer, lift.cap_bytes(), *model, part ? &*part : nullptr};
  const double budget = assignment.device.flops_per_second > 0 ? kDeclaredBudget : 1;
  profile.embedding = MeasureUnit(rank, UnitKind::kEmbedding, budget * kEmbeddingBudgetSeconds);
  profile.layer = MeasureUnit(rank, UnitKind::kLayer, budget * kLayerBudgetSeconds);
  profile.head = MeasureUnit(rank, UnitKind::kHead, budget * kHeadBudgetSeconds);
  MeasureOptimizer(assignment, precision->master, backend, pacer, profile);
  profile.profile_seconds = absl::ToDoubleSeconds(clock.Now() - start);
  return profile;
}

}  // namespace motley::engine
