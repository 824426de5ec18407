#include "common/model/operators.h"

#include <algorithm>
#include <cstdlib>

namespace motley {
namespace {

// Element operations per element, forward; backward twice as many unless said otherwise. Small against the products,
// and the same numbers slow an emulated device down and price it.
constexpr double kLayerNormFlops = 8;
constexpr double kRmsNormFlops = 5;
constexpr double kGeluFlops = 10;
constexpr double kSwiGluFlops = 6;
constexpr double kRotaryFlops = 3;
// Backward of the flash kind computes the scores again: five products of the square instead of two.
constexpr double kAttentionBackwardRatio = 2.5;
// The head keeps no logits: its backward computes them again before the two products of the gradients.
constexpr double kHeadBackwardRatio = 3;
constexpr int64_t kTokenBytes = 8;  // int64

double NormFlops(NormKind norm) {
  switch (norm) {
    case NormKind::kLayerNorm:
      return kLayerNormFlops;
    case NormKind::kRmsNorm:
      return kRmsNormFlops;
  }
  std::abort();
}

double ActivationFlops(ActivationKind activation) {
  switch (activation) {
    case ActivationKind::kGeluTanh:
      return kGeluFlops;
    case ActivationKind::kSwiGlu:
      return kSwiGluFlops;
  }
  std::abort();
}

// Sizes of one microbatch of one shape, in elements and FLOPs.
class UnitTable {
 public:
  UnitTable(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype)
      : shape_(shape),
        traits_(TraitsOf(shape.family)),
        seq_len_(seq_len),
        tokens_(samples * seq_len),
        size_(SizeOfBytes(dtype)) {}

  std::vector<OpCost> Embedding() const {
    const double added = Elements(shape_.hidden_size);
    const auto tables = static_cast<double>(TablesOf(traits_.positions));
    // The microbatch's tokens and targets stay on the device from forward to backward.
    return {{Op::kEmbed, added * tables, added * tables, 2 * kTokenBytes * tokens_}};
  }

  std::vector<OpCost> Layer() const {
    const int64_t h = shape_.hidden_size, up = shape_.intermediate_size;
    const int64_t q = shape_.num_heads * shape_.head_dim, kv = shape_.num_kv_heads * shape_.head_dim;
    const int64_t up_width = UpProductsOf(traits_.activation) * up;
    std::vector<OpCost> ops;
    ops.push_back(Norm(Op::kNorm1));
    ops.push_back(Product(Op::kQkv, h, q + 2 * kv, traits_.biases.qkv, Bytes(h)));
    switch (traits_.positions) {
      case PositionKind::kLearned:
        break;  // the embedding has added them
      case PositionKind::kRotary:
        ops.push_back({Op::kRotary, kRotaryFlops * Elements(q + kv), kRotaryFlops * Elements(q + kv), 0});
        break;
    }
    ops.push_back(Attention(q, kv));
    ops.push_back(Product(Op::kAttnOut, q, h, traits_.biases.out, 0));  // its input is the attention's output, kept there
    ops.push_back({Op::kResidual1, Elements(h), Elements(h), 0});
    ops.push_back(Norm(Op::kNorm2));
    ops.push_back(Product(Op::kUp, h, up_width, traits_.biases.mlp, Bytes(h)));
    const double activation = ActivationFlops(traits_.activation) * Elements(up);
    ops.push_back({Op::kActivation, activation, 2 * activation, Bytes(up_width)});
    ops.push_back(Product(Op::kDown, up, h, traits_.biases.mlp, Bytes(up)));
    ops.push_back({Op::kResidual2, Elements(h), Elements(h), 0});
    return ops;
  }

  std::vector<OpCost> Head() const {
    const double logits = 2 * Elements(shape_.hidden_size) * static_cast<double>(shape_.vocab_size);
    return {Norm(Op::kFinalNorm), {Op::kLmHeadLoss, logits, kHeadBackwardRatio * logits, Bytes(shape_.hidden_size)}};
  }

 private:
  double Elements(int64_t width) const { return static_cast<double>(tokens_) * static_cast<double>(width); }
  int64_t Bytes(int64_t width) const { return tokens_ * width * size_; }
  // Of half tensors in float32.
  int64_t StatisticsBytes(int64_t width) const { return tokens_ * width * std::max(size_, SizeOfBytes(DType::kFloat32)); }

  // Keeps its input and the statistics of each token.
  OpCost Norm(Op op) const {
    const double flops = NormFlops(traits_.norm) * Elements(shape_.hidden_size);
    return {op, flops, 2 * flops, Bytes(shape_.hidden_size) + StatisticsBytes(StatisticsOf(traits_.norm))};
  }

  OpCost Product(Op op, int64_t in, int64_t out, bool with_bias, int64_t saved_bytes) const {
    const double bias = with_bias ? Elements(out) : 0;
    const double product = 2 * Elements(in) * static_cast<double>(out);
    return {op, product + bias, 2 * product + bias, saved_bytes};
  }

  // Keeps q, k, v, the output, and the logarithm of the softmax's sum for each head and token.
  OpCost Attention(int64_t q, int64_t kv) const {
    const double forward = 2 * Elements(q) * static_cast<double>(seq_len_);  // two products of 2 x the square, half of it
    return {Op::kAttention, forward, kAttentionBackwardRatio * forward,
            Bytes(2 * q + 2 * kv) + StatisticsBytes(shape_.num_heads)};
  }

  const ModelShape& shape_;
  const FamilyTraits& traits_;
  const int64_t seq_len_, tokens_, size_;
};

}  // namespace

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
  }
  return "unknown";
}

std::vector<OpCost> UnitOperators(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len, DType dtype) {
  const UnitTable table(shape, samples, seq_len, dtype);
  switch (unit) {
    case UnitKind::kEmbedding:
      return table.Embedding();
    case UnitKind::kLayer:
      return table.Layer();
    case UnitKind::kHead:
      return table.Head();
  }
  return {};
}

double ForwardFlops(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len) {
  double sum = 0;
  for (const OpCost& op : UnitOperators(shape, unit, samples, seq_len, DType::kFloat32)) sum += op.forward_flops;
  return sum;
}

double BackwardFlops(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len) {
  double sum = 0;
  for (const OpCost& op : UnitOperators(shape, unit, samples, seq_len, DType::kFloat32)) sum += op.backward_flops;
  return sum;
}

int64_t SavedBytes(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len, DType dtype) {
  int64_t sum = 0;
  for (const OpCost& op : UnitOperators(shape, unit, samples, seq_len, dtype)) sum += op.saved_bytes;
  return sum;
}

int64_t BoundaryBytes(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype) {
  return samples * seq_len * shape.hidden_size * SizeOfBytes(dtype);
}

}  // namespace motley
