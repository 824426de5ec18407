#include "planner/memory/program_bytes.h"

#include <algorithm>

#include "common/model/operators.h"
#include "common/model/pass_bytes.h"
#include "planner/memory/program_memory.h"

namespace motley::planner {
namespace {

template <typename Count>
int64_t Once(std::optional<int64_t>* known, Count count) {
  if (!*known) *known = count();
  return **known;
}

}  // namespace

ProgramBytes::ProgramBytes(const Costs& costs, int kind, const ModelSlice& slice, const Program& program)
    : costs_(costs), bytes_(costs, kind, slice), program_(program) {
  for (const Microbatch& microbatch : program.microbatches) {
    const auto samples = static_cast<double>(microbatch.samples);
    const auto at = std::find_if(sizes_.begin(), sizes_.end(), [&](const BytesOfSize& of) { return of.samples == samples; });
    size_of_.push_back(static_cast<size_t>(at - sizes_.begin()));
    if (at == sizes_.end()) sizes_.emplace_back(microbatch.samples);
  }
}

int64_t ProgramBytes::Boundary(int32_t microbatch) {
  BytesOfSize& of = OfSize(microbatch);
  return Once(&of.boundary, [&] { return costs_.BoundaryBytes(of.samples); });
}

int64_t ProgramBytes::Rows(int32_t microbatch) {
  BytesOfSize& of = OfSize(microbatch);
  return Once(&of.rows, [&] { return costs_.RowBytes(of.samples); });
}

int64_t ProgramBytes::Saved(OpSet recomputed, int32_t unit, int32_t microbatch) {
  const UnitKind kind = UnitKindOf(program_, unit);
  BytesOfSize& of = OfSize(microbatch);
  std::vector<std::pair<OpSet, int64_t>>& known = of.units[static_cast<size_t>(kind)].saved;
  for (const auto& [operators, bytes] : known) {
    if (operators == recomputed) return bytes;
  }
  return known.emplace_back(recomputed, bytes_.Saved(kind, recomputed, of.samples)).second;
}

int64_t ProgramBytes::OfUnit(Known BytesOfUnit::*known, CountOfUnit count, int32_t unit, int32_t microbatch) {
  const UnitKind kind = UnitKindOf(program_, unit);
  BytesOfSize& of = OfSize(microbatch);
  return Once(&(of.units[static_cast<size_t>(kind)].*known), [&] { return (bytes_.*count)(kind, of.samples); });
}

int64_t ProgramBytes::Workspace(int32_t unit, int32_t microbatch) {
  return OfUnit(&BytesOfUnit::workspace, &RankBytes::Workspace, unit, microbatch) + OfMoreHeadRows(unit, microbatch);
}

int64_t ProgramBytes::OfMoreHeadRows(int32_t unit, int32_t microbatch) {
  if (program_.head_rows == kHeadChunkTokens || UnitKindOf(program_, unit) != UnitKind::kHead) return 0;
  const Workload& workload = costs_.workload();
  const auto of = [&](int64_t rows) {
    return HeadBackwardBytes(workload.model, program_.microbatches[microbatch].samples, workload.seq_len, workload.dtype,
                             /*part=*/false, rows);
  };
  return of(program_.head_rows) - of(kHeadChunkTokens);
}

int64_t ProgramBytes::Waiting(int32_t unit, int32_t microbatch) {
  return OfUnit(&BytesOfUnit::waiting, &RankBytes::Waiting, unit, microbatch);
}

int64_t ProgramBytes::BackwardInputWorkspace(int32_t unit, int32_t microbatch) {
  return OfUnit(&BytesOfUnit::backward_input, &RankBytes::BackwardInputWorkspace, unit, microbatch) +
         OfMoreHeadRows(unit, microbatch);
}

int64_t ProgramBytes::BackwardWeightWorkspace(int32_t unit, int32_t microbatch) {
  return OfUnit(&BytesOfUnit::backward_weight, &RankBytes::BackwardWeightWorkspace, unit, microbatch);
}

int64_t ProgramBytes::LayerForwardWorkspace(int32_t microbatch) {
  BytesOfSize& of = OfSize(microbatch);
  return Once(&of.layer_forward, [&] { return bytes_.LayerForwardWorkspace(of.samples); });
}

bool ProgramBytes::TakesNothing(const Forward& forward, int32_t unit) const {
  return TrainsInBackward(UnitKindOf(program_, unit)) && forward.keep != Keep::kNothing &&
         forward.segment == UnitSegment::kWhole && forward.tp_group == -1;
}

}  // namespace motley::planner
