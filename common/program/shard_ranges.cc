#include "common/program/shard_ranges.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <variant>

namespace motley {

OwnedRanges ShardRanges(const OwnedRanges& owned, const std::vector<int32_t>& members) {
  std::vector<int32_t> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const auto is_member = [&](int32_t rank) { return std::binary_search(sorted.begin(), sorted.end(), rank); };
  const int32_t first = sorted.front();
  OwnedRanges shards;
  int64_t begin = 0;  // of what follows the last range
  for (size_t i = 0; i < owned.size(); ++i) {
    const OwnedRange& range = owned[i];
    if (is_member(range.rank)) {
      if (!shards.empty() && shards.back().rank == range.rank) {
        shards.back().end = range.end;
      } else {
        shards.push_back({range.rank, begin, range.end});
      }
      begin = range.end;
    } else if (range.rank > first && begin == range.begin && !shards.empty()) {
      begin = shards.back().end = range.end;
    }
  }
  if (owned.empty()) return shards;
  if (shards.empty()) shards.push_back({first, 0, owned.back().end});
  shards.back().end = owned.back().end;
  return shards;
}

std::vector<SliceRun> RunsOfShard(int32_t rank, const std::vector<ShardedPart>& parts) {
  std::vector<SliceRun> runs;
  for (const ShardedPart& part : parts) {
    for (const OwnedRange& range : part.shards) {
      if (range.rank != rank) continue;
      for (const SliceRun& run : part.runs) {
        const int64_t begin = std::max(range.begin, run.in_unit), end = std::min(range.end, run.in_unit + run.elements);
        if (begin < end) runs.push_back({begin, 0, end - begin});
      }
    }
  }
  std::sort(runs.begin(), runs.end(), [](const SliceRun& a, const SliceRun& b) { return a.in_unit < b.in_unit; });
  std::vector<SliceRun> joined;
  int64_t in_array = 0;
  for (const SliceRun& run : runs) {
    if (!joined.empty() && joined.back().in_unit + joined.back().elements == run.in_unit) {
      joined.back().elements += run.elements;
    } else {
      joined.push_back({run.in_unit, in_array, run.elements});
    }
    in_array += run.elements;
  }
  return joined;
}

std::vector<SliceRun> RunsWithin(const std::vector<SliceRun>& runs, const ArrayRange& elements) {
  if (elements.whole()) return runs;
  std::vector<SliceRun> within;
  for (const SliceRun& run : runs) {
    const int64_t begin = std::max(run.in_slice, elements.first), end = std::min(run.in_slice + run.elements, elements.end());
    if (begin < end) within.push_back({run.in_unit + begin - run.in_slice, begin, end - begin});
  }
  return within;
}

namespace {

const std::vector<UnitBuffer>& BuffersOf(const Program& program, const Gather&) { return program.parameter_buffers; }
const std::vector<UnitBuffer>& BuffersOf(const Program& program, const ReduceScatter&) { return program.gradient_buffers; }
int32_t BufferOf(const Gather& op) { return op.buffer; }
int32_t BufferOf(const ReduceScatter& op) { return op.grad; }

// By unit: of which elements of its array a ring was seen.
using Seen = std::set<std::pair<int32_t, int64_t>>;

// A gather from shards, or a sum that goes to them.
template <typename Op>
void Note(const Program& program, const Ownership& ownership, const Op& op, const std::vector<std::vector<SliceRun>>& runs,
          Seen* seen, std::vector<std::vector<ShardedPart>>* parts) {
  const std::vector<UnitBuffer>& buffers = BuffersOf(program, op);
  if (buffers[static_cast<size_t>(BufferOf(op))].IsShard()) return;
  const bool in_shards = std::any_of(buffers.begin(), buffers.end(),
                                     [&op](const UnitBuffer& buffer) { return buffer.IsShard() && buffer.home_of == op.unit; });
  if (!in_shards || !seen->emplace(op.unit, op.elements.first).second) return;
  const auto unit = static_cast<size_t>(op.unit);
  const OwnedRanges shards = ShardRanges(ownership.Of(op.unit), program.groups[static_cast<size_t>(op.group)]);
  (*parts)[unit].push_back({shards, RunsWithin(runs[unit], op.elements)});
}

}  // namespace

std::vector<std::vector<SliceRun>> ShardsByUnit(const Program& program, const Ownership& ownership,
                                                const std::vector<std::vector<SliceRun>>& runs) {
  std::vector<std::vector<ShardedPart>> parts(runs.size());
  Seen seen;
  for (const Instruction& instruction : program.instructions) {
    if (const auto* gather = std::get_if<Gather>(&instruction.op)) Note(program, ownership, *gather, runs, &seen, &parts);
    if (const auto* sum = std::get_if<ReduceScatter>(&instruction.op)) Note(program, ownership, *sum, runs, &seen, &parts);
  }
  std::vector<std::vector<SliceRun>> shards(runs.size());
  for (size_t unit = 0; unit < runs.size(); ++unit) shards[unit] = RunsOfShard(program.rank, parts[unit]);
  return shards;
}

}  // namespace motley
