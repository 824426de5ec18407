// Which units' gradients the gradient buffers hold, instruction by instruction: rules 18 and 19 of docs/inside/program.md. Part
// of Validate (program.h).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/program/disjoint_ranges.h"
#include "common/program/program_check.h"

namespace motley {

class GradientRules {
 public:
  explicit GradientRules(const ProgramCheck& check)
      : check_(check), buffers_(check.program.gradient_buffers.size()), reduced_(check.program.num_units, -1) {}

  absl::Status Check(const ZeroGrad& z);
  absl::Status Check(const ReduceScatter& r) { return Reduce(r); }
  absl::Status Check(const AllReduce& r) { return Reduce(r); }
  // The present instruction adds gradients of the unit to the buffer.
  absl::Status Write(int32_t buffer, int32_t unit);
  // The present instruction takes the unit's sum out of the buffer, where it has stayed (ProgramIndex::sum_stays).
  absl::Status TakeSum(int32_t buffer, int32_t unit);
  absl::Status CheckEnd() const;
  // The unit's last reduction; -1 = none.
  int ReducedAt(int32_t unit) const { return reduced_[unit]; }

 private:
  struct Tenant {
    int32_t unit = -1;
    int last_write = -1;      // compute lane
    DisjointRanges elements;  // that were reduced
    int summed = -1;          // its last reduction, where the sum stays
  };
  struct Buffer {
    std::vector<Tenant> tenants;     // none = free
    int last_reduce = -1;            // instruction that reduced anything of it last
    std::map<int32_t, int> reduced;  // by unit: likewise
  };

  template <typename Op>
  absl::Status Reduce(const Op& op) {
    MOTLEY_RETURN_IF_ERROR(check_.ForUnits(op.unit, op.more_units, [&](int32_t unit) { return check_.HoldsArray(unit); }));
    MOTLEY_RETURN_IF_ERROR(check_.InGroup(op.group));
    MOTLEY_RETURN_IF_ERROR(check_.InRange("gradient buffer", op.grad, check_.program.gradient_buffers));
    if (!op.elements.whole() && op.more_units > 0) return check_.Error("a range of elements is of one unit");
    return check_.ForUnits(op.unit, op.more_units, [&](int32_t unit) -> absl::Status {
      MOTLEY_RETURN_IF_ERROR(ReduceUnit(op.grad, unit, op.elements));
      return GoesToShard(op.grad, unit) ? AddToShard(unit, op.group) : absl::OkStatus();
    });
  }
  // The unit is summed from the buffer into the shard that the rank keeps of it.
  bool GoesToShard(int32_t index, int32_t unit) const {
    const int32_t home = check_.index.gradient_home[unit];
    return home >= 0 && home != index && check_.program.gradient_buffers[home].IsShard();
  }
  absl::Status AddToShard(int32_t unit, int32_t group);
  absl::Status ReduceUnit(int32_t index, int32_t unit, const ArrayRange& elements);
  void Leave(int32_t index, const Tenant& tenant);
  bool HasRoom(int32_t index, int32_t unit) const;
  Tenant* Find(int32_t index, int32_t unit);

  const ProgramCheck& check_;
  std::vector<Buffer> buffers_;
  std::vector<int> reduced_;  // by unit
};

}  // namespace motley
