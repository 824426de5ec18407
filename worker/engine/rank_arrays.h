// The arrays of a rank's units, by what its programs declare: whole ones (its slice of them) and shards. What gathers and sums of
// gradients move between them. Immutable; knows no torch.
#pragma once

#include <cstdint>
#include <vector>

#include "common/program/program.h"
#include "common/session/assignment.h"
#include "worker/engine/slice_map.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// Of one instruction.
struct MovedElements {
  ElementRange within;  // of the array that it names
  Owners owners;        // what each of the group has of them, counted from within.begin
  // The buffer with the rank's shard of the unit, from which they come or to which they go; -1: what the rank owns.
  int32_t shard = -1;
};

class RankArrays {
 public:
  // `assignment` must outlive it.
  explicit RankArrays(const RankAssignment& assignment);

  const SliceMap& slices() const { return slices_; }
  // Of units of which the rank keeps shards.
  const SliceMap& shards() const { return shards_; }
  const SliceMap& In(const UnitBuffer& buffer) const { return buffer.IsShard() ? shards_ : slices_; }

  // `program`: one of the assignment's.
  MovedElements MovedBy(const Program& program, const Gather& op) const;
  MovedElements MovedBy(const Program& program, const ReduceScatter& op) const;

 private:
  MovedElements Moved(const Program& program, const std::vector<UnitBuffer>& buffers, int32_t buffer, int32_t unit, int32_t group,
                      const ArrayRange& elements) const;

  const RankAssignment& assignment_;
  const SliceMap slices_, shards_;
};

}  // namespace motley::engine
