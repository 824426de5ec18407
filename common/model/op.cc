#include "common/model/op.h"

namespace motley {

std::string_view OpName(Op op) {
  switch (op) {
    case Op::kEmbed:
      return "embed";
    case Op::kNorm1:
      return "norm1";
    case Op::kQkv:
      return "qkv";
    case Op::kRotary:
      return "rotary";
    case Op::kAttention:
      return "attention";
    case Op::kAttnOut:
      return "attn_out";
    case Op::kResidual1:
      return "residual1";
    case Op::kNorm2:
      return "norm2";
    case Op::kUp:
      return "up";
    case Op::kActivation:
      return "activation";
    case Op::kDown:
      return "down";
    case Op::kResidual2:
      return "residual2";
    case Op::kFinalNorm:
      return "final_norm";
    case Op::kLmHeadLoss:
      return "lm_head_loss";
    case Op::kHeadNorm:
      return "head_norm";
    case Op::kBehind1:
      return "behind1";
    case Op::kBehind2:
      return "behind2";
  }
  return "unknown";
}

}  // namespace motley
