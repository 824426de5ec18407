#include "common/program/host_slots.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"

namespace motley {
namespace {

class Assignment {
 public:
  explicit Assignment(const Program& program) : program_(program) { slots_.of.reserve(program.instructions.size()); }

  HostSlots Run() {
    for (const Instruction& instruction : program_.instructions) {
      int32_t first = -1;
      if (const auto* offload = std::get_if<OffloadActivation>(&instruction.op)) {
        ForCells(*offload, [&](const Cell& cell) { First(&first, waits_[cell] = Take(cell)); });
      } else if (const auto* prefetch = std::get_if<PrefetchActivation>(&instruction.op)) {
        ForCells(*prefetch, [&](const Cell& cell) { First(&first, GiveBack(cell)); });
      }
      slots_.of.push_back(first);
    }
    return std::move(slots_);
  }

 private:
  using Cell = std::pair<int32_t, int32_t>;  // unit, microbatch

  template <typename Op, typename Use>
  static void ForCells(const Op& op, Use use) {
    for (int32_t unit = op.unit; unit <= op.unit + op.more_units; ++unit) {
      for (int32_t m = op.microbatch; m <= op.microbatch + op.more_microbatches; ++m) use(Cell(unit, m));
    }
  }
  static void First(int32_t* first, int32_t slot) { *first = *first < 0 ? slot : *first; }

  int32_t Take(const Cell& cell) {
    slots_.most_samples = std::max(slots_.most_samples, program_.microbatches[static_cast<size_t>(cell.second)].samples);
    if (free_.empty()) return slots_.count++;
    const int32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  int32_t GiveBack(const Cell& cell) {
    free_.push_back(waits_.at(cell));
    return free_.back();
  }

  const Program& program_;
  HostSlots slots_;
  absl::flat_hash_map<Cell, int32_t> waits_;
  std::vector<int32_t> free_;
};

}  // namespace

HostSlots AssignHostSlots(const Program& program) { return Assignment(program).Run(); }

}  // namespace motley
