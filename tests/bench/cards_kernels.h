// Each kernel of our own beside a copy, and PyTorch's operators for the same: bytes that must be read and written, a second.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/model/model_family.h"
#include "common/model/operators.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/device/device_backend.h"
#include "worker/engine/model/optimizer.h"
#include "worker/engine/operators/activation.h"
#include "worker/engine/operators/attention.h"
#include "worker/engine/operators/half.h"
#include "worker/engine/operators/lm_head_loss.h"
#include "worker/engine/operators/norm.h"
#include "worker/engine/operators/own_bias_gradient.h"
#include "worker/engine/operators/own_rotary.h"
#include "worker/engine/operators/rotary.h"

namespace motley::engine {

using AddRate = std::function<void(const std::string& what, size_t bytes, const std::function<void()>& call)>;

// Of `rows` tokens of Llama 3 8B; a head's loss of a chunk of GPT-2's, whose logits are the usual ones.
class KernelsBench {
 public:
  KernelsBench(DType dtype, int64_t rows, DeviceBackend& backend, AddRate add)
      : type_(at::TensorOptions().dtype(ScalarTypeOf(dtype)).device(backend.tensors())),
        rows_(rows),
        own_(backend.kernels()),
        add_(std::move(add)) {}

  void Run() {
    const at::Tensor from = at::randn({rows_, 2 * kIntermediate}, type_);
    at::Tensor to = at::empty_like(from);
    add_("copy, read and written", 2 * from.nbytes(), [&] { to.copy_(from); });
    RunBy(own_);
    if (own_ != nullptr) RunBy(nullptr);  // else that was measured
  }

 private:
  static constexpr int64_t kHidden = 4096, kIntermediate = 14336;

  void RunBy(const KernelLauncher* kernels) {
    kernels_ = kernels;
    Activations();
    Norms();
    Heads();
    Bias();
    HeadLoss();
    Optimizer();
  }
  void Add(const char* what, size_t bytes, const std::function<void()>& call) const {
    add_(absl::StrCat(what, kernels_ != nullptr ? "" : ", by PyTorch's operators"), bytes, call);
  }

  void Activations() const {
    const at::Tensor input = at::randn({rows_, 2 * kIntermediate}, type_), grad = at::randn({rows_, kIntermediate}, type_);
    const size_t forward = input.nbytes() + grad.nbytes(), backward = 2 * input.nbytes() + grad.nbytes();
    Add("swiglu forward", forward, [&] { SwiGluForward(input, kernels_); });
    Add("swiglu backward", backward, [&] { SwiGluBackward(grad, input, kernels_); });
    Add("geglu forward", forward, [&] { GeGluForward(input, kernels_); });
    Add("geglu backward", backward, [&] { GeGluBackward(grad, input, kernels_); });
  }

  // With what goes past them.
  void Norms() const {
    const at::Tensor input = at::randn({rows_, kHidden}, type_), carried = at::randn({rows_, kHidden}, type_);
    const at::Tensor weight = at::ones({kHidden}, type_), bias = at::zeros({kHidden}, type_);
    for (const auto& [kind, name] : {std::pair(NormKind::kRmsNorm, "RMSNorm"), std::pair(NormKind::kLayerNorm, "LayerNorm")}) {
      NormStats stats;
      // In place: the input stays what it is as the sum of itself and zeros.
      const at::Tensor nothing = at::zeros_like(input);
      Add(absl::StrCat(name, " forward, with the residual before it").c_str(), 4 * input.nbytes(),
          [&] { NormForward(kind, input, weight, bias, 1e-5, stats, kernels_, nothing); });
      Add(absl::StrCat(name, " backward, with what goes past it").c_str(), 4 * input.nbytes(),
          [&] { NormBackward(kind, carried, input, weight, bias, stats, kernels_, carried); });
    }
  }

  void Heads() const {
    const HeadLayout heads{.heads = 32, .kv_heads = 8, .head_dim = 128};
    const RotaryTables made = MakeRotaryTables(rows_, heads.head_dim, 5e5, c10::typeMetaToScalarType(type_.dtype()));
    const RotaryTables tables = {made.cos.to(type_.device()), made.sin.to(type_.device())};
    at::Tensor qkv = at::randn({1, rows_, heads.width()}, type_);
    const size_t turned = qkv.nbytes() / 48 * 40;
    const auto gradients = [&](int64_t count) { return at::randn({1, rows_, count, heads.head_dim}, type_).transpose(1, 2); };
    const AttentionHeads grads = {gradients(heads.heads), gradients(heads.kv_heads), gradients(heads.kv_heads)};
    Add("rotary", 2 * turned, [&] { RotaryForward(tables, qkv, heads.heads + heads.kv_heads, kernels_); });
    Add("gradients of heads side by side, turned back", 2 * qkv.nbytes(), [&] {
      if (kernels_ != nullptr) {
        OwnPackHeads(*kernels_, grads, tables);
      } else {
        at::Tensor all = at::cat({grads.q.transpose(1, 2), grads.k.transpose(1, 2), grads.v.transpose(1, 2)}, 2).flatten(2);
        RotaryBackward(tables, all, heads.heads + heads.kv_heads);
      }
    });
  }

  void Bias() const {
    const at::Tensor grad = at::randn({rows_, kIntermediate}, type_);
    at::Tensor sums = at::zeros({kIntermediate}, type_.dtype(at::kFloat));
    Add("gradient of a bias", grad.nbytes(), [&] {
      if (kernels_ != nullptr) {
        OwnAddSums(*kernels_, grad, sums);
      } else {
        sums.add_(grad.sum(at::IntArrayRef{0}, /*keepdim=*/false, at::kFloat));
      }
    });
  }

  // Logits as their product makes them; what stands in their place afterwards are logits, too.
  void HeadLoss() const {
    constexpr int64_t kRows = 1024, kWords = 50257;
    const at::Tensor like = at::empty({1, 1}, type_);
    const auto wide = MultipliesIntoFloat32(like) ? type_.dtype(at::kFloat) : type_;
    const at::Tensor logits = at::randn({kRows, LogitColumns(kWords)}, wide);
    const at::Tensor targets = at::randint(kWords, {kRows}, type_.dtype(at::kLong));
    Add("head loss and gradient", logits.nbytes() + static_cast<size_t>(logits.numel()) * like.element_size(),
        [&] { LossAndGradientOf(logits, like, targets, kWords, 1, kernels_); });
  }

  // Clipped, with the gradient zero behind it and the cast, as the end of a step.
  void Optimizer() const {
    constexpr int64_t kElements = int64_t{32} << 20;
    const auto zeros = [&] { return at::zeros({kElements}, type_.dtype(at::kFloat)); };
    const AdamWRange range = {zeros(), zeros(), zeros(), zeros(), at::zeros({kElements}, type_), true};
    Add("AdamW", 8 * range.parameter.nbytes() + range.cast.nbytes(), [&] { AdamWStep({}, 1e-3, 1, 0.5, range, kernels_); });
  }

  const at::TensorOptions type_;
  const int64_t rows_;
  const KernelLauncher* const own_;
  const AddRate add_;
  const KernelLauncher* kernels_ = nullptr;  // null: PyTorch's operators
};

}  // namespace motley::engine
