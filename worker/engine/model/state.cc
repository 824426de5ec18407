#include "worker/engine/model/state.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/model/parameters.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/model/unit_model.h"

namespace motley::engine {
namespace {

// Before the first step there are no moments: of another job's checkpoint only the weights are taken.
bool IsInitial(const RankAssignment& assignment) {
  return assignment.start_step == 0 && !assignment.config.checkpoint.initial.empty();
}

absl::Status CheckFits(const CheckpointManifest& manifest, const RankAssignment& assignment, DType dtype) {
  const std::string& folder = assignment.resume_from;
  const bool initial = IsInitial(assignment);
  const std::string key = initial ? "checkpoint.initial" : "checkpoint.folder";
  if (manifest.step != assignment.start_step && !initial) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", folder, " is of step ", manifest.step, ", the epoch starts at step ", assignment.start_step));
  }
  if (!(manifest.model == assignment.model)) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", folder, " holds another model than the job's; use another ", key));
  }
  if (manifest.dtype != dtype) {
    return absl::FailedPreconditionError(absl::StrCat("checkpoint ", folder, " holds ", std::string(DTypeName(manifest.dtype)),
                                                      ", the job trains in ", std::string(DTypeName(dtype)), "; use another ",
                                                      key));
  }
  return absl::OkStatus();
}

absl::Status Restore(CheckpointReader& reader, bool only_weights, RangeState& state) {
  for (const auto& [kind, tensor] :
       {std::pair{StateTensor::kParameter, &state.parameter}, std::pair{StateTensor::kExpAvg, &state.exp_avg},
        std::pair{StateTensor::kExpAvgSq, &state.exp_avg_sq}}) {
    if (only_weights && kind != StateTensor::kParameter) continue;
    MOTLEY_RETURN_IF_ERROR(reader.Read(state.block, kind, state.begin, state.end, tensor->mutable_data_ptr()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ShardedState> ShardedState::Create(const RankAssignment& assignment, c10::Device device,
                                                  const std::function<void()>& progress) {
  const std::vector<UnitSpec> layout = ParameterLayout(assignment.model);
  std::vector<int64_t> elements;
  for (const UnitSpec& block : layout) elements.push_back(block.num_elements);
  MOTLEY_RETURN_IF_ERROR(Validate(assignment.ownership, elements, assignment.world()));
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(assignment.config.training));
  if (assignment.resume_from.empty() && assignment.start_step > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the epoch starts at step ", assignment.start_step, " but names no checkpoint"));
  }
  std::optional<CheckpointReader> reader;
  if (!assignment.resume_from.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(reader, CheckpointReader::Open(assignment.resume_from));
    MOTLEY_RETURN_IF_ERROR(CheckFits(reader->manifest(), assignment, precision.master));
  }
  const auto options = at::TensorOptions().dtype(ScalarTypeOf(precision.master));
  ShardedState result(precision.compute);
  if (reader && !IsInitial(assignment)) {
    const CheckpointManifest& manifest = reader->manifest();
    result.loss_scale_.Restore(manifest.loss_scale, manifest.steps_at_loss_scale, manifest.skipped_steps);
  }
  for (int32_t block = 0; block < assignment.ownership.num_blocks(); ++block) {
    for (const OwnedRange& range : assignment.ownership.Of(block)) {
      if (range.rank != assignment.rank) continue;
      RangeState state;
      state.block = block;
      state.begin = range.begin;
      state.end = range.end;
      const UnitSpec& spec = layout[static_cast<size_t>(block)];
      state.decay_runs = DecayRunsOf(assignment.config.optimizer, spec, state.begin, state.end);
      const auto tensors = {&state.parameter, &state.gradient, &state.exp_avg, &state.exp_avg_sq};
      for (at::Tensor* tensor : tensors) *tensor = at::zeros({state.size()}, options);
      if (!reader) {
        InitializeRange(spec, assignment.config.training.seed, state.begin, state.end, state.parameter,
                        assignment.device.threads);
      } else {
        MOTLEY_RETURN_IF_ERROR(Restore(*reader, IsInitial(assignment), state));
      }
      for (at::Tensor* tensor : tensors) *tensor = tensor->to(device);
      result.ranges_.push_back(std::move(state));
    }
    progress();
  }
  return result;
}

std::span<RangeState> ShardedState::Of(int32_t block) {
  const auto of_block = std::ranges::equal_range(ranges_, block, {}, &RangeState::block);
  return {of_block.begin(), of_block.end()};
}

int64_t ShardedState::owned_elements() const {
  int64_t sum = 0;
  for (const RangeState& range : ranges_) sum += range.size();
  return sum;
}

std::vector<PieceData> ShardedState::Pieces() const {
  std::vector<PieceData> pieces;
  const auto on_host = std::make_shared<at::Tensor>();  // the piece that was read last
  for (const RangeState& range : ranges_) {
    for (const auto& [kind, tensor] :
         {std::pair{StateTensor::kParameter, &range.parameter}, std::pair{StateTensor::kExpAvg, &range.exp_avg},
          std::pair{StateTensor::kExpAvgSq, &range.exp_avg_sq}}) {
      pieces.push_back({range.block, kind, range.begin, range.end, [on_host, tensor = tensor] {
                          *on_host = at::Tensor();
                          *on_host = tensor->cpu();
                          return on_host->const_data_ptr();
                        }});
    }
  }
  return pieces;
}

}  // namespace motley::engine
