#include "worker/engine/rank_arrays.h"

#include <algorithm>
#include <cstddef>

#include "common/program/shard_ranges.h"

namespace motley::engine {
namespace {

SliceMap ShardsOf(const RankAssignment& assignment, const SliceMap& slices) {
  if (assignment.ownership.num_blocks() == 0) return slices;  // profiling
  std::vector<std::vector<SliceRun>> runs = ShardsByUnit(assignment.program, assignment.ownership, slices.runs());
  const std::vector<std::vector<SliceRun>> more = ShardsByUnit(assignment.evaluation, assignment.ownership, slices.runs());
  for (size_t unit = 0; unit < runs.size(); ++unit) {
    if (runs[unit].empty()) runs[unit] = more[unit];
  }
  return SliceMap(std::move(runs));
}

}  // namespace

RankArrays::RankArrays(const RankAssignment& assignment)
    : assignment_(assignment), slices_(assignment.model, assignment.slice), shards_(ShardsOf(assignment, slices_)) {}

MovedElements RankArrays::MovedBy(const Program& program, const Gather& op) const {
  return Moved(program, program.parameter_buffers, op.buffer, op.unit, op.group, op.elements);
}

MovedElements RankArrays::MovedBy(const Program& program, const ReduceScatter& op) const {
  return Moved(program, program.gradient_buffers, op.grad, op.unit, op.group, op.elements);
}

MovedElements RankArrays::Moved(const Program& program, const std::vector<UnitBuffer>& buffers, int32_t buffer, int32_t unit,
                                int32_t group, const ArrayRange& elements) const {
  const SliceMap& map = In(buffers[static_cast<size_t>(buffer)]);
  MovedElements moved{.within = map.Within(unit, elements), .owners = {}};
  const auto is_its_shard = [unit](const UnitBuffer& other) { return other.IsShard() && other.home_of == unit; };
  const auto shard = std::find_if(buffers.begin(), buffers.end(), is_its_shard);
  if (shard != buffers.end() && shard - buffers.begin() != buffer) moved.shard = static_cast<int32_t>(shard - buffers.begin());
  const std::vector<int32_t>& members = program.groups[static_cast<size_t>(group)];
  const OwnedRanges& owned = assignment_.ownership.Of(unit);
  moved.owners = map.OwnersIn(moved.shard < 0 ? owned : ShardRanges(owned, members), members, unit, moved.within);
  return moved;
}

}  // namespace motley::engine
