#include "worker/engine/profiler/compute_profiler.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/model/operators.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/lanes/lane_timer.h"
#include "worker/engine/model/optimizer.h"
#include "worker/engine/model/unit_bench.h"

namespace motley::engine {
namespace {

constexpr double kEmbeddingBudgetSeconds = 0.3;
constexpr double kLayerBudgetSeconds = 2.0;
constexpr double kHeadBudgetSeconds = 0.7;
// The host disturbs single runs; the fastest of a few counts. A device whose declared time was met needs one.
constexpr int kRepeats = 3;
// On a stream, before those that count: they follow each other without a wait, and this one fills the stream.
constexpr int kWarmUps = 1;
// A card does the few in the time of its launch, and says nothing of an element.
constexpr int64_t kOptimizerElements = 1 << 16, kOptimizerElementsOnStream = 1 << 22;

void Check(const absl::Status& status) { TORCH_CHECK(status.ok(), std::string(status.message())); }

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
    std::optional<UnitBench> bench;
    LaneTimer warm_up(backend_.StreamOf(Lane::kCompute), pacer_);
    // Unmeasured: libraries set themselves up at the first call.
    warm_up.Run(Done([&] {
      bench.emplace(model_, assignment_.model, seq_len_, precision_, backend_.tensors(), kind);
      bench->Prepare(1);
      bench->Forward();
      bench->Backward();
      bench->Clear();
    }));
    Check(warm_up.Await());

    const absl::Duration start = clock_.Now();
    const int64_t largest = std::max<int64_t>(2, assignment_.config.training.global_batch_size);
    UnitProfile profile;
    peak_bytes_ = 0;
    for (int64_t samples = 1; samples <= largest; samples *= 2) {
      const absl::Duration point_start = clock_.Now();
      try {
        profile.points.push_back(MeasurePoint(*bench, kind, samples));
      } catch (const c10::OutOfMemoryError&) {
        if (profile.points.empty()) throw;
        bench->Clear();
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
  struct Passes {
    LaneTime forward, backward;
  };

  static LaneTimer::Work Done(std::function<void()> work) {
    return [work = std::move(work)] {
      work();
      return absl::OkStatus();
    };
  }

  ComputePoint MeasurePoint(UnitBench& bench, UnitKind kind, int64_t samples) {
    ComputePoint point;
    point.microbatch = samples;
    LaneTimer timer(backend_.StreamOf(Lane::kCompute), pacer_);
    timer.Settle();
    std::vector<Passes> counting;
    const int warm_ups = timer.on_stream() ? kWarmUps : 0;
    for (int run = 0; run < warm_ups + kRepeats; ++run) {
      const double lateness_before = pacer_.lateness_seconds();
      const Passes passes = RunOnce(bench, kind, samples, timer, run == 0 ? &point : nullptr);
      if (run >= warm_ups) counting.push_back(passes);
      const bool declared_time_met = assignment_.device.flops_per_second > 0 && pacer_.lateness_seconds() == lateness_before;
      if (declared_time_met) break;
    }
    Check(timer.Await());
    point.forward_seconds = point.backward_seconds = std::numeric_limits<double>::infinity();
    for (const Passes& passes : counting) {
      point.forward_seconds = std::min(point.forward_seconds, passes.forward.seconds());
      point.backward_seconds = std::min(point.backward_seconds, passes.backward.seconds());
    }
    return point;
  }

  // `bytes` not null: sets what of the point is bytes. They are those of the moment, so each pass is awaited then.
  Passes RunOnce(UnitBench& bench, UnitKind kind, int64_t samples, LaneTimer& timer, ComputePoint* bytes) {
    const auto await = [&] {
      if (bytes != nullptr) Check(timer.Await());
    };
    Passes passes;
    timer.Run(Done([&bench, samples] { bench.Prepare(samples); }));
    await();
    const int64_t before = backend_.CurrentBytes();
    if (bytes != nullptr) backend_.ResetPeak();
    passes.forward = timer.Measure(ForwardFlops(assignment_.model, kind, samples, seq_len_), Done([&bench] { bench.Forward(); }));
    await();
    const int64_t at_backward = backend_.CurrentBytes();
    if (bytes != nullptr) {
      bytes->saved_bytes = at_backward - before - bench.output_bytes() + bench.input_bytes();
      bytes->workspace_bytes = std::max<int64_t>(0, backend_.PeakBytes() - at_backward);
      peak_bytes_ = std::max(peak_bytes_, backend_.PeakBytes());
      backend_.ResetPeak();
    }
    passes.backward =
        timer.Measure(BackwardFlops(assignment_.model, kind, samples, seq_len_), Done([&bench] { bench.Backward(); }));
    await();
    if (bytes != nullptr) {
      const int64_t workspace = backend_.PeakBytes() - at_backward - bench.input_grad_bytes();
      bytes->workspace_bytes = std::max(bytes->workspace_bytes, workspace);
      peak_bytes_ = std::max(peak_bytes_, backend_.PeakBytes());
    }
    timer.Run(Done([&bench] { bench.Clear(); }));
    return passes;
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
  const int warm_ups = timer.on_stream() ? kWarmUps : 0;
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
  UnitProfiler units(assignment, *precision, lift.cap_bytes(), backend, *model, pacer);
  profile.embedding = units.Measure(UnitKind::kEmbedding, kEmbeddingBudgetSeconds);
  profile.layer = units.Measure(UnitKind::kLayer, kLayerBudgetSeconds);
  profile.head = units.Measure(UnitKind::kHead, kHeadBudgetSeconds);
  MeasureOptimizer(assignment, precision->master, backend, pacer, profile);
  profile.profile_seconds = absl::ToDoubleSeconds(clock.Now() - start);
  return profile;
}

}  // namespace motley::engine
