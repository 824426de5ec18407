// What cards have for documents that lie one after the other, and for windows, on the host: flash attention's kernel and the
// memory-efficient one, with the shapes of theirs and the numbers of the textbook. They are there while it lives.
#pragma once

#include <ATen/ATen.h>
#include <torch/library.h>

#include <cmath>
#include <functional>
#include <optional>
#include <tuple>
#include <vector>

#include "worker/engine/operators/attention_kernels.h"

namespace motley::engine {

class VarlenKernels {
 public:
  VarlenKernels() : library_(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__) {
    library_.impl("_flash_attention_forward", FlashForward);
    library_.impl("_flash_attention_backward", FlashBackward);
    library_.impl("_efficient_attention_forward", EfficientForward);
    library_.impl("_efficient_attention_backward", EfficientBackward);
    library_.impl("_scaled_dot_product_efficient_attention", EfficientOfOne);
    library_.impl("_scaled_dot_product_efficient_attention_backward", EfficientBackwardOfOne);
  }

 private:
  using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
  using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
  using Five = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

  static int64_t Aligned(int64_t columns) { return (columns + 31) / 32 * 32; }

  // Calls body(number, begin, length) for each document; checks what the kernels demand of them.
  static void ForEach(const at::Tensor& borders, const at::Tensor& rows, c10::SymInt longest,
                      const std::function<void(int64_t, int64_t, int64_t)>& body) {
    TORCH_CHECK(borders.scalar_type() == at::kInt && borders.is_contiguous(), "borders are int32, one after the other");
    const int32_t* const begin = borders.const_data_ptr<int32_t>();
    const int64_t documents = borders.numel() - 1;
    TORCH_CHECK(begin[0] == 0 && begin[documents] == rows.size(0), "documents fill the rows");
    for (int64_t d = 0; d < documents; ++d) {
      TORCH_CHECK(begin[d + 1] - begin[d] <= longest.expect_int(), "a document is longer than the longest");
      body(d, begin[d], begin[d + 1] - begin[d]);
    }
  }
  // [tokens, heads, head_dim] -> [1, heads, length, head_dim]
  static at::Tensor Part(const at::Tensor& rows, int64_t begin, int64_t length) {
    TORCH_CHECK(rows.dim() == 3 && rows.stride(-1) == 1, "rows of heads, whose numbers lie side by side");
    return rows.narrow(0, begin, length).transpose(0, 1).unsqueeze(0);
  }
  static AttentionHeads Part(const AttentionHeads& rows, int64_t begin, int64_t length) {
    return {Part(rows.q, begin, length), Part(rows.k, begin, length), Part(rows.v, begin, length)};
  }

  static AttentionForm FlashForm(std::optional<double> scale, std::optional<c10::SymInt> left, std::optional<c10::SymInt> right) {
    TORCH_CHECK(left.has_value() == right.has_value() && (!right || right->expect_int() == 0), "a window ends with its position");
    return {.window = left ? left->expect_int() + 1 : 0, .scale = scale.value_or(0)};
  }
  static AttentionForm EfficientForm(std::optional<double> scale, std::optional<int64_t> window) {
    return {.window = window.value_or(0), .scale = scale.value_or(0)};
  }
  // [samples, seq_len, heads, head_dim], or back.
  static at::Tensor Turned(const at::Tensor& t) { return t.transpose(1, 2); }
  static AttentionHeads Turned(const AttentionHeads& t) { return {Turned(t.q), Turned(t.k), Turned(t.v)}; }

  static Five FlashForward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::optional<at::Tensor>& cu_q,
                           const std::optional<at::Tensor>&, c10::SymInt longest, c10::SymInt, double, bool causal, bool,
                           std::optional<double> scale, std::optional<c10::SymInt> left, std::optional<c10::SymInt> right,
                           const std::optional<at::Tensor>&, const std::optional<at::Tensor>&) {
    TORCH_CHECK(causal && longest.expect_int() >= 2, "of a longest document of 1 the card's logsumexp has another shape");
    const AttentionForm form = FlashForm(scale, left, right);
    if (!cu_q) {
      const AttentionResult made = MathAttention().forward(Turned({q, k, v}), form);
      return {Turned(made.output), made.logsumexp, at::Tensor(), at::Tensor(), at::Tensor()};
    }
    at::Tensor output = at::empty_like(q, at::MemoryFormat::Contiguous);
    at::Tensor logsumexp = at::empty({q.size(1), q.size(0)}, q.options());
    ForEach(*cu_q, q, longest, [&](int64_t, int64_t begin, int64_t length) {
      const AttentionResult made = MathAttention().forward(Part({q, k, v}, begin, length), form);
      Part(output, begin, length).copy_(made.output);
      logsumexp.narrow(1, begin, length).copy_(made.logsumexp.squeeze(0));
    });
    return {output, logsumexp, at::Tensor(), at::Tensor(), at::Tensor()};
  }
  static Three FlashBackward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const at::Tensor& output, const at::Tensor& logsumexp, const at::Tensor& cu_q, const at::Tensor&,
                             c10::SymInt longest, c10::SymInt, double, bool causal, const at::Tensor&, const at::Tensor&,
                             std::optional<double> scale, std::optional<c10::SymInt> left, std::optional<c10::SymInt> right) {
    TORCH_CHECK(causal && longest.expect_int() >= 2, "as forward");
    const AttentionForm form = FlashForm(scale, left, right);
    if (!cu_q.defined()) {
      const AttentionHeads made =
          Turned(MathAttention().backward(Turned(grad), Turned({q, k, v}), {Turned(output), logsumexp}, form));
      return {made.q, made.k, made.v};
    }
    const AttentionHeads grads = {at::empty_like(q, at::MemoryFormat::Contiguous),
                                  at::empty_like(k, at::MemoryFormat::Contiguous),
                                  at::empty_like(v, at::MemoryFormat::Contiguous)};
    ForEach(cu_q, q, longest, [&](int64_t, int64_t begin, int64_t length) {
      Give(MathAttention().backward(Part(grad, begin, length), Part({q, k, v}, begin, length),
                                    {Part(output, begin, length), logsumexp.narrow(1, begin, length).unsqueeze(0)}, form),
           grads, begin, length);
    });
    return {grads.q, grads.k, grads.v};
  }

  static std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt> EfficientForward(
      const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::optional<at::Tensor>& bias,
      const std::optional<at::Tensor>& cu_q, const std::optional<at::Tensor>&, std::optional<c10::SymInt> longest,
      std::optional<c10::SymInt>, double, int64_t mask, bool keeps, std::optional<double> scale, const std::optional<at::Tensor>&,
      std::optional<int64_t> window) {
    const AttentionForm form = EfficientForm(scale, window);
    if (!cu_q) {
      TORCH_CHECK(q.size(2) == k.size(2) && mask == 1 && keeps && !bias && window.value_or(0) > 0, "of a window");
      const AttentionResult made = MathAttention().forward(Turned({q, k, v}), form);
      return {Turned(made.output), Padded(made.logsumexp), at::Tensor(), at::Tensor(), *longest, *longest};
    }
    TORCH_CHECK(q.size(0) == 1 && q.size(2) == k.size(2) && mask == 1 && keeps && !bias, "one sample, as many heads of keys");
    const AttentionHeads rows = {q[0], k[0], v[0]};
    at::Tensor output = at::empty_like(q, at::MemoryFormat::Contiguous);
    at::Tensor logsumexp = at::full({cu_q->numel() - 1, q.size(2), Aligned(longest->expect_int())}, INFINITY, q.options());
    ForEach(*cu_q, rows.q, *longest, [&](int64_t document, int64_t begin, int64_t length) {
      const AttentionResult made = MathAttention().forward(Part(rows, begin, length), form);
      Part(output[0], begin, length).copy_(made.output);
      logsumexp[document].narrow(1, 0, length).copy_(made.logsumexp.squeeze(0));
    });
    return {output, logsumexp, at::Tensor(), at::Tensor(), *longest, *longest};
  }
  static Four EfficientBackward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const std::optional<at::Tensor>&, const at::Tensor& output, const std::optional<at::Tensor>& cu_q,
                                const std::optional<at::Tensor>&, c10::SymInt longest, c10::SymInt, const at::Tensor& logsumexp,
                                double, const at::Tensor&, const at::Tensor&, int64_t mask, bool, std::optional<double> scale,
                                std::optional<int64_t>, std::optional<int64_t> window, bool) {
    const AttentionForm form = EfficientForm(scale, window);
    TORCH_CHECK(mask == 1 && logsumexp.is_contiguous() && logsumexp.size(2) == Aligned(longest.expect_int()), "as forward");
    if (!cu_q) {
      const AttentionHeads made = Turned(
          MathAttention().backward(Turned(grad), Turned({q, k, v}), {Turned(output), logsumexp.narrow(2, 0, q.size(1))}, form));
      return {made.q, made.k, made.v, at::Tensor()};
    }
    const AttentionHeads rows = {q[0], k[0], v[0]};
    const AttentionHeads grads = {at::empty_like(rows.q, at::MemoryFormat::Contiguous),
                                  at::empty_like(rows.k, at::MemoryFormat::Contiguous),
                                  at::empty_like(rows.v, at::MemoryFormat::Contiguous)};
    ForEach(*cu_q, rows.q, longest, [&](int64_t document, int64_t begin, int64_t length) {
      const at::Tensor of_document = logsumexp[document];
      TORCH_CHECK(of_document.narrow(1, length, of_document.size(1) - length).isinf().all().item<bool>(), "columns of nothing");
      Give(MathAttention().backward(Part(grad[0], begin, length), Part(rows, begin, length),
                                    {Part(output[0], begin, length), of_document.narrow(1, 0, length).unsqueeze(0)}, form),
           grads, begin, length);
    });
    return {grads.q.unsqueeze(0), grads.k.unsqueeze(0), grads.v.unsqueeze(0), at::Tensor()};
  }

  static Four EfficientOfOne(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::optional<at::Tensor>&,
                             bool, double, bool, std::optional<double> scale) {
    const AttentionResult made = MathAttention().forward({q, k, v}, EfficientForm(scale, std::nullopt));
    return {made.output, Padded(made.logsumexp), at::Tensor(), at::Tensor()};
  }
  static at::Tensor Padded(const at::Tensor& logsumexp) {
    const at::Tensor padded =
        at::full({logsumexp.size(0), logsumexp.size(1), Aligned(logsumexp.size(2))}, INFINITY, logsumexp.options());
    padded.narrow(2, 0, logsumexp.size(2)).copy_(logsumexp);
    return padded;
  }
  static Four EfficientBackwardOfOne(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const at::Tensor&, const at::Tensor& output, const at::Tensor& logsumexp, const at::Tensor&,
                                     const at::Tensor&, double, std::array<bool, 4>, bool, std::optional<double> scale) {
    TORCH_CHECK(logsumexp.size(2) == Aligned(q.size(2)) && logsumexp.is_contiguous(), "as forward");
    const AttentionHeads made = MathAttention().backward(grad, {q, k, v}, {output, logsumexp.narrow(2, 0, q.size(2))},
                                                         EfficientForm(scale, std::nullopt));
    return {made.q, made.k, made.v, at::Tensor()};
  }

  static void Give(const AttentionHeads& made, const AttentionHeads& grads, int64_t begin, int64_t length) {
    Part(grads.q, begin, length).copy_(made.q);
    Part(grads.k, begin, length).copy_(made.k);
    Part(grads.v, begin, length).copy_(made.v);
  }

  torch::Library library_;
};

}  // namespace motley::engine
