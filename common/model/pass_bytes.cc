#include "common/model/pass_bytes.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "common/model/layer_passes.h"
#include "common/model/model_family.h"
#include "common/model/operators.h"

namespace motley {
namespace {

// Bytes of what the engine's functions make for themselves (worker/engine/operators).
class Temporaries {
 public:
  Temporaries(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype)
      : shape_(shape),
        traits_(TraitsOf(shape.family)),
        tokens_(samples * seq_len),
        size_(SizeOfBytes(dtype)),
        wide_(std::max(size_, SizeOfBytes(DType::kFloat32))) {}

  // Of the sum of what a norm's function makes, beside the gradient of its input. RMSNorm is made of several: the normed input,
  // the gradient and a product of both, in float32 at least, whence half tensors are widened first.
  int64_t OfNorm() const {
    switch (traits_.norm) {
      case NormKind::kLayerNorm:
        return 0;
      case NormKind::kRmsNorm:
      case NormKind::kRmsNormPlusOne:
        return OfRms(shape_.hidden_size) - Rows(shape_.hidden_size, size_);
    }
    std::abort();
  }

  int64_t OfInput(Op op) const {
    const int64_t queries = shape_.num_heads * shape_.head_dim, keys = shape_.num_kv_heads * shape_.head_dim;
    switch (op) {
      case Op::kNorm1:
      case Op::kNorm2:
      case Op::kBehind1:
      case Op::kBehind2:
        return OfNorm();
      case Op::kHeadNorm:       // in place: nothing of it is the gradient that stays
        return OfRms(queries);  // the keys' behind them
      case Op::kRotary:         // half of each rotated head
        return Rows(queries + keys, size_) / 2;
      case Op::kAttention:  // queries', keys' and values' gradients, before they stand side by side
        return Rows(queries + 2 * keys, size_);
      case Op::kActivation:
        return UpProductsOf(traits_.activation) > 1 ? Rows(shape_.intermediate_size, size_) : 0;
      default:
        return 0;
    }
  }

  // A product of half tensors is made before it is added to float32 gradients.
  // `operators`: those of WithProducts.
  static int64_t OfWeight(const std::vector<OpCost>& operators, Op op) {
    for (const OpCost& cost : operators) {
      if (cost.op == op) return static_cast<int64_t>(cost.weight_bytes);
    }
    return 0;
  }
  std::vector<OpCost> WithProducts() const {
    if (!is_half()) return {};
    return UnitOperators(shape_, UnitKind::kLayer, 1, 1, DType::kBFloat16);
  }

  // A part's gradients of the rows stand beside what the norm made, the whole's in its place.
  int64_t OfHead(bool is_part, int64_t rows) const {
    const int64_t chunk = std::min(tokens_, rows), vocabulary = shape_.vocab_size, columns = shape_.hidden_size;
    const int64_t elements = chunk * LogitColumns(vocabulary);  // of logits or their gradients
    const int64_t logits = elements * (wide_ + (is_half() ? size_ : 0));
    // The weights' gradient is made in two parts, of a multiple of 64 words and of the rest.
    const int64_t whole = vocabulary / kLogitColumns * kLogitColumns, part = std::max(whole, vocabulary - whole);
    const int64_t weights = is_half() ? (elements + columns * part) * size_ : 0;
    const int64_t at_logits = std::max({logits, weights, (elements + chunk * columns) * size_});
    const int64_t statistics = is_part ? 0 : Rows(StatisticsOf(traits_.norm), wide_);
    return statistics + Rows(columns, size_) + std::max(at_logits, Rows(columns, size_) + OfNorm());
  }

 private:
  int64_t OfRms(int64_t columns) const { return Rows(columns, 3 * wide_ + (is_half() ? wide_ : 0)); }
  bool is_half() const { return wide_ > size_; }
  int64_t Rows(int64_t columns, int64_t size) const { return tokens_ * columns * size; }

  const ModelShape& shape_;
  const FamilyTraits& traits_;
  const int64_t tokens_, size_, wide_;
};

int64_t MostBytes(const LayerPass& pass, const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype) {
  const Temporaries temporaries(shape, samples, seq_len, dtype);
  const std::vector<OpCost> with_products = temporaries.WithProducts();
  const auto bytes_of = [&](ValueSet values) {
    int64_t bytes = 0;
    values.ForEach([&](LayerValue value) { bytes += ValueBytes(shape, value, samples, seq_len, dtype); });
    return bytes;
  };
  // The caller holds the gradient of the output until the pass is over.
  const ValueSet given = ValueSet::Of(LayerValue::kOutput);
  // What is carried past attention is there until who reads the input has added to it, even if nothing else reads it.
  constexpr ValueSet kCarried = ValueSet::Of(LayerValue::kResidual);
  ValueSet gradients, carried;
  int64_t live = 0, most = 0;
  for (const PassStep& step : pass) {
    const bool is_weight = step.does == OpFunction::kBackwardWeight;
    // A residual hands on the gradient that it is given; the norm before it adds to a new one.
    const bool hands_on = step.op->op == Op::kResidual1 || step.op->op == Op::kResidual2;
    const ValueSet made = is_weight || hands_on ? ValueSet() : step.op->made_gradients().Without(gradients | given);
    live += bytes_of(made);
    gradients = gradients | made;
    most =
        std::max(most, live + (is_weight ? Temporaries::OfWeight(with_products, step.op->op) : temporaries.OfInput(step.op->op)));
    ValueSet freed = step.gradients & gradients;
    if (step.op->reads.Has(LayerValue::kInput) && !is_weight && !hands_on) {
      freed = freed | std::exchange(carried, ValueSet());
    } else {
      carried = carried | (freed & kCarried);
      freed = freed.Without(kCarried);
    }
    live -= bytes_of(freed) + bytes_of(step.values & KeptValues());
    gradients = gradients.Without(freed);
  }
  return most;
}

}  // namespace

int64_t LayerBackwardBytes(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype) {
  return MostBytes(PassesOf(TraitsOf(shape.family)).backward, shape, samples, seq_len, dtype);
}

int64_t LayerBackwardInputBytes(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype) {
  return MostBytes(PassesOf(TraitsOf(shape.family)).backward_input, shape, samples, seq_len, dtype);
}

int64_t LayerBackwardWeightBytes(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype) {
  return MostBytes(PassesOf(TraitsOf(shape.family)).backward_weight, shape, samples, seq_len, dtype);
}

int64_t HeadBackwardBytes(const ModelShape& shape, int64_t samples, int64_t seq_len, DType dtype, bool part, int64_t rows) {
  return Temporaries(shape, samples, seq_len, dtype).OfHead(part, rows);
}

}  // namespace motley
