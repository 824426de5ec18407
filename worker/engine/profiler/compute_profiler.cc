#include "worker/engine/profiler/compute_profiler.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/operators.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/model/optimizer.h"
#include "worker/engine/model/unit_bench.h"

namespace motley::engine {
namespace {

constexpr double kEmbeddingBudgetSeconds = 0.3;
constexpr double kLayerBudgetSeconds = 2.0;
constexpr double kHeadBudgetSeconds = 0.7;
// The host disturbs single runs; the fastest of a few counts. A device whose declared time was met needs one.
constexpr int kRepeats = 3;
constexpr int64_t kOptimizerElements = 1 << 16;

// Seconds of one instruction of `flops` whose real work is `run`: the declared time, and what the host added.
double TimeOnce(DeviceBackend& backend, ComputePacer& pacer, double flops, const std::function<void()>& run) {
  backend.Synchronize();
  const double before = pacer.busy_seconds() + pacer.lateness_seconds();
  pacer.Begin();
  run();
  backend.Synchronize();
  pacer.End(flops);
  return pacer.busy_seconds() + pacer.lateness_seconds() - before;
}

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

class UnitProfiler {
 public:
  UnitProfiler(const RankAssignment& assignment, Precision precision, int64_t cap_bytes, DeviceBackend& backend, UnitModel& model,
               ComputePacer& pacer)
      : assignment_(assignment),
        backend_(backend),
        precision_(precision),
        seq_len_(assignment.config.training.seq_len),
        cap_bytes_(cap_bytes),
        model_(model),
        pacer_(pacer) {}

  UnitProfile Measure(UnitKind kind, double budget_seconds) {
    UnitBench bench(model_, assignment_.model, seq_len_, precision_, backend_.tensors(), kind);
    // Unmeasured: libraries set themselves up at the first call.
    bench.Prepare(1);
    bench.Forward();
    bench.Backward();
    bench.Clear();

    const absl::Duration start = clock_.Now();
    const int64_t largest = std::max<int64_t>(2, assignment_.config.training.global_batch_size);
    UnitProfile profile;
    peak_bytes_ = 0;
    for (int64_t samples = 1; samples <= largest; samples *= 2) {
      const absl::Duration point_start = clock_.Now();
      try {
        profile.points.push_back(MeasurePoint(bench, kind, samples));
      } catch (const c10::OutOfMemoryError&) {
        if (profile.points.empty()) throw;
        bench.Clear();
        break;
      }
      // Larger microbatches would only eat the host's memory: the device holds none of them.
      if (cap_bytes_ > 0 && peak_bytes_ > cap_bytes_) break;
      const absl::Duration now = clock_.Now(), next = 2 * (now - point_start);
      if (profile.points.size() >= 2 && now - start + next > absl::Seconds(budget_seconds)) break;
    }
    if (profile.points.size() == 1) profile.points.push_back(Doubled(profile.points.front()));
    return profile;
  }

 private:
  ComputePoint MeasurePoint(UnitBench& bench, UnitKind kind, int64_t samples) {
    const double forward_flops = ForwardFlops(assignment_.model, kind, samples, seq_len_);
    const double backward_flops = BackwardFlops(assignment_.model, kind, samples, seq_len_);
    ComputePoint point;
    point.microbatch = samples;
    point.forward_seconds = point.backward_seconds = std::numeric_limits<double>::infinity();
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const double lateness_before = pacer_.lateness_seconds();
      bench.Prepare(samples);
      const int64_t before = backend_.CurrentBytes();
      backend_.ResetPeak();
      const double forward = TimeOnce(backend_, pacer_, forward_flops, [&] { bench.Forward(); });
      const int64_t kept = backend_.CurrentBytes() - before;
      const int64_t forward_workspace = backend_.PeakBytes() - backend_.CurrentBytes();
      peak_bytes_ = std::max(peak_bytes_, backend_.PeakBytes());

      const int64_t at_backward = backend_.CurrentBytes();
      backend_.ResetPeak();
      const double backward = TimeOnce(backend_, pacer_, backward_flops, [&] { bench.Backward(); });
      const int64_t backward_workspace = backend_.PeakBytes() - at_backward - bench.input_grad_bytes();
      peak_bytes_ = std::max(peak_bytes_, backend_.PeakBytes());

      point.forward_seconds = std::min(point.forward_seconds, forward);
      point.backward_seconds = std::min(point.backward_seconds, backward);
      point.saved_bytes = kept - bench.output_bytes() + bench.input_bytes();
      point.workspace_bytes = std::max<int64_t>({forward_workspace, backward_workspace, 0});
      bench.Clear();
      const bool declared_time_met = assignment_.device.flops_per_second > 0 && pacer_.lateness_seconds() == lateness_before;
      if (declared_time_met) break;
    }
    return point;
  }

  // The planner's straight line needs a second point; by its bytes it will not use a microbatch of that size.
  static ComputePoint Doubled(ComputePoint point) {
    point.microbatch *= 2;
    point.forward_seconds *= 2;
    point.backward_seconds *= 2;
    point.saved_bytes *= 2;
    point.workspace_bytes *= 2;
    return point;
  }

  const RankAssignment& assignment_;
  DeviceBackend& backend_;
  const Precision precision_;
  const int64_t seq_len_;
  const int64_t cap_bytes_;  // of the device; 0 = none
  UnitModel& model_;
  ComputePacer& pacer_;
  int64_t peak_bytes_ = 0;  // of all points of the unit under way
  const SystemClock clock_;
};

void MeasureOptimizer(const RankAssignment& assignment, DType dtype, DeviceBackend& backend, ComputePacer& pacer,
                      ComputeProfile& profile) {
  const auto type = at::TensorOptions().dtype(ScalarTypeOf(dtype)).device(backend.tensors());
  const int64_t elements = std::min(kOptimizerElements, NumParameters(assignment.model));
  at::Tensor parameter = at::zeros({elements}, type), gradient = at::full({elements}, 1e-3, type);
  at::Tensor exp_avg = at::zeros({elements}, type), exp_avg_sq = at::zeros({elements}, type);
  double best = std::numeric_limits<double>::infinity();
  for (int step = 1; step <= kRepeats; ++step) {
    best = std::min(best, TimeOnce(backend, pacer, kOptimizerFlopsPerElement * static_cast<double>(elements), [&] {
                      AdamWStep(assignment.config.optimizer, 1e-3, step, 1.0, gradient, parameter, exp_avg, exp_avg_sq);
                    }));
  }
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
  UnitModel model(assignment.model, assignment.config.training.seq_len, precision->compute, backend.tensors());
  profile.context_bytes = backend.CurrentBytes() - before;
  UnitProfiler units(assignment, *precision, lift.cap_bytes(), backend, model, pacer);
  profile.embedding = units.Measure(UnitKind::kEmbedding, kEmbeddingBudgetSeconds);
  profile.layer = units.Measure(UnitKind::kLayer, kLayerBudgetSeconds);
  profile.head = units.Measure(UnitKind::kHead, kHeadBudgetSeconds);
  MeasureOptimizer(assignment, precision->master, backend, pacer, profile);
  profile.profile_seconds = absl::ToDoubleSeconds(clock.Now() - start);
  return profile;
}

}  // namespace motley::engine
