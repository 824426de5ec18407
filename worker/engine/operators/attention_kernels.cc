#include "worker/engine/operators/attention_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/attention_groups.h"
#include "worker/engine/operators/cudnn_attention.h"

namespace motley::engine {
namespace {

// ---- documents, one call of a kernel for each ----

struct Document {
  int64_t sample = 0, begin = 0, length = 0;
  // Of [samples, heads, seq_len, ..], a view.
  at::Tensor In(const at::Tensor& all) const { return all.narrow(0, sample, 1).narrow(2, begin, length); }
  AttentionHeads In(const AttentionHeads& all) const { return {In(all.q), In(all.k), In(all.v)}; }
};

template <typename Body>
void ForEachDocument(const Borders& borders, const Body& body) {
  for (size_t sample = 0; sample < borders.lengths.size(); ++sample) {
    int64_t begin = 0;
    for (const int32_t length : borders.lengths[sample]) {
      body(Document{static_cast<int64_t>(sample), begin, length});
      begin += length;
    }
  }
}

// What the kernel makes of a document has as many numbers for a head as the document has positions.
template <AttentionResult (*kForward)(const AttentionHeads& heads, const AttentionForm& form)>
AttentionResult ForwardOfEach(const AttentionHeads& heads, const Borders& borders, const AttentionForm& form) {
  const at::Tensor output = RoomOf(heads.q, heads.q.size(3), heads.q.options());
  at::Tensor logsumexp;
  ForEachDocument(borders, [&](const Document& document) {
    const AttentionResult made = kForward(document.In(heads), form);
    if (!logsumexp.defined()) logsumexp = RoomOf(heads.q, 1, made.logsumexp.options()).squeeze(3);
    document.In(output).copy_(made.output);
    document.In(logsumexp).copy_(made.logsumexp);
  });
  return {output, logsumexp};
}

template <AttentionHeads (*kBackward)(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                                      const AttentionForm& form)>
AttentionHeads BackwardOfEach(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                              const Borders& borders, const AttentionForm& form) {
  const auto room = [](const at::Tensor& of) { return RoomOf(of, of.size(3), of.options()); };
  const AttentionHeads grads = {room(heads.q), room(heads.k), room(heads.v)};
  ForEachDocument(borders, [&](const Document& document) {
    const AttentionHeads made =
        kBackward(document.In(grad_output), document.In(heads), {document.In(saved.output), document.In(saved.logsumexp)}, form);
    document.In(grads.q).copy_(made.q);
    document.In(grads.k).copy_(made.k);
    document.In(grads.v).copy_(made.v);
  });
  return grads;
}

// ---- documents, one call for all: kernels that take [tokens, heads, head_dim] and where documents begin ----

at::Tensor InOneRow(const at::Tensor& heads) { return heads.transpose(1, 2).flatten(0, 1); }
AttentionHeads InOneRow(const AttentionHeads& heads) { return {InOneRow(heads.q), InOneRow(heads.k), InOneRow(heads.v)}; }
at::Tensor BySample(const at::Tensor& row, int64_t samples) { return row.unflatten(0, {samples, -1}).transpose(1, 2); }

// ---- of NVIDIA cards: half types, sm_80 and newer ----

// What the kernel of documents and windows takes: left of a position lie window - 1 others, right of it none.
struct FlashWindow {
  std::optional<int64_t> left, right;
};
FlashWindow FlashWindowOf(const AttentionForm& form, int64_t longest) {
  const int64_t window = form.WindowOver(longest);
  return window == 0 ? FlashWindow() : FlashWindow{window - 1, 0};
}

// Samples as [samples, seq_len, heads, head_dim], which the kernel below ATen's own attention takes: that one has no windows.
at::Tensor SequenceFirst(const at::Tensor& heads) { return heads.transpose(1, 2); }

AttentionResult FlashForward(const AttentionHeads& heads, const AttentionForm& form) {
  const int64_t seq_len = heads.q.size(2);
  if (form.WindowOver(seq_len) == 0) {
    auto result = at::_scaled_dot_product_flash_attention(heads.q, heads.k, heads.v, kNoDropout, kCausal,
                                                          /*return_debug_mask=*/false, ScaleForKernel(form));
    return {std::get<0>(result), std::get<1>(result)};
  }
  const FlashWindow window = FlashWindowOf(form, seq_len);
  auto result = at::_flash_attention_forward(SequenceFirst(heads.q), SequenceFirst(heads.k), SequenceFirst(heads.v), std::nullopt,
                                             std::nullopt, seq_len, seq_len, kNoDropout, kCausal, /*return_debug_mask=*/false,
                                             ScaleForKernel(form), window.left, window.right);
  return {SequenceFirst(std::get<0>(result)), std::get<1>(result)};
}
AttentionHeads FlashBackward(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                             const AttentionForm& form) {
  const at::Tensor none;
  const at::Tensor no_seed = at::empty({2}, heads.q.options().dtype(at::kLong));  // of a dropout that there is not: never read
  const int64_t seq_len = heads.q.size(2);
  if (form.WindowOver(seq_len) == 0) {
    auto [q, k, v] = at::_scaled_dot_product_flash_attention_backward(grad_output, heads.q, heads.k, heads.v, saved.output,
                                                                      saved.logsumexp, none, none, seq_len, seq_len, kNoDropout,
                                                                      kCausal, no_seed, no_seed, ScaleForKernel(form));
    return {q, k, v};
  }
  const FlashWindow window = FlashWindowOf(form, seq_len);
  auto [q, k, v] = at::_flash_attention_backward(SequenceFirst(grad_output), SequenceFirst(heads.q), SequenceFirst(heads.k),
                                                 SequenceFirst(heads.v), SequenceFirst(saved.output), saved.logsumexp, none, none,
                                                 seq_len, seq_len, kNoDropout, kCausal, no_seed, no_seed, ScaleForKernel(form),
                                                 window.left, window.right);
  return {SequenceFirst(q), SequenceFirst(k), SequenceFirst(v)};
}

// Where all documents have one token and heads share keys, the kernel would take another way, with a logsumexp of other shape.
int64_t LongestForFlash(const Borders& borders) { return std::max<int64_t>(2, LongestDocument(borders)); }

AttentionResult FlashForwardApart(const AttentionHeads& heads, const Borders& borders, const AttentionForm& form) {
  const AttentionHeads rows = InOneRow(heads);
  const int64_t longest = LongestForFlash(borders);
  const FlashWindow window = FlashWindowOf(form, longest);
  auto result =
      at::_flash_attention_forward(rows.q, rows.k, rows.v, borders.cu_seqlens, borders.cu_seqlens, longest, longest, kNoDropout,
                                   kCausal, /*return_debug_mask=*/false, ScaleForKernel(form), window.left, window.right);
  return {BySample(std::get<0>(result), heads.q.size(0)), std::get<1>(result)};  // [heads, tokens]
}
AttentionHeads FlashBackwardApart(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                                  const Borders& borders, const AttentionForm& form) {
  const AttentionHeads rows = InOneRow(heads);
  const int64_t longest = LongestForFlash(borders), samples = heads.q.size(0);
  const FlashWindow window = FlashWindowOf(form, longest);
  const at::Tensor no_seed = at::empty({2}, heads.q.options().dtype(at::kLong));  // never read
  auto [q, k, v] =
      at::_flash_attention_backward(InOneRow(grad_output), rows.q, rows.k, rows.v, InOneRow(saved.output), saved.logsumexp,
                                    borders.cu_seqlens, borders.cu_seqlens, longest, longest, kNoDropout, kCausal, no_seed,
                                    no_seed, ScaleForKernel(form), window.left, window.right);
  return {BySample(q, samples), BySample(k, samples), BySample(v, samples)};
}

// ---- of NVIDIA cards: float32 and half types, sm_50 and newer ----

enum EfficientMask : int64_t { kEfficientCausal = 1 };

std::optional<int64_t> EfficientWindow(const AttentionForm& form, int64_t longest) {
  const int64_t window = form.WindowOver(longest);
  return window == 0 ? std::nullopt : std::optional<int64_t>(window);
}

AttentionResult EfficientForward(const AttentionHeads& heads, const AttentionForm& form) {
  const AttentionHeads all = Expanded(heads);
  const int64_t seq_len = heads.q.size(2);
  const std::optional<int64_t> window = EfficientWindow(form, seq_len);
  if (!window) {
    auto result = at::_scaled_dot_product_efficient_attention(all.q, all.k, all.v, std::nullopt, /*compute_log_sumexp=*/true,
                                                              kNoDropout, kCausal, ScaleForKernel(form));
    return {std::get<0>(result), std::get<1>(result)};
  }
  auto result = at::_efficient_attention_forward(SequenceFirst(all.q), SequenceFirst(all.k), SequenceFirst(all.v), std::nullopt,
                                                 std::nullopt, std::nullopt, seq_len, seq_len, kNoDropout, kEfficientCausal,
                                                 /*compute_log_sumexp=*/true, ScaleForKernel(form), std::nullopt, window);
  return {SequenceFirst(std::get<0>(result)), std::get<1>(result)};
}
AttentionHeads EfficientBackward(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                                 const AttentionForm& form) {
  const AttentionHeads all = Expanded(heads);
  const int64_t seq_len = heads.q.size(2), group = GroupOf(heads);
  const std::optional<int64_t> window = EfficientWindow(form, seq_len);
  const at::Tensor no_bias, no_seed = at::zeros({}, heads.q.options().dtype(at::kLong));
  if (!window) {
    auto [q, k, v, bias] = at::_scaled_dot_product_efficient_attention_backward(
        grad_output, all.q, all.k, all.v, no_bias, saved.output, saved.logsumexp, no_seed, no_seed, kNoDropout,
        {true, true, true, false}, kCausal, ScaleForKernel(form));
    return Summed({q, k, v}, group);
  }
  auto [q, k, v, bias] = at::_efficient_attention_backward(
      SequenceFirst(grad_output), SequenceFirst(all.q), SequenceFirst(all.k), SequenceFirst(all.v), std::nullopt,
      SequenceFirst(saved.output), std::nullopt, std::nullopt, seq_len, seq_len, saved.logsumexp, kNoDropout, no_seed, no_seed,
      kEfficientCausal, /*bias_requires_grad=*/false, ScaleForKernel(form), std::nullopt, window);
  return Summed({SequenceFirst(q), SequenceFirst(k), SequenceFirst(v)}, group);
}

// Its logsumexp is [documents, heads, columns], with as many columns for each document as the longest has tokens, and infinite
// ones behind a document's own. What is kept of it is [heads, tokens].
constexpr int64_t kEfficientColumns = 32;
int64_t EfficientColumns(int64_t tokens) { return (tokens + kEfficientColumns - 1) / kEfficientColumns * kEfficientColumns; }

// Of many short documents beside a long one it would be as large as a square of scores: then each has a call of its own.
constexpr int64_t kMostColumnsOfAToken = 8;
bool FitsOneCall(const Borders& borders) {
  return DocumentsIn(borders) * EfficientColumns(LongestDocument(borders)) <= kMostColumnsOfAToken * borders.positions.numel();
}

// [tokens]: a token's place among the documents' columns.
at::Tensor ColumnsOf(const Borders& borders, int64_t columns) {
  const at::Tensor document = borders.positions.eq(0).cumsum(0).sub_(1);
  return document.mul_(columns).add_(borders.positions);
}

AttentionHeads OfOneSample(const AttentionHeads& rows) { return {rows.q.unsqueeze(0), rows.k.unsqueeze(0), rows.v.unsqueeze(0)}; }

AttentionResult EfficientForwardOfOne(const AttentionHeads& heads, const AttentionForm& form) {
  const AttentionResult made = EfficientForward(heads, form);
  return {made.output, made.logsumexp.narrow(2, 0, heads.q.size(2))};
}
AttentionHeads EfficientBackwardOfOne(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                                      const AttentionForm& form) {
  const int64_t tokens = heads.q.size(2);
  const at::Tensor logsumexp = at::full({1, heads.q.size(1), EfficientColumns(tokens)}, std::numeric_limits<double>::infinity(),
                                        saved.logsumexp.options());
  logsumexp.narrow(2, 0, tokens).copy_(saved.logsumexp);
  return EfficientBackward(grad_output, heads, {saved.output, logsumexp}, form);
}

AttentionResult EfficientForwardApart(const AttentionHeads& heads, const Borders& borders, const AttentionForm& form) {
  if (!FitsOneCall(borders)) return ForwardOfEach<EfficientForwardOfOne>(heads, borders, form);
  const AttentionHeads rows = OfOneSample(InOneRow(Expanded(heads)));
  const int64_t longest = LongestDocument(borders);
  auto result = at::_efficient_attention_forward(rows.q, rows.k, rows.v, std::nullopt, borders.cu_seqlens, borders.cu_seqlens,
                                                 longest, longest, kNoDropout, kEfficientCausal, /*compute_log_sumexp=*/true,
                                                 ScaleForKernel(form), std::nullopt, EfficientWindow(form, longest));
  const at::Tensor logsumexp = std::get<1>(result).transpose(0, 1).flatten(1);
  return {BySample(std::get<0>(result).squeeze(0), heads.q.size(0)),
          logsumexp.index_select(1, ColumnsOf(borders, EfficientColumns(longest)))};
}
AttentionHeads EfficientBackwardApart(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                                      const Borders& borders, const AttentionForm& form) {
  if (!FitsOneCall(borders)) return BackwardOfEach<EfficientBackwardOfOne>(grad_output, heads, saved, borders, form);
  const AttentionHeads rows = OfOneSample(InOneRow(Expanded(heads)));
  const int64_t longest = LongestDocument(borders), columns = EfficientColumns(longest), samples = heads.q.size(0);
  const at::Tensor logsumexp = at::full({heads.q.size(1), DocumentsIn(borders) * columns},
                                        std::numeric_limits<double>::infinity(), saved.logsumexp.options());
  logsumexp.index_copy_(1, ColumnsOf(borders, columns), saved.logsumexp);
  const at::Tensor by_document = logsumexp.unflatten(1, {-1, columns}).transpose(0, 1).contiguous();
  const at::Tensor no_seed = at::zeros({}, heads.q.options().dtype(at::kLong));
  auto [q, k, v, bias] = at::_efficient_attention_backward(
      InOneRow(grad_output).unsqueeze(0), rows.q, rows.k, rows.v, std::nullopt, InOneRow(saved.output).unsqueeze(0),
      borders.cu_seqlens, borders.cu_seqlens, longest, longest, by_document, kNoDropout, no_seed, no_seed, kEfficientCausal,
      /*bias_requires_grad=*/false, ScaleForKernel(form), std::nullopt, EfficientWindow(form, longest));
  const auto by_sample = [&](const at::Tensor& grad) { return BySample(grad.squeeze(0), samples); };
  return Summed({by_sample(q), by_sample(k), by_sample(v)}, GroupOf(heads));
}

// ---- of any device ----

double ScaleOf(const AttentionHeads& heads, const AttentionForm& form) {
  return form.scale != 0 ? form.scale : 1 / std::sqrt(static_cast<double>(heads.q.size(-1)));
}

// In float32 at least: a sum of exponentials in a half type is none.
AttentionHeads WidenedHeads(const AttentionHeads& heads) {
  const at::ScalarType type = heads.q.scalar_type();
  if (type == at::kDouble || type == at::kFloat) return heads;
  return {heads.q.to(at::kFloat), heads.k.to(at::kFloat), heads.v.to(at::kFloat)};
}

at::Tensor Scores(const AttentionHeads& heads, const AttentionForm& form) {
  const int64_t seq_len = heads.q.size(2), window = form.WindowOver(seq_len);
  const at::Tensor every = at::ones({seq_len, seq_len}, heads.q.options().dtype(at::kBool));
  at::Tensor unseen = every.triu(1);
  if (window != 0) unseen.logical_or_(every.tril(-window));
  return at::matmul(heads.q, heads.k.transpose(-2, -1))
      .mul_(ScaleOf(heads, form))
      .masked_fill_(unseen, -std::numeric_limits<double>::infinity());
}

AttentionResult MathForward(const AttentionHeads& heads, const AttentionForm& form) {
  const AttentionHeads all = WidenedHeads(Expanded(heads));
  at::Tensor scores = Scores(all, form);
  const at::Tensor logsumexp = at::logsumexp(scores, -1);
  scores.sub_(logsumexp.unsqueeze(-1)).exp_();
  return {at::matmul(scores, all.v).to(heads.q.scalar_type()), logsumexp};
}

AttentionHeads MathBackward(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved,
                            const AttentionForm& form) {
  const AttentionHeads all = WidenedHeads(Expanded(heads));
  const at::ScalarType wide = all.q.scalar_type();
  const at::Tensor grad = grad_output.to(wide);
  const at::Tensor weights = Scores(all, form).sub_(saved.logsumexp.unsqueeze(-1)).exp_();
  const at::Tensor grad_v = at::matmul(weights.transpose(-2, -1), grad);
  // With d = sum over a row of grad * output:  grad_scores = weights * (grad v^T - d).
  const at::Tensor d = at::mul(grad, saved.output.to(wide)).sum(-1, /*keepdim=*/true);
  const at::Tensor grad_scores = at::matmul(grad, all.v.transpose(-2, -1)).sub_(d).mul_(weights).mul_(ScaleOf(heads, form));
  const AttentionHeads grads = {at::matmul(grad_scores, all.k), at::matmul(grad_scores.transpose(-2, -1), all.q), grad_v};
  const AttentionHeads summed = Summed(grads, GroupOf(heads));
  const at::ScalarType type = heads.q.scalar_type();
  return {summed.q.to(type), summed.k.to(type), summed.v.to(type)};
}

constexpr AttentionKernel kHost = {"host flash", HostAttentionForward, HostAttentionBackward, ForwardOfEach<HostAttentionForward>,
                                   BackwardOfEach<HostAttentionBackward>};
constexpr AttentionKernel kFlash = {"flash", FlashForward, FlashBackward, FlashForwardApart, FlashBackwardApart};
constexpr AttentionKernel kCudnn = {"cudnn", CudnnAttentionForward, CudnnAttentionBackward, FlashForwardApart,
                                    FlashBackwardApart};
constexpr AttentionKernel kEfficient = {"memory-efficient", EfficientForward, EfficientBackward, EfficientForwardApart,
                                        EfficientBackwardApart};
constexpr AttentionKernel kMath = {"math", MathForward, MathBackward, ForwardOfEach<MathForward>, BackwardOfEach<MathBackward>};

// What ATen would choose: at::SDPBackend's numbers. Flash runs where cuDNN's does.
enum SdpBackend : int64_t { kSdpFlash = 1, kSdpEfficient = 2, kSdpCudnn = 3 };

constexpr int64_t kFlashAlignment = 8, kFlashLargestHead = 192;

int64_t Choice(const AttentionHeads& heads) {
  return at::_fused_sdp_choice(heads.q, heads.k, heads.v, std::nullopt, kNoDropout, kCausal, std::nullopt,
                               /*enable_gqa=*/GroupOf(heads) > 1);
}

}  // namespace

const AttentionKernel* KernelOfHalfTypes(int64_t choice, int64_t head_dim) {
  if (choice != kSdpFlash && choice != kSdpCudnn) return nullptr;
  // Their operators want heads that ATen's own attention pads to this; and beyond 192 some cards have no backward of flash.
  if (head_dim % kFlashAlignment != 0) return &kMath;
  if (choice == kSdpCudnn && head_dim <= kCudnnLargestHead) return &kCudnn;
  return head_dim <= kFlashLargestHead ? &kFlash : &kEfficient;
}

const AttentionKernel& KernelFor(const AttentionHeads& heads) {
  if (heads.q.is_cpu()) return kHost;
  const int64_t choice = Choice(heads);
  if (const AttentionKernel* kernel = KernelOfHalfTypes(choice, heads.q.size(-1))) return *kernel;
  // Groups rule it out there; here they are expanded. How many heads there are makes no difference, so one of each group asks.
  const auto alone = [&] { return AttentionHeads{heads.q.narrow(1, 0, heads.k.size(1)), heads.k, heads.v}; };
  if (choice == kSdpEfficient || (GroupOf(heads) > 1 && Choice(alone()) == kSdpEfficient)) return kEfficient;
  return kMath;
}

const AttentionKernel& MathAttention() { return kMath; }
const AttentionKernel& FlashAttention() { return kFlash; }
const AttentionKernel& CudnnAttention() { return kCudnn; }
const AttentionKernel& EfficientAttention() { return kEfficient; }

}  // namespace motley::engine
