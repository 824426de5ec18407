// What of a model lies together.
#pragma once

#include <cstdint>

#include "common/model/parameters.h"

namespace motley::planner {

// A run of the model's units: an embedding, layers, a head.
struct Part {
  bool embedding = false;
  int64_t first_layer = 0, layers = 0;
  bool head = false;
  int64_t units() const { return (embedding ? 1 : 0) + layers + (head ? 1 : 0); }
  // What its units have together, `each(kind)` of one.
  template <typename Each>
  auto Sum(Each each) const {
    using Number = decltype(each(UnitKind::kLayer));
    return (embedding ? each(UnitKind::kEmbedding) : Number{0}) + static_cast<Number>(layers) * each(UnitKind::kLayer) +
           (head ? each(UnitKind::kHead) : Number{0});
  }
};

}  // namespace motley::planner
