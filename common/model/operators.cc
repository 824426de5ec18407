#include "common/model/operators.h"

#include <algorithm>
#include <cstdlib>

#include "common/model/layer_table.h"

namespace motley {
namespace {

// Element operations per element, forward; backward twice as many unless said otherwise. Small against the products,
// and the same numbers slow an emulated device down and price it.
constexpr double kLayerNormFlops = 8;
constexpr double kRmsNormFlops = 5;
constexpr double kGeluFlops = 10;
constexpr double kSwiGluFlops = 6;
constexpr double kGeGluFlops = 11;
constexpr double kRotaryFlops = 3;
// Backward of the flash kind computes the scores again: five products of the square instead of two.
constexpr double kAttentionBackwardRatio = 2.5;
// The head keeps no logits: its backward makes them, or makes them again, before the two products of the gradients.
constexpr double kHeadBackwardRatio = 3;
constexpr int64_t kTokenBytes = 8;  // int64

double NormFlops(NormKind norm) {
  switch (norm) {
    case NormKind::kLayerNorm:
      return kLayerNormFlops;
    case NormKind::kRmsNorm:
    case NormKind::kRmsNormPlusOne:
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
    case ActivationKind::kGeGlu:
      return kGeGluFlops;
  }
  std::abort();
}

// Sizes of one microbatch of one shape, in elements, bytes and FLOPs.
class UnitTable {
 public:
  UnitTable(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype)
      : shape_(shape),
        traits_(TraitsOf(shape.family)),
        seq_len_(seq_len),
        tokens_(samples * seq_len),
        size_(SizeOfBytes(dtype)),
        h_(shape.hidden_size),
        up_(shape.intermediate_size),
        up_width_(UpProductsOf(traits_.activation) * up_),
        q_(shape.num_heads * shape.head_dim),
        kv_(shape.num_kv_heads * shape.head_dim) {}

  std::vector<OpCost> Embedding() const {
    const double added = Elements(h_);
    const auto tables = static_cast<double>(TablesOf(traits_.positions));
    OpCost embed = Undivided(Op::kEmbed, added * tables, Traffic(1 + TablesOf(traits_.positions), h_));
    embed.backward_weight_flops = added * tables;
    // The microbatch's tokens and targets stay on the device from forward to backward.
    embed.output_bytes = 2 * kTokenBytes * tokens_;
    return {embed};
  }

  std::vector<OpCost> Layer() const {
    std::vector<OpCost> ops;
    for (const LayerOperator& row : LayerOperatorsOf(traits_)) {
      OpCost cost = CostOf(row.op);
      cost.op = row.op;
      cost.divided = row.divided;
      MadeBy(OpSet().With(row.op), traits_).ForEach([&](LayerValue value) {
        cost.output_bytes += BytesOf(value);
        cost.output_divided = IsDivided(value);
      });
      ops.push_back(cost);
    }
    return ops;
  }

  std::vector<OpCost> Head() const {
    OpCost norm = Norm();
    norm.op = Op::kFinalNorm;
    norm.divided = norm.output_divided = false;
    norm.backward_input_flops += norm.forward_flops;  // TrainsInBackward
    norm.output_bytes = Bytes(h_) + StatisticsBytes(StatisticsOf(traits_.norm));
    OpCost loss = Product(h_, shape_.vocab_size, false);
    loss.op = Op::kLmHeadLoss;
    loss.output_divided = false;
    // Both gradients are made while a chunk's logits are there.
    loss.backward_input_flops = kHeadBackwardRatio * loss.forward_flops;
    loss.backward_weight_flops = 0;
    // The chunk's logits are written and read again by the loss.
    loss.activation_bytes = Traffic(1, h_) + Traffic(3, shape_.vocab_size);
    return {norm, loss};
  }

  int64_t BytesOf(LayerValue value) const {
    switch (value) {
      case LayerValue::kInput:
      case LayerValue::kResidual:
      case LayerValue::kOutput:
        return Bytes(h_);
      case LayerValue::kNormed1:
      case LayerValue::kNormed2:
        return traits_.norm_places != NormPlaces::kBehind ? Bytes(h_) : 0;
      case LayerValue::kProjected1:
      case LayerValue::kProjected2:
        return traits_.norm_places != NormPlaces::kBefore ? Bytes(h_) : 0;
      case LayerValue::kBehindRstd1:
      case LayerValue::kBehindRstd2:
        return traits_.norm_places == NormPlaces::kBoth ? StatisticsBytes(1) : 0;
      case LayerValue::kBehindScale1:
      case LayerValue::kBehindScale2:
        return traits_.norm_places == NormPlaces::kBoth ? h_ * StatisticsSize() : 0;
      case LayerValue::kMean1:
      case LayerValue::kMean2:
        return StatisticsBytes(StatisticsOf(traits_.norm) - 1);
      case LayerValue::kRstd1:
      case LayerValue::kRstd2:
        return StatisticsBytes(1);
      case LayerValue::kScale1:
      case LayerValue::kScale2:
        return h_ * StatisticsSize();
      case LayerValue::kShift1:
      case LayerValue::kShift2:
        return traits_.biases.norm ? h_ * StatisticsSize() : 0;
      case LayerValue::kHeads:
        return Bytes(q_ + 2 * kv_);
      case LayerValue::kRawHeads:
        return HasHeadNorm() ? Bytes(q_ + kv_) : 0;
      case LayerValue::kHeadsRstd:
        return HasHeadNorm() ? StatisticsBytes(NormedGroups()) : 0;
      case LayerValue::kHeadsScale:
        return HasHeadNorm() ? (NormedByHead() ? 2 * shape_.head_dim : q_ + kv_) * StatisticsSize() : 0;
      case LayerValue::kLogsumexp:  // of the softmax, for each head and token
        return StatisticsBytes(shape_.num_heads);
      case LayerValue::kAttended:
        return Bytes(q_);
      case LayerValue::kUp:
        return Bytes(up_width_);
      case LayerValue::kActivated:
        return Bytes(up_);
    }
    std::abort();
  }

 private:
  // Work and traffic of an operator of a layer.
  OpCost CostOf(Op op) const {
    switch (op) {
      case Op::kNorm1:
      case Op::kNorm2:
      case Op::kBehind1:
      case Op::kBehind2:
        return Norm();
      case Op::kQkv:
        return Product(h_, q_ + 2 * kv_, traits_.biases.qkv);
      case Op::kRotary:
        return Elementwise(kRotaryFlops * Elements(q_ + kv_), kRotaryFlops * Elements(q_ + kv_), Traffic(2, q_ + kv_));
      case Op::kHeadNorm: {  // reads the heads, writes them and keeps what they were
        const double flops = NormFlops(traits_.norm) * Elements(q_ + kv_);
        return Elementwise(flops, 2 * flops, Traffic(3, q_ + kv_));
      }
      case Op::kAttention:
        return Attention();
      case Op::kAttnOut:
        return Product(q_, h_, traits_.biases.out);
      case Op::kResidual1:
      case Op::kResidual2:
        return Elementwise(Elements(h_), Elements(h_), Traffic(3, h_));
      case Op::kUp:
        return Product(h_, up_width_, traits_.biases.mlp);
      case Op::kActivation: {
        const double flops = ActivationFlops(traits_.activation) * Elements(up_);
        return Elementwise(flops, 2 * flops, Traffic(1, up_width_ + up_));
      }
      case Op::kDown:
        return Product(up_, h_, traits_.biases.mlp);
      case Op::kEmbed:
      case Op::kFinalNorm:
      case Op::kLmHeadLoss:
        break;  // of no layer
    }
    std::abort();
  }

  bool HasHeadNorm() const { return traits_.head_norm != HeadNorm::kNone; }
  bool NormedByHead() const { return traits_.head_norm == HeadNorm::kByHead; }
  // What norms of heads normalise by itself.
  int64_t NormedGroups() const { return NormedByHead() ? shape_.num_heads + shape_.num_kv_heads : 2; }
  double Elements(int64_t width) const { return static_cast<double>(tokens_) * static_cast<double>(width); }
  int64_t Bytes(int64_t width) const { return tokens_ * width * size_; }
  // Of half tensors in float32.
  int64_t StatisticsSize() const { return std::max(size_, SizeOfBytes(DType::kFloat32)); }
  int64_t StatisticsBytes(int64_t width) const { return tokens_ * width * StatisticsSize(); }
  double Traffic(int64_t times, int64_t width) const { return static_cast<double>(times * Bytes(width)); }

  static OpCost Elementwise(double forward, double backward, double traffic) {
    OpCost cost;
    cost.forward_flops = forward;
    cost.backward_input_flops = backward;
    cost.activation_bytes = traffic;
    return cost;
  }
  static OpCost Undivided(Op op, double forward, double traffic) {
    OpCost cost = Elementwise(forward, 0, traffic);
    cost.op = op;
    cost.divided = cost.output_divided = false;
    return cost;
  }
  // The sums for its weights are made in the pass over its input.
  OpCost Norm() const {
    const double flops = NormFlops(traits_.norm) * Elements(h_);
    return Elementwise(flops, 2 * flops, Traffic(2, h_));
  }
  OpCost Product(int64_t in, int64_t out, bool with_bias) const {
    const double bias = with_bias ? Elements(out) : 0, product = 2 * Elements(in) * static_cast<double>(out);
    OpCost cost;
    cost.is_matrix = true;
    cost.forward_flops = product + bias;
    cost.backward_input_flops = product;
    cost.backward_weight_flops = product + bias;
    cost.activation_bytes = Traffic(1, in) + Traffic(1, out);
    cost.weight_bytes = static_cast<double>(size_) * static_cast<double>(in) * static_cast<double>(out);
    return cost;
  }
  OpCost Attention() const {
    // Two products of 2 x the square, half of it.
    const double forward = 2 * Elements(q_) * static_cast<double>(seq_len_);
    OpCost cost = Elementwise(forward, kAttentionBackwardRatio * forward, Traffic(2, q_) + Traffic(2, kv_));
    cost.is_matrix = true;
    return cost;
  }

  const ModelShape& shape_;
  const FamilyTraits& traits_;
  const int64_t seq_len_, tokens_, size_;
  const int64_t h_, up_, up_width_, q_, kv_;  // columns
};

}  // namespace

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
  for (const OpCost& op : UnitOperators(shape, unit, samples, seq_len, DType::kFloat32)) sum += op.backward_flops();
  return sum;
}

int64_t SavedBytes(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len, DType dtype) {
  if (TrainsInBackward(unit)) return BoundaryBytes(shape, samples, seq_len, dtype);
  // The embedding's input are tokens, which stand with the operator.
  int64_t sum = unit == UnitKind::kEmbedding ? 0 : BoundaryBytes(shape, samples, seq_len, dtype);
  for (const OpCost& op : UnitOperators(shape, unit, samples, seq_len, dtype)) sum += op.output_bytes;
  return sum;
}

int64_t WaitingBytes(const ModelShape& shape, UnitKind unit, int64_t samples, int64_t seq_len, DType dtype) {
  switch (unit) {
    case UnitKind::kEmbedding:
      return BoundaryBytes(shape, samples, seq_len, dtype);
    case UnitKind::kLayer:
      break;
    case UnitKind::kHead:
      return 0;
  }
  const UnitTable table(shape, samples, seq_len, dtype);
  const std::span<const LayerOperator> rows = LayerOperatorsOf(TraitsOf(shape.family));
  int64_t bytes = 0;
  WaitingValues(rows).ForEach([&](LayerValue value) { bytes += table.BytesOf(value); });
  WaitingGradients(rows).ForEach([&](LayerValue value) { bytes += table.BytesOf(value); });
  return bytes;
}

int64_t ValueBytes(const ModelShape& shape, LayerValue value, int64_t samples, int64_t seq_len, DType dtype) {
  return UnitTable(shape, samples, seq_len, dtype).BytesOf(value);
}

int64_t HeadRowsOfCards(int64_t vocab_size) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  int64_t rows = kMostHeadRows;
  while (rows > kHeadChunkTokens && rows * LogitColumns(vocab_size) * SizeOfBytes(DType::kFloat32) > kMostBytes) rows /= 2;
  return rows;
}

int64_t BoundaryBytes(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype) {
  return samples * seq_len * shape.hidden_size * SizeOfBytes(dtype);
}

}  // namespace motley
