// The operators that the model's units consist of, by name and number.
#pragma once

#include <string_view>

namespace motley {

// Programs name operators by these numbers, stored ones too: a new one comes last. The order in which a layer runs them is its
// table's (layer_table.h).
enum class Op {
  kEmbed,  // token (and learned position) lookup
  kNorm1,
  kQkv,
  kRotary,
  kAttention,
  kAttnOut,
  kResidual1,
  kNorm2,
  kUp /* gate and up for SwiGLU */,
  kActivation,
  kDown,
  kResidual2,
  kFinalNorm,
  kLmHeadLoss,  // chunked projection + cross entropy
  kHeadNorm,    // of a layer, behind kQkv
  kBehind1,     // of a layer with norms before and behind: that behind kAttnOut
  kBehind2,     // that behind kDown
};
inline constexpr int kNumOps = static_cast<int>(Op::kBehind2) + 1;
std::string_view OpName(Op op);

}  // namespace motley
