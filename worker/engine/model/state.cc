#include "worker/engine/model/state.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/model/parameters.h"
#include "common/program/program_index.h"
#include "common/weights/huggingface_weights.h"
#include "worker/engine/base/memory.h"
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
  if (!SameModel(manifest.model, assignment.model, assignment.config.training.seq_len)) {
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

absl::Status RestoreAll(CheckpointReader& reader, RangeState& state) {
  for (const auto& [kind, tensor] :
       {std::pair{StateTensor::kParameter, &state.parameter}, std::pair{StateTensor::kExpAvg, &state.exp_avg},
        std::pair{StateTensor::kExpAvgSq, &state.exp_avg_sq}}) {
    MOTLEY_RETURN_IF_ERROR(reader.Read(state.block, kind, state.begin, state.end, tensor->mutable_data_ptr()));
  }
  return absl::OkStatus();
}

// The storage check saw the folder a moment ago: what is not seen now, or is cut off, proves nothing about it.
absl::Status OfWeights(const absl::Status& status) {
  if (status.ok() || FaultOf(status) == Fault::kStorage) return status;
  const std::string text = absl::StrCat("checkpoint.initial: ", std::string(status.message()));
  if (absl::IsNotFound(status)) return WithFault(absl::UnavailableError(text), Fault::kStorage);
  return absl::Status(absl::IsDataLoss(status) ? absl::StatusCode::kFailedPrecondition : status.code(), text);
}

// What the ranges are read from; none: from the seed.
struct Sources {
  std::unique_ptr<CheckpointReader> checkpoint;
  std::unique_ptr<HuggingFaceWeights> weights;
  // Before the first step: the parameters alone.
  WeightSource* ForInitial(const RankAssignment& assignment) const {
    if (weights) return weights.get();
    return IsInitial(assignment) ? checkpoint.get() : nullptr;
  }
};

absl::StatusOr<Sources> OpenSources(const RankAssignment& assignment, const OpenPath& open, DType dtype) {
  Sources sources;
  const std::string& from = assignment.resume_from;
  if (from.empty()) return sources;
  if (IsInitial(assignment)) {
    const absl::StatusOr<std::string> folder = FindWeightsFolder(from, open);
    if (!folder.ok()) return OfWeights(folder.status());
    if (!folder->empty()) {
      absl::StatusOr<HuggingFaceWeights> weights = HuggingFaceWeights::Open(*folder, assignment.model, dtype, open);
      if (!weights.ok()) return OfWeights(weights.status());
      sources.weights = std::make_unique<HuggingFaceWeights>(*std::move(weights));
      return sources;
    }
  }
  MOTLEY_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(from));
  MOTLEY_RETURN_IF_ERROR(CheckFits(reader.manifest(), assignment, dtype));
  sources.checkpoint = std::make_unique<CheckpointReader>(std::move(reader));
  return sources;
}

// What a job began from whose base is gone, if that was a folder of HuggingFace's which is there still.
absl::StatusOr<BaseModel> BaseOfInitial(const CheckpointSection& checkpoint, const ModelShape& model, DType dtype,
                                        const OpenPath& open) {
  const std::string& initial = checkpoint.initial;
  if (initial.empty() || InitialIsJob(checkpoint)) return absl::NotFoundError("the job began from no folder");
  MOTLEY_ASSIGN_OR_RETURN(const std::string folder, FindWeightsFolder(initial, open));
  if (folder.empty()) return absl::NotFoundError(absl::StrCat(initial, " holds no weights of HuggingFace"));
  MOTLEY_ASSIGN_OR_RETURN(const HuggingFaceWeights weights, HuggingFaceWeights::Open(folder, model, dtype, open));
  BaseModel base = BaseOf(weights);
  MOTLEY_ASSIGN_OR_RETURN(base.files, ReadSmallFiles(folder, open));
  return base;
}

std::unique_ptr<JobBase> BaseOfJob(const Sources& sources, const RankAssignment& assignment, DType dtype, const OpenPath& open) {
  auto base = std::make_unique<JobBase>(assignment.config.data.path, open);
  if (sources.weights) base->BeginWith(BaseOf(*sources.weights), sources.weights->folder().path);
  if (sources.checkpoint) {
    const CheckpointSection& checkpoint = assignment.config.checkpoint;
    const std::string beside = std::filesystem::path(assignment.resume_from).parent_path().string();
    base->GoOn(IsOnNodesDisks(checkpoint) ? checkpoint.folder : beside, sources.checkpoint->manifest().base,
               [checkpoint = assignment.config.checkpoint, model = assignment.model, dtype, open] {
                 return BaseOfInitial(checkpoint, model, dtype, open);
               });
  }
  return base;
}

// Where a range's tensors lie: on the host those that wait there, and they are restored in place.
class Placement {
 public:
  Placement(const RankAssignment& assignment, const HostAreas& host, Precision precision)
      : host_(host),
        waits_(assignment.program.offloads),
        program_(assignment.program),
        precision_(precision),
        parameters_(precision.mixed() ? MemoryPurpose::kOptimizer : MemoryPurpose::kParameters) {}

  // Zeroed, all on the host.
  void Make(RangeState& state) const {
    const HostState& layout = host_.LayoutOf(state.block);
    if (HasGradient(state.block)) state.gradient = Zeros(MemoryPurpose::kGradients, state, waits_.gradients, 0);
    state.parameter = Zeros(parameters_, state, waits_.parameters, layout.ParameterAt());
    state.exp_avg = Zeros(MemoryPurpose::kOptimizer, state, waits_.optimizer, layout.MomentAt(0));
    state.exp_avg_sq = Zeros(MemoryPurpose::kOptimizer, state, waits_.optimizer, layout.MomentAt(1));
    if (layout.cast > 0) state.cast = InArea(state, layout.CastAt(), precision_.compute);
  }
  // Once it is restored: what does not wait goes to the device.
  void Finish(c10::Device device, RangeState& state) const {
    if (state.cast.defined()) state.cast.copy_(state.parameter);
    for (const auto& [waits, tensor] :
         {std::pair{waits_.gradients, &state.gradient}, std::pair{waits_.parameters, &state.parameter},
          std::pair{waits_.optimizer, &state.exp_avg}, std::pair{waits_.optimizer, &state.exp_avg_sq}}) {
      if (!waits && tensor->defined()) *tensor = tensor->to(device);
    }
  }

 private:
  // Of a home's the gradient will be a range, and a sum that stays in its buffer is stepped or leaves from there.
  bool HasGradient(int32_t block) const {
    const auto unit = static_cast<size_t>(block);
    return waits_.gradients || (program_.gradient_home[unit] < 0 && !program_.sum_stays[unit]);
  }
  at::Tensor InArea(const RangeState& state, int64_t part, DType type) const {
    char* const begin = host_.Of(state.block) + part + state.in_area * SizeOfBytes(type);
    return at::from_blob(begin, {state.size()}, at::TensorOptions().dtype(ScalarTypeOf(type)));
  }
  at::Tensor Zeros(MemoryPurpose purpose, const RangeState& state, bool waits, int64_t part) const {
    const CountingAs counting(purpose);
    if (waits) return InArea(state, part, precision_.master).zero_();
    return at::zeros({state.size()}, at::TensorOptions().dtype(ScalarTypeOf(precision_.master)));
  }

  const HostAreas& host_;
  const OffloadKinds waits_;
  const ProgramIndex program_;
  const Precision precision_;
  const MemoryPurpose parameters_;  // a master copy is counted with the moments
};

OpenPath OpenerOf(const FileRoots* roots) {
  if (roots == nullptr) return OpenAnywhere;
  return [roots](const std::string& path) { return roots->OpenForRead("checkpoint.initial", path); };
}

}  // namespace

absl::StatusOr<ShardedState> ShardedState::Create(const RankAssignment& assignment, c10::Device device, const HostAreas& host,
                                                  const FileRoots* roots, const std::function<void()>& progress) {
  const std::vector<UnitSpec> layout = ParameterLayout(assignment.model);
  std::vector<int64_t> elements;
  for (const UnitSpec& block : layout) elements.push_back(block.num_elements);
  MOTLEY_RETURN_IF_ERROR(Validate(assignment.ownership, elements, assignment.world()));
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(assignment.config.training));
  if (assignment.resume_from.empty() && assignment.start_step > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the epoch starts at step ", assignment.start_step, " but names no checkpoint"));
  }
  const OpenPath open = OpenerOf(roots);
  MOTLEY_ASSIGN_OR_RETURN(const Sources sources, OpenSources(assignment, open, precision.master));
  const Placement placement(assignment, host, precision);
  ShardedState result(precision.compute);
  result.base_ = BaseOfJob(sources, assignment, precision.master, open);
  if (sources.checkpoint && !IsInitial(assignment)) {
    const CheckpointManifest& manifest = sources.checkpoint->manifest();
    result.loss_scale_.Restore(manifest.loss_scale, manifest.steps_at_loss_scale, manifest.skipped_steps);
  }
  for (int32_t block = 0; block < assignment.ownership.num_blocks(); ++block) {
    int64_t in_area = 0;
    for (const OwnedRange& range : assignment.ownership.Of(block)) {
      if (range.rank != assignment.rank) continue;
      RangeState state;
      state.block = block;
      state.begin = range.begin;
      state.end = range.end;
      state.in_area = std::exchange(in_area, in_area + state.size());
      const UnitSpec& spec = layout[static_cast<size_t>(block)];
      state.decay_runs = DecayRunsOf(assignment.config.optimizer, spec, state.begin, state.end);
      placement.Make(state);
      if (WeightSource* const source = sources.ForInitial(assignment); source != nullptr) {
        const absl::Status read = source->Read(state.block, state.begin, state.end, state.parameter.mutable_data_ptr());
        MOTLEY_RETURN_IF_ERROR(sources.weights ? OfWeights(read) : read);
      } else if (sources.checkpoint) {
        MOTLEY_RETURN_IF_ERROR(RestoreAll(*sources.checkpoint, state));
      } else {
        InitializeRange(spec, assignment.config.training.seed, state.begin, state.end, state.parameter,
                        assignment.device.threads);
      }
      placement.Finish(device, state);
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
