#include "worker/engine/profiler/compute_profiler.h"

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/lanes/lane_timer.h"
#include "worker/engine/profiler/optimizer_profiler.h"
#include "worker/engine/profiler/soak.h"
#include "worker/engine/profiler/timed_runs.h"
#include "worker/engine/profiler/unit_profiler.h"

namespace motley::engine {
namespace {

constexpr double kEmbeddingBudgetSeconds = 0.3;
constexpr double kLayerBudgetSeconds = 2.5;
constexpr double kHeadBudgetSeconds = 0.8;
// Longer for devices with a declared speed: a node's are measured at the same time, those at the host's speed one by one.
constexpr double kDeclaredBudget = 1.6;
// A card repeats its runs, so that its clocks are those of its work.
constexpr double kSoakedBudget = 2;

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
  Soak(rank);
  const bool soaked = backend.soak() > absl::ZeroDuration();
  const double budget = assignment.device.flops_per_second > 0 ? kDeclaredBudget : soaked ? kSoakedBudget : 1;
  profile.embedding = MeasureUnit(rank, UnitKind::kEmbedding, budget * kEmbeddingBudgetSeconds);
  profile.layer = MeasureUnit(rank, UnitKind::kLayer, budget * kLayerBudgetSeconds);
  profile.head = MeasureUnit(rank, UnitKind::kHead, budget * kHeadBudgetSeconds);
  const OptimizerTimes optimizer = MeasureOptimizer(assignment, *precision, backend, pacer);
  profile.optimizer_seconds_per_element = optimizer.seconds_per_element;
  profile.step_overhead_seconds = optimizer.launch_seconds;
  // By now the card has the kernels of all units, and cuBLAS its workspace among the allocator's bytes.
  if (const int64_t beside = backend.BytesBesideAllocator(); beside > 0) {
    profile.context_bytes = backend.CurrentBytes() - before + beside;
  }
  profile.profile_seconds = absl::ToDoubleSeconds(clock.Now() - start);
  return profile;
}

}  // namespace motley::engine
