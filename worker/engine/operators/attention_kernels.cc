#include "worker/engine/operators/attention_kernels.h"

#include <torch/version.h>

#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "worker/engine/base/torch_pch.h"

namespace motley::engine {
namespace {

constexpr double kNoDropout = 0.0;
constexpr bool kCausal = true;

int64_t GroupOf(const AttentionHeads& heads) { return heads.q.size(1) / heads.k.size(1); }

// Keys and values once for each head of q, for kernels that know no groups.
AttentionHeads Expanded(const AttentionHeads& heads) {
  const int64_t group = GroupOf(heads);
  if (group == 1) return heads;
  return {heads.q, heads.k.repeat_interleave(group, 1), heads.v.repeat_interleave(group, 1)};
}
// The other way: gradients summed over each group.
AttentionHeads Summed(AttentionHeads grads, int64_t group) {
  if (group == 1) return grads;
  for (at::Tensor* grad : {&grads.k, &grads.v}) *grad = grad->unflatten(1, {grad->size(1) / group, group}).sum(2);
  return grads;
}

// ---- of the host ----

// The kernel of libtorch 2.7 knows no groups and reads beyond keys and values where they are fewer; that of 2.11 knows them.
constexpr bool kHostKnowsGroups = TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11;

AttentionHeads ForHost(const AttentionHeads& heads) { return kHostKnowsGroups ? heads : Expanded(heads); }

AttentionResult HostForward(const AttentionHeads& heads) {
  const AttentionHeads all = ForHost(heads);
  auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(all.q, all.k, all.v, kNoDropout, kCausal);
  return {output, logsumexp};
}
AttentionHeads HostBackward(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved) {
  const AttentionHeads all = ForHost(heads);
  auto [q, k, v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(grad_output, all.q, all.k, all.v, saved.output,
                                                                            saved.logsumexp, kNoDropout, kCausal);
  return Summed({q, k, v}, kHostKnowsGroups ? 1 : GroupOf(heads));
}

// ---- of NVIDIA cards: half types, sm_80 and newer ----

AttentionResult FlashForward(const AttentionHeads& heads) {
  auto result = at::_scaled_dot_product_flash_attention(heads.q, heads.k, heads.v, kNoDropout, kCausal);
  return {std::get<0>(result), std::get<1>(result)};
}
AttentionHeads FlashBackward(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved) {
  const at::Tensor none;
  const at::Tensor no_seed = at::empty({2}, heads.q.options().dtype(at::kLong));  // of a dropout that there is not: never read
  const int64_t seq_len = heads.q.size(2);
  auto [q, k, v] =
      at::_scaled_dot_product_flash_attention_backward(grad_output, heads.q, heads.k, heads.v, saved.output, saved.logsumexp,
                                                       none, none, seq_len, seq_len, kNoDropout, kCausal, no_seed, no_seed);
  return {q, k, v};
}

// ---- of NVIDIA cards: float32 and half types, sm_50 and newer ----

AttentionResult EfficientForward(const AttentionHeads& heads) {
  const AttentionHeads all = Expanded(heads);
  auto result = at::_scaled_dot_product_efficient_attention(all.q, all.k, all.v, std::nullopt, /*compute_log_sumexp=*/true,
                                                            kNoDropout, kCausal);
  return {std::get<0>(result), std::get<1>(result)};
}
AttentionHeads EfficientBackward(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved) {
  const AttentionHeads all = Expanded(heads);
  const at::Tensor no_bias, no_seed = at::zeros({}, heads.q.options().dtype(at::kLong));
  auto [q, k, v, bias] = at::_scaled_dot_product_efficient_attention_backward(grad_output, all.q, all.k, all.v, no_bias,
                                                                              saved.output, saved.logsumexp, no_seed, no_seed,
                                                                              kNoDropout, {true, true, true, false}, kCausal);
  return Summed({q, k, v}, GroupOf(heads));
}

// ---- of any device ----

double ScaleOf(const AttentionHeads& heads) { return 1 / std::sqrt(static_cast<double>(heads.q.size(-1))); }

// In float32 at least: a sum of exponentials in a half type is none.
AttentionHeads WidenedHeads(const AttentionHeads& heads) {
  const at::ScalarType type = heads.q.scalar_type();
  if (type == at::kDouble || type == at::kFloat) return heads;
  return {heads.q.to(at::kFloat), heads.k.to(at::kFloat), heads.v.to(at::kFloat)};
}

at::Tensor Scores(const AttentionHeads& heads) {
  const int64_t seq_len = heads.q.size(2);
  const at::Tensor future = at::ones({seq_len, seq_len}, heads.q.options().dtype(at::kBool)).triu_(1);
  return at::matmul(heads.q, heads.k.transpose(-2, -1))
      .mul_(ScaleOf(heads))
      .masked_fill_(future, -std::numeric_limits<double>::infinity());
}

AttentionResult MathForward(const AttentionHeads& heads) {
  const AttentionHeads all = WidenedHeads(Expanded(heads));
  at::Tensor scores = Scores(all);
  const at::Tensor logsumexp = at::logsumexp(scores, -1);
  scores.sub_(logsumexp.unsqueeze(-1)).exp_();
  return {at::matmul(scores, all.v).to(heads.q.scalar_type()), logsumexp};
}

AttentionHeads MathBackward(const at::Tensor& grad_output, const AttentionHeads& heads, const AttentionResult& saved) {
  const AttentionHeads all = WidenedHeads(Expanded(heads));
  const at::ScalarType wide = all.q.scalar_type();
  const at::Tensor grad = grad_output.to(wide);
  const at::Tensor weights = Scores(all).sub_(saved.logsumexp.unsqueeze(-1)).exp_();
  const at::Tensor grad_v = at::matmul(weights.transpose(-2, -1), grad);
  // With d = sum over a row of grad * output:  grad_scores = weights * (grad v^T - d).
  const at::Tensor d = at::mul(grad, saved.output.to(wide)).sum(-1, /*keepdim=*/true);
  const at::Tensor grad_scores = at::matmul(grad, all.v.transpose(-2, -1)).sub_(d).mul_(weights).mul_(ScaleOf(heads));
  const AttentionHeads grads = {at::matmul(grad_scores, all.k), at::matmul(grad_scores.transpose(-2, -1), all.q), grad_v};
  const AttentionHeads summed = Summed(grads, GroupOf(heads));
  const at::ScalarType type = heads.q.scalar_type();
  return {summed.q.to(type), summed.k.to(type), summed.v.to(type)};
}

constexpr AttentionKernel kHost = {"host flash", HostForward, HostBackward};
constexpr AttentionKernel kFlash = {"flash", FlashForward, FlashBackward};
constexpr AttentionKernel kEfficient = {"memory-efficient", EfficientForward, EfficientBackward};
constexpr AttentionKernel kMath = {"math", MathForward, MathBackward};

// What ATen would choose: at::SDPBackend's numbers. cuDNN's runs where flash does.
enum SdpBackend : int64_t { kSdpFlash = 1, kSdpEfficient = 2, kSdpCudnn = 3 };

constexpr int64_t kFlashAlignment = 8, kFlashLargestHead = 192;

int64_t Choice(const AttentionHeads& heads) {
  return at::_fused_sdp_choice(heads.q, heads.k, heads.v, std::nullopt, kNoDropout, kCausal, std::nullopt,
                               /*enable_gqa=*/GroupOf(heads) > 1);
}

}  // namespace

const AttentionKernel& KernelFor(const AttentionHeads& heads) {
  if (heads.q.is_cpu()) return kHost;
  const int64_t choice = Choice(heads), head_dim = heads.q.size(-1);
  if (choice == kSdpFlash || choice == kSdpCudnn) {
    // Its operator wants heads that ATen's own attention pads to this; and beyond 192 some cards have no backward of it.
    if (head_dim % kFlashAlignment != 0) return kMath;
    return head_dim <= kFlashLargestHead ? kFlash : kEfficient;
  }
  // Groups rule it out there; here they are expanded. How many heads there are makes no difference, so one of each group asks.
  const auto alone = [&] { return AttentionHeads{heads.q.narrow(1, 0, heads.k.size(1)), heads.k, heads.v}; };
  if (choice == kSdpEfficient || (GroupOf(heads) > 1 && Choice(alone()) == kSdpEfficient)) return kEfficient;
  return kMath;
}

bool HostKnowsGroups() { return kHostKnowsGroups; }

const AttentionKernel& MathAttention() { return kMath; }

}  // namespace motley::engine
