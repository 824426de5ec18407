#include "worker/engine/operators/attention.h"

#include <cmath>

#include "tests/worker/engine/model/autograd_oracle.h"
#include "worker/engine/operators/attention_kernels.h"

namespace motley::engine {
namespace {

class AttentionTest : public OperatorTest {
 protected:
  // The textbook: softmax(q k^T / sqrt(d) + causal mask) v, key and value heads repeated for their group.
  at::Tensor Textbook(const at::Tensor& qkv, const HeadLayout& layout) {
    const int64_t group = layout.heads / layout.kv_heads, seq_len = qkv.size(1);
    const at::Tensor q = HeadsView(qkv, layout, 0, layout.heads).transpose(1, 2);
    const at::Tensor k = HeadsView(qkv, layout, layout.heads, layout.kv_heads).transpose(1, 2).repeat_interleave(group, 1);
    const at::Tensor v =
        HeadsView(qkv, layout, layout.heads + layout.kv_heads, layout.kv_heads).transpose(1, 2).repeat_interleave(group, 1);
    const at::Tensor future = at::ones({seq_len, seq_len}, at::kBool).triu(1);
    const at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) / std::sqrt(static_cast<double>(layout.head_dim));
    const at::Tensor weights = at::softmax(scores.masked_fill(future, -INFINITY), -1);
    return at::matmul(weights, v).transpose(1, 2).reshape({qkv.size(0), seq_len, layout.heads * layout.head_dim});
  }

  void Check(const HeadLayout& layout, int64_t seq_len) {
    const at::Tensor qkv = Leaf(Make({2, seq_len, layout.width()}));
    const at::Tensor grad_output = Make({2, seq_len, layout.heads * layout.head_dim});
    const at::Tensor want = Textbook(qkv, layout);
    const auto grads = AutogradOf(want, {qkv}, grad_output);

    c10::NoGradGuard no_grad;
    const AttentionOutput got = AttentionForward(qkv.detach(), layout);
    ExpectNear(got.output, want, tolerance(), "output");
    ExpectNear(AttentionBackward(grad_output, qkv.detach(), got, layout), grads[0], tolerance(),
               "gradient of the fused projection");
    CheckMath(qkv.detach(), layout, want, grads[0], grad_output);
  }

  // What a card falls back to, against the same numbers.
  void CheckMath(const at::Tensor& qkv, const HeadLayout& layout, const at::Tensor& want, const at::Tensor& want_grad,
                 const at::Tensor& grad_output) {
    const auto apart = [&](const at::Tensor& of, int64_t first, int64_t count) {
      return HeadsView(of, layout, first, count).transpose(1, 2);
    };
    const auto together = [](const at::Tensor& heads) { return heads.transpose(1, 2).flatten(-2); };
    const AttentionHeads heads = {apart(qkv, 0, layout.heads), apart(qkv, layout.heads, layout.kv_heads),
                                  apart(qkv, layout.heads + layout.kv_heads, layout.kv_heads)};
    const AttentionResult got = MathAttention().forward(heads, {});
    ExpectNear(together(got.output), want, tolerance(), "output of the math kernel");
    const at::Tensor grad = grad_output.unflatten(-1, {layout.heads, layout.head_dim}).transpose(1, 2);
    const AttentionHeads grads = MathAttention().backward(grad, heads, got, {});
    ExpectNear(at::cat({together(grads.q), together(grads.k), together(grads.v)}, -1), want_grad, tolerance(),
               "gradient of the math kernel");
  }
};

TEST_P(AttentionTest, EqualsTextbook) { Check({.heads = 4, .kv_heads = 4, .head_dim = 8}, 13); }
TEST_P(AttentionTest, GroupedQueryHeadsEqualTextbook) { Check({.heads = 6, .kv_heads = 2, .head_dim = 8}, 13); }
TEST_P(AttentionTest, OneKeyHeadEqualsTextbook) { Check({.heads = 4, .kv_heads = 1, .head_dim = 16}, 7); }
TEST_P(AttentionTest, LongerThanOneBlockOfTheKernelEqualsTextbook) { Check({.heads = 2, .kv_heads = 1, .head_dim = 4}, 700); }
TEST_P(AttentionTest, OneTokenEqualsTextbook) { Check({.heads = 2, .kv_heads = 2, .head_dim = 4}, 1); }

MOTLEY_BOTH_DTYPES(AttentionTest);

}  // namespace
}  // namespace motley::engine
