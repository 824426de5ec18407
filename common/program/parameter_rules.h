// Which units the parameter buffers hold, instruction by instruction: rules 7 to 9 of docs/inside/program.md. Part of Validate
// (program.h).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/program/disjoint_ranges.h"
#include "common/program/program_check.h"

namespace motley {

class ParameterRules {
 public:
  explicit ParameterRules(const ProgramCheck& check) : check_(check), buffers_(check.program.parameter_buffers.size()) {}

  absl::Status Check(const Gather& g);
  absl::Status Check(const Broadcast& b);
  absl::Status Check(const Release& r);
  // The present copy brings what the rank owns of the unit, of which a gather then fills the rest.
  absl::Status Prefetch(int32_t buffer, int32_t unit);
  // That units can be computed with what is in the buffer: it holds the unit, whole, and the present instruction waits for that.
  absl::Status BufferHolds(int32_t buffer, int32_t unit) const;

 private:
  struct Tenant {
    int32_t unit = -1;
    int prefetch = -1, gather = -1;  // the last instruction that filled it
    bool whole = false;
    DisjointRanges elements;  // otherwise
  };
  struct Buffer {
    std::vector<Tenant> tenants;  // none = free
    int last_release = -1;        // instruction that freed it last
  };

  template <typename Op>
  absl::Status Fill(const Op& op, const ArrayRange& elements) {
    MOTLEY_RETURN_IF_ERROR(check_.ForUnits(op.unit, op.more_units, [&](int32_t unit) { return check_.HoldsArray(unit); }));
    MOTLEY_RETURN_IF_ERROR(check_.InGroup(op.group));
    MOTLEY_RETURN_IF_ERROR(check_.InRange("parameter buffer", op.buffer, check_.program.parameter_buffers));
    if (!elements.whole() && op.more_units > 0) return check_.Error("a range of elements is of one unit");
    return check_.ForUnits(op.unit, op.more_units, [&](int32_t unit) { return FillUnit(op.buffer, unit, elements); });
  }
  absl::Status FillUnit(int32_t index, int32_t unit, const ArrayRange& elements);
  // The unit moves into the buffer, which has room for it.
  absl::StatusOr<Tenant*> Move(int32_t index, int32_t unit);
  absl::Status IsFilled(int32_t index, int32_t unit) const;
  // Of a unit of which the rank keeps a shard, gathered into another buffer: the shard is there, and the group is the one that
  // shares it out.
  absl::Status ComesFromShards(const Gather& g) const;
  // Elements that fill the buffer with the unit, where it is filled in ranges.
  int64_t ElementsOf(int32_t index, int32_t unit) const {
    const UnitBuffer& buffer = check_.program.parameter_buffers[index];
    return buffer.IsShard() ? buffer.elements : check_.index.elements[unit];
  }
  bool HasRoom(int32_t index, int32_t unit) const;
  // The unit's place in a buffer, as constant as the buffer; null: it has none.
  template <typename Tenants>
  static auto Find(Tenants& tenants, int32_t unit) -> decltype(tenants.data()) {
    for (auto& tenant : tenants) {
      if (tenant.unit == unit) return &tenant;
    }
    return nullptr;
  }

  const ProgramCheck& check_;
  std::vector<Buffer> buffers_;
};

}  // namespace motley
