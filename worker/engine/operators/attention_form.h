// What attention computes of a layer beside its heads.
#pragma once

#include <cstdint>

namespace motley::engine {

struct AttentionForm {
  int64_t window = 0;  // a position sees the last so many, itself among them; 0: all earlier ones
  double scale = 0;    // of the scores; 0: 1 / sqrt(head_dim)

  // Of `tokens` that are seen together: one that holds them all leaves none out.
  int64_t WindowOver(int64_t tokens) const { return window < tokens ? window : 0; }
};

}  // namespace motley::engine
