// What of a model lies together.
#pragma once

#include <cstdint>

namespace motley::planner {

// A run of the model's units: an embedding, layers, a head.
struct Part {
  bool embedding = false;
  int64_t first_layer = 0, layers = 0;
  bool head = false;
  int64_t units() const { return (embedding ? 1 : 0) + layers + (head ? 1 : 0); }
};

}  // namespace motley::planner
