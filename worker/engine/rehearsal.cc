#include "worker/engine/rehearsal.h"

#include <array>
#include <set>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/model/parameters.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/lanes/lane_timer.h"
#include "worker/engine/model/optimizer.h"
#include "worker/engine/model/unit_bench.h"

namespace motley::engine {
namespace {

constexpr int64_t kElements = 1 << 16;  // of what works element by element: its kernels know no sizes

// By UnitKind: sequences of the microbatches that the rank's programs compute.
std::array<std::set<int64_t>, 3> SamplesByKind(const RankAssignment& assignment) {
  const std::vector<UnitSpec> layout = ParameterLayout(assignment.model);
  std::array<std::set<int64_t>, 3> samples;
  for (const Program* program : {&assignment.program, &assignment.evaluation}) {
    for (const Instruction& instruction : program->instructions) {
      const auto* forward = std::get_if<Forward>(&instruction.op);
      if (forward == nullptr) continue;
      samples[static_cast<size_t>(layout[forward->unit].kind)].insert(program->microbatches[forward->microbatch].samples);
    }
  }
  return samples;
}

// What the executor does beside the units: casts, sums, the search for what is not finite, the norm and the optimizer.
void RehearseTheRest(const JobConfig& config, Precision precision, c10::Device device) {
  const at::TensorOptions options = at::TensorOptions().device(device);
  at::Tensor master = at::zeros({kElements}, options.dtype(ScalarTypeOf(precision.master)));
  at::Tensor compute = at::zeros({kElements}, options.dtype(ScalarTypeOf(precision.compute)));
  compute.copy_(master);
  master.add_(master);
  const at::Tensor sum = precision.mixed() ? compute.sum(at::kFloat) : compute.sum();
  at::Tensor position = at::zeros({}, options.dtype(at::kLong));
  position = at::minimum(position, at::where(at::isfinite(sum), 1, 2));
  at::zeros({}, options.dtype(at::kDouble)).add_(sum).item<double>();
  position.item<int64_t>();
  at::stack({SquaredNorm(master), SquaredNorm(master)}).cpu();
  at::Tensor moment = at::zeros_like(master), second = at::zeros_like(master), parameter = at::zeros_like(master);
  AdamWStep(config.optimizer, /*lr=*/0, /*step=*/1, /*clip=*/1, master, parameter, moment, second);
}

void RehearseUnit(UnitModel& model, const RankAssignment& assignment, Precision precision, c10::Device device, UnitKind kind,
                  const std::set<int64_t>& samples) {
  UnitBench bench(model, model.shape(), assignment.config.training.seq_len, precision, device, kind);
  for (const int64_t count : samples) {
    bench.Prepare(count);
    bench.Forward();
    bench.Backward();
    bench.Clear();
  }
}

}  // namespace

absl::Status Rehearse(const RankAssignment& assignment, Precision precision, DeviceBackend& backend, LanePacer& pacer) {
  if (backend.StreamOf(Lane::kCompute) == nullptr) return absl::OkStatus();
  const c10::Device device = backend.tensors();
  const auto samples = SamplesByKind(assignment);
  try {
    UnitModel model(assignment.model, assignment.config.training.seq_len, precision.compute, device, assignment.slice);
    LaneTimer timer(backend.StreamOf(Lane::kCompute), pacer);
    for (const UnitKind kind : {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kHead}) {
      if (samples[static_cast<size_t>(kind)].empty()) continue;
      timer.Run([&, kind] {
        RehearseUnit(model, assignment, precision, device, kind, samples[static_cast<size_t>(kind)]);
        return absl::OkStatus();
      });
    }
    timer.Run([&] {
      RehearseTheRest(assignment.config, precision, device);
      return absl::OkStatus();
    });
    const absl::Status status = timer.Await();
    backend.GiveBackCaches();
    return status;
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat(assignment.devices[assignment.rank].value(),
                     ": a unit of the model, before the first step: ", error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    return absl::InternalError(absl::StrCat(assignment.devices[assignment.rank].value(),
                                            ": a unit of the model, before the first step: ", error.what_without_backtrace()));
  }
}

}  // namespace motley::engine
