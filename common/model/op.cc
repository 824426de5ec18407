#include "common/model/op.h"

#include <array>

namespace motley {

std::string_view OpName(Op op) {
  constexpr std::array<std::string_view, kNumOps> kNames = {
      "embed",      "norm1", "qkv",       "rotary",     "attention",    "attn_out",  "residual1", "norm2",  "up",
      "activation", "down",  "residual2", "final_norm", "lm_head_loss", "head_norm", "behind1",   "behind2"};
  static_assert(!kNames.back().empty());  // a name for each
  return kNames[static_cast<size_t>(op)];
}

}  // namespace motley
