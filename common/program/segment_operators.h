// Which operators a segment of a unit runs.
#pragma once

#include "common/model/layer_table.h"
#include "common/program/operation_traits.h"

namespace motley {

// Of a layer, attention with its norm and residual comes before the MLP. A head's logits are all of its work: what the loss adds
// to them, and keeps, is a number for each token.
inline bool RunsIn(UnitSegment segment, Op op) {
  switch (segment) {
    case UnitSegment::kWhole:
    case UnitSegment::kLogits:
      return true;
    case UnitSegment::kAttention:
      return InAttention(op);
    case UnitSegment::kMlp:
      return !InAttention(op);
    case UnitSegment::kLoss:
      return false;
  }
  return true;
}

}  // namespace motley
