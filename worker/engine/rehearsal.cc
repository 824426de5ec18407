#include "worker/engine/rehearsal.h"

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/parameters.h"
#include "worker/engine/base/out_of_memory.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/kernels/kernel_launcher.h"
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

// The kinds of the model's layers, each once.
std::vector<LayerKind> KindsOf(const ModelShape& shape) {
  std::vector<LayerKind> kinds = {shape.KindOf(0)};
  for (const LayerKind& kind : shape.layer_kinds) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  return kinds;
}

void RehearseUnit(UnitModel& model, const RankAssignment& assignment, Precision precision, bool rows, c10::Device device,
                  UnitKind kind, const std::set<int64_t>& samples) {
  UnitBench bench(model, model.shape(), assignment.config.training.seq_len, precision, device, kind);
  // Rows of one document are samples to attention.
  std::vector<SamplesKind> kinds = {SamplesKind::kWhole};
  if (rows) kinds.push_back(SamplesKind::kRows);
  const std::vector<LayerKind> layers = kind == UnitKind::kLayer ? KindsOf(model.shape()) : std::vector{LayerKind()};
  for (const int64_t count : samples) {
    for (const SamplesKind of : kinds) {
      for (const LayerKind& layer : layers) {
        bench.Prepare(count, of, layer);
        bench.Forward();
        bench.Backward();
        bench.Clear();
      }
    }
  }
}

// Kernels of our own, units, the search for what is not finite, and the optimizer.
void RehearseCompute(const RankAssignment& assignment, Precision precision, bool rows, const DeviceBackend& backend) {
  const c10::Device device = backend.tensors();
  if (backend.kernels() != nullptr) {
    const absl::Status launched = backend.kernels()->LaunchEachOnce(precision.compute);
    TORCH_CHECK(launched.ok(), std::string(launched.message()));
  }
  const auto samples = SamplesByKind(assignment);
  UnitModel model(assignment.model, assignment.config.training.seq_len, precision.compute, device, assignment.slice,
                  backend.kernels());
  for (const UnitKind kind : {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kHead}) {
    const std::set<int64_t>& of_kind = samples[static_cast<size_t>(kind)];
    if (!of_kind.empty()) RehearseUnit(model, assignment, precision, rows, device, kind, of_kind);
  }
  const at::TensorOptions options = at::TensorOptions().device(device);
  const at::Tensor compute = at::zeros({kElements}, options.dtype(ScalarTypeOf(precision.compute)));
  const at::Tensor sum = precision.mixed() ? compute.sum(at::kFloat) : compute.sum();
  at::minimum(at::zeros({}, options.dtype(at::kLong)), at::where(at::isfinite(sum), 1, 2));
  at::zeros({}, options.dtype(at::kDouble)).add_(sum);
  at::Tensor master = at::zeros({kElements}, options.dtype(ScalarTypeOf(precision.master)));
  at::Tensor moment = at::zeros_like(master), second = at::zeros_like(master), parameter = at::zeros_like(master);
  AdamWStep(assignment.config.optimizer, /*lr=*/0, /*step=*/1, /*clip=*/1, {master, parameter, moment, second, {}, true},
            backend.kernels());
}

// Casts, sums, the norm, and what numbers come back through.
void RehearseCollective(Precision precision, c10::Device device) {
  const at::TensorOptions options = at::TensorOptions().device(device);
  at::Tensor master = at::zeros({kElements}, options.dtype(ScalarTypeOf(precision.master)));
  at::Tensor compute = at::zeros({kElements}, options.dtype(ScalarTypeOf(precision.compute)));
  compute.copy_(master);
  compute.add_(compute);
  master.add_(master);
  at::zeros({}, options.dtype(at::kDouble)).item<double>();
  at::zeros({}, options.dtype(at::kLong)).item<int64_t>();
  at::stack({SquaredNorm(master), SquaredNorm(master)}).cpu();
}

// As work of a lane, which throws nothing.
LaneWork Rehearsed(const RankAssignment& assignment, std::function<void()> work, bool reads_back) {
  const auto run = [work = std::move(work), device = assignment.devices[assignment.rank]]() -> absl::Status {
    const auto where = [&] { return absl::StrCat(device.value(), ": a unit of the model, before the first step"); };
    try {
      const at::AutoDispatchBelowADInplaceOrView below_autograd;  // as steps are
      work();
      return absl::OkStatus();
    } catch (const c10::OutOfMemoryError& error) {
      return OutOfMemory(where(), error);
    } catch (const c10::Error& error) {
      return absl::InternalError(absl::StrCat(where(), ": ", error.what_without_backtrace()));
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat(where(), ": ", error.what()));
    }
  };
  return {run, std::nullopt, nullptr, reads_back};
}

}  // namespace

absl::Status Rehearse(const RankAssignment& assignment, Precision precision, bool rows, DeviceBackend& backend,
                      const std::array<DeviceLane*, kNumLanes>& lanes) {
  if (backend.StreamOf(Lane::kCompute) == nullptr) return absl::OkStatus();
  const c10::Device device = backend.tensors();
  DeviceLane& compute = *lanes[static_cast<size_t>(Lane::kCompute)];
  DeviceLane& collective = *lanes[static_cast<size_t>(Lane::kCollective)];
  compute.Begin();
  collective.Begin();
  compute.Run(Rehearsed(
      assignment, [&] { RehearseCompute(assignment, precision, rows, backend); }, /*reads_back=*/false));
  collective.Run(Rehearsed(
      assignment, [&] { RehearseCollective(precision, device); }, /*reads_back=*/true));
  absl::Status status = compute.Finish();
  status.Update(collective.Finish());
  return status;
}

}  // namespace motley::engine
