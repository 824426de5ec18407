#include "worker/engine/profiler/optimizer_profiler.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/model/operators.h"
#include "common/model/parameters.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/lanes/lane_timer.h"
#include "worker/engine/model/optimizer.h"
#include "worker/engine/profiler/timed_runs.h"

namespace motley::engine {
namespace {

// A host's time says nothing of an array's size, and a card does few elements in the time of a launch or from its cache.
constexpr int64_t kElements = 1 << 16, kElementsOnStream = int64_t{64} << 20;
constexpr int64_t kShareOfMemory = 10;
// As while gradients are larger than max_norm allows, which costs a card another pass over them.
constexpr double kClip = 0.5;

struct OwnedRange {
  at::Tensor parameter, gradient, exp_avg, exp_avg_sq;
  at::Tensor computing;  // the parameters in the type that computes; undefined: in that of the masters

  OwnedRange(int64_t elements, const Precision& precision, const at::TensorOptions& device) {
    const at::TensorOptions master = device.dtype(ScalarTypeOf(precision.master));
    parameter = at::zeros({elements}, master), gradient = at::full({elements}, 1e-3, master);
    exp_avg = at::zeros({elements}, master), exp_avg_sq = at::zeros({elements}, master);
    if (precision.mixed()) computing = at::empty({elements}, device.dtype(ScalarTypeOf(precision.compute)));
  }

  // As the executor does it.
  void Step(const OptimizerSection& options, int64_t step, const KernelLauncher* kernels) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const at::Tensor squared_norm = SquaredNorm(gradient);
    AdamWStep(options, 1e-3, step, kClip, {gradient, parameter, exp_avg, exp_avg_sq, {}, true}, kernels);
    if (computing.defined()) computing.copy_(parameter);
  }
};

int64_t NumElements(const RankAssignment& assignment, const Precision& precision, bool on_stream) {
  const int64_t most = std::min(on_stream ? kElementsOnStream : kElements, NumParameters(assignment.model));
  const int64_t bytes = 4 * SizeOfBytes(precision.master) + (precision.mixed() ? SizeOfBytes(precision.compute) : 0);
  const int64_t room = assignment.device.memory_bytes / kShareOfMemory / bytes;
  return on_stream && room > 0 ? std::min(most, room) : most;
}

}  // namespace

OptimizerTimes MeasureOptimizer(const RankAssignment& assignment, const Precision& precision, DeviceBackend& backend,
                                ComputePacer& pacer) {
  std::optional<OwnedRange> range;
  LaneTimer timer(backend.StreamOf(Lane::kCompute), pacer);
  const int64_t elements = NumElements(assignment, precision, timer.on_stream());
  timer.Settle();
  timer.Run([&] {
    range.emplace(elements, precision, at::TensorOptions().device(backend.tensors()));
    return absl::OkStatus();
  });
  std::vector<LaneTime> times;
  const int warm_ups = WarmUpsOf(timer);
  for (int step = 1; step <= warm_ups + kRepeats; ++step) {
    const LaneTime time = timer.Measure(kOptimizerFlopsPerElement * static_cast<double>(elements), [&, step] {
      range->Step(assignment.config.optimizer, step, backend.kernels());
      return absl::OkStatus();
    });
    if (step > warm_ups) times.push_back(time);
  }
  Check(timer.Await());
  std::vector<double> seconds;
  for (const LaneTime& time : times) seconds.push_back(time.seconds());
  // The declared launch falls once a step and not by element.
  const double launch = assignment.device.flops_per_second > 0 ? absl::ToDoubleSeconds(assignment.device.launch) : 0;
  return {(SecondsOf(std::move(seconds), timer) - launch) / static_cast<double>(elements), launch};
}

}  // namespace motley::engine
