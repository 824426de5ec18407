#include "worker/engine/model/layer_functions.h"

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/activation.h"
#include "worker/engine/operators/head_norm.h"
#include "worker/engine/operators/norm.h"
#include "worker/engine/operators/projection.h"
#include "worker/engine/operators/residual.h"

namespace motley::engine {
namespace {

using enum LayerValue;
using Weight = at::Tensor LayerTensors::*;

// A norm and a product stand twice and more in a layer: each place names its tensors.
struct NormPlace {
  LayerValue input, mean, rstd, scale, shift, output;
  Weight weight, bias;
};
constexpr NormPlace kNorm1Place = {
    kInput, kMean1, kRstd1, kScale1, kShift1, kNormed1, &LayerTensors::norm1, &LayerTensors::norm1_bias};
constexpr NormPlace kNorm2Place = {
    kResidual, kMean2, kRstd2, kScale2, kShift2, kNormed2, &LayerTensors::norm2, &LayerTensors::norm2_bias};

constexpr NormPlace kNorm1Behind = {
    kProjected1, kMean1, kRstd1, kScale1, kShift1, kResidual, &LayerTensors::norm1, &LayerTensors::norm1_bias};
constexpr NormPlace kNorm2Behind = {
    kProjected2, kMean2, kRstd2, kScale2, kShift2, kOutput, &LayerTensors::norm2, &LayerTensors::norm2_bias};

// Of those that come behind beside others: neither means nor biases.
struct BehindPlace {
  LayerValue input, rstd, scale, output;
  Weight weight;
};
constexpr BehindPlace kBehind1Place = {kProjected1, kBehindRstd1, kBehindScale1, kResidual, &LayerTensors::behind1};
constexpr BehindPlace kBehind2Place = {kProjected2, kBehindRstd2, kBehindScale2, kOutput, &LayerTensors::behind2};

template <const BehindPlace& kAt>
struct NormBehind {
  static void Forward(LayerFrame& f) {
    NormStats stats;
    f.Value(kAt.output) =
        NormForward(f.traits.norm, f.Value(kAt.input), f.weights.*kAt.weight, at::Tensor(), f.shape.norm_eps, stats, f.kernels);
    f.Value(kAt.rstd) = stats.rstd;
  }
  static void BackwardInput(LayerFrame& f) {
    NormGradients made = NormBackward(f.traits.norm, f.Gradient(kAt.output), f.Value(kAt.input), f.weights.*kAt.weight,
                                      at::Tensor(), {at::Tensor(), f.Value(kAt.rstd)}, f.kernels);
    f.Gradient(kAt.scale) = made.weight;
    f.AddGradient(kAt.input, std::move(made.input));
  }
  static void BackwardWeight(LayerFrame& f) { (f.weight_gradients.*kAt.weight).add_(f.Gradient(kAt.scale)); }
};

template <const NormPlace& kAt>
struct Norm {
  static void Forward(LayerFrame& f) { ForwardOfSum(f, at::Tensor()); }
  static void ForwardOfSum(LayerFrame& f, const at::Tensor& carried) {
    NormStats stats;
    f.Value(kAt.output) = NormForward(f.traits.norm, f.Value(kAt.input), f.weights.*kAt.weight, f.weights.*kAt.bias,
                                      f.shape.norm_eps, stats, f.kernels, carried);
    f.Value(kAt.mean) = stats.mean;
    f.Value(kAt.rstd) = stats.rstd;
  }
  static void BackwardInput(LayerFrame& f) {
    NormGradients made = NormBackward(f.traits.norm, f.Gradient(kAt.output), f.Value(kAt.input), f.weights.*kAt.weight,
                                      f.weights.*kAt.bias, {f.Value(kAt.mean), f.Value(kAt.rstd)}, f.kernels,
                                      /*carried=*/f.Gradient(kAt.input), kAt.input == kInput ? f.mark : nullptr);
    f.Gradient(kAt.scale) = made.weight;
    f.Gradient(kAt.shift) = made.bias;
    f.Gradient(kAt.input) = std::move(made.input);
  }
  static void BackwardWeight(LayerFrame& f) {
    (f.weight_gradients.*kAt.weight).add_(f.Gradient(kAt.scale));
    if (f.Gradient(kAt.shift).defined()) (f.weight_gradients.*kAt.bias).add_(f.Gradient(kAt.shift));
  }
};

// Of a matrix the dimension comes first that tensor parallelism divides (common/model/parameters.h).
struct ProductPlace {
  LayerValue input, output;
  Weight weight, bias;
  WeightLayout layout;
};
constexpr ProductPlace kQkvPlace = {kNormed1, kHeads, &LayerTensors::qkv, &LayerTensors::qkv_bias, WeightLayout::kOutIn};
constexpr ProductPlace kOutPlace = {kAttended, kResidual, &LayerTensors::out, &LayerTensors::out_bias, WeightLayout::kInOut};
constexpr ProductPlace kUpPlace = {kNormed2, kUp, &LayerTensors::up, &LayerTensors::up_bias, WeightLayout::kOutIn};
constexpr ProductPlace kDownPlace = {kActivated, kOutput, &LayerTensors::down, &LayerTensors::down_bias, WeightLayout::kInOut};

// Where norms come behind.
constexpr ProductPlace kQkvOfInput = {kInput, kHeads, &LayerTensors::qkv, &LayerTensors::qkv_bias, WeightLayout::kOutIn};
constexpr ProductPlace kOutToNorm = {kAttended, kProjected1, &LayerTensors::out, &LayerTensors::out_bias, WeightLayout::kInOut};
constexpr ProductPlace kUpOfResidual = {kResidual, kUp, &LayerTensors::up, &LayerTensors::up_bias, WeightLayout::kOutIn};
constexpr ProductPlace kDownToNorm = {kActivated, kProjected2, &LayerTensors::down, &LayerTensors::down_bias,
                                      WeightLayout::kInOut};

template <const ProductPlace& kAt>
struct Product {
  static void Forward(LayerFrame& f) {
    f.Value(kAt.output) = ProjectionForward(f.Value(kAt.input), f.weights.*kAt.weight, f.weights.*kAt.bias, kAt.layout);
  }
  static void BackwardInput(LayerFrame& f) {
    f.AddGradient(kAt.input, ProjectionBackwardInput(f.Gradient(kAt.output), f.weights.*kAt.weight, kAt.layout));
  }
  static void BackwardWeight(LayerFrame& f) {
    ProjectionBackwardWeight(f.Gradient(kAt.output), f.Value(kAt.input), kAt.layout, f.weight_gradients.*kAt.weight,
                             f.weight_gradients.*kAt.bias, f.kernels);
  }
};

// In place, of queries and keys. What they were stays beside them: a norm's backward reads its input.
struct HeadNormOfLayer {
  static void Forward(LayerFrame& f) {
    const HeadNormSaved saved =
        HeadNormForward(f.Value(kHeads), f.heads(), f.traits.head_norm, f.weights.head_norm, f.shape.norm_eps, f.traits.norm);
    f.Value(kRawHeads) = saved.raw;
    f.Value(kHeadsRstd) = saved.rstd;
  }
  static void BackwardInput(LayerFrame& f) {
    f.Gradient(kHeadsScale) = HeadNormBackward(f.Gradient(kHeads), {f.Value(kRawHeads), f.Value(kHeadsRstd)}, f.heads(),
                                               f.traits.head_norm, f.weights.head_norm, f.traits.norm);
  }
  static void BackwardWeight(LayerFrame& f) { f.weight_gradients.head_norm.add_(f.Gradient(kHeadsScale)); }
};

// In place, of queries and keys.
struct Rotary {
  static void Forward(LayerFrame& f) {
    const HeadLayout heads = f.heads();
    at::Tensor qkv = f.BySample(f.Value(kHeads));
    RotaryForward(f.rotary, qkv, heads.heads + heads.kv_heads, f.kernels);
  }
  static void BackwardInput(LayerFrame&) {}  // attention's, which runs right before it, has turned them back
};

struct Attention {
  static void Forward(LayerFrame& f) {
    const AttentionOutput made = AttentionForward(f.BySample(f.Value(kHeads)), f.heads(), f.borders, f.attention);
    f.Value(kAttended) = AsRows(made.output);
    f.Value(kLogsumexp) = made.logsumexp;
  }
  static void BackwardInput(LayerFrame& f) {
    f.Gradient(kHeads) = AsRows(AttentionBackward(f.BySample(f.Gradient(kAttended)), f.BySample(f.Value(kHeads)),
                                                  {f.BySample(f.Value(kAttended)), f.Value(kLogsumexp)}, f.heads(), f.borders,
                                                  f.attention, {&f.rotary, f.kernels}));
  }
};

struct Activation {
  static void Forward(LayerFrame& f) { f.Value(kActivated) = ActivationForward(f.traits.activation, f.Value(kUp), f.kernels); }
  static void BackwardInput(LayerFrame& f) {
    f.Gradient(kUp) = ActivationBackward(f.traits.activation, f.Gradient(kActivated), f.Value(kUp), f.kernels);
  }
};

// Adds what is carried past a product to what the product made, in place. The same gradient is that of both. Where the product
// made a term of a group's sum, what is carried is added behind the sum, by who sums.
template <LayerValue kCarried, LayerValue kSum>
struct Residual {
  static void Forward(LayerFrame& f) {
    if (f.adds_carried) AddCarried(f.Value(kSum), f.Value(kCarried), f.kernels, kSum == kOutput ? f.mark : nullptr);
  }
  static void BackwardInput(LayerFrame& f) {
    if (f.adds_carried) f.Gradient(kCarried) = f.Gradient(kSum);
  }
};

// The first residual and the norm that reads its sum. Each of them alone makes the same bits.
void ResidualThenNorm(LayerFrame& f) { Norm<kNorm2Place>::ForwardOfSum(f, f.adds_carried ? f.Value(kInput) : at::Tensor()); }

template <typename Operator>
constexpr LayerFunctions With() {
  if constexpr (requires { &Operator::BackwardWeight; }) {
    return {Operator::Forward, Operator::BackwardInput, Operator::BackwardWeight};
  } else {
    return {Operator::Forward, Operator::BackwardInput, nullptr};
  }
}
template <typename Operator>
inline constexpr LayerFunctions kFunctions = With<Operator>();

}  // namespace

LayerFunction JoinedForward(Op op, Op next, NormPlaces norms) {
  return op == Op::kResidual1 && next == Op::kNorm2 && norms != NormPlaces::kBehind ? ResidualThenNorm : nullptr;
}

const LayerFunctions& FunctionsOf(Op op, NormPlaces norms) {
  const bool before = norms != NormPlaces::kBehind, last = norms == NormPlaces::kBefore;  // whether what products make is added
  switch (op) {
    case Op::kNorm1:
      return before ? kFunctions<Norm<kNorm1Place>> : kFunctions<Norm<kNorm1Behind>>;
    case Op::kQkv:
      return before ? kFunctions<Product<kQkvPlace>> : kFunctions<Product<kQkvOfInput>>;
    case Op::kRotary:
      return kFunctions<Rotary>;
    case Op::kHeadNorm:
      return kFunctions<HeadNormOfLayer>;
    case Op::kAttention:
      return kFunctions<Attention>;
    case Op::kAttnOut:
      return last ? kFunctions<Product<kOutPlace>> : kFunctions<Product<kOutToNorm>>;
    case Op::kBehind1:
      return kFunctions<NormBehind<kBehind1Place>>;
    case Op::kBehind2:
      return kFunctions<NormBehind<kBehind2Place>>;
    case Op::kResidual1:
      return kFunctions<Residual<kInput, kResidual>>;
    case Op::kNorm2:
      return before ? kFunctions<Norm<kNorm2Place>> : kFunctions<Norm<kNorm2Behind>>;
    case Op::kUp:
      return before ? kFunctions<Product<kUpPlace>> : kFunctions<Product<kUpOfResidual>>;
    case Op::kActivation:
      return kFunctions<Activation>;
    case Op::kDown:
      return last ? kFunctions<Product<kDownPlace>> : kFunctions<Product<kDownToNorm>>;
    case Op::kResidual2:
      return kFunctions<Residual<kResidual, kOutput>>;
    case Op::kEmbed:
    case Op::kFinalNorm:
    case Op::kLmHeadLoss:
      break;
  }
  TORCH_CHECK(false, "no layer has the operator ", OpName(op));
}

}  // namespace motley::engine
