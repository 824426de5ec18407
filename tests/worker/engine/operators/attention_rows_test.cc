// Attention inside the documents of rows: every kernel against the textbook with a mask of blocks.
#include <array>
#include <cmath>
#include <string>

#include "tests/worker/engine/model/autograd_oracle.h"
#include "tests/worker/engine/operators/varlen_kernels.h"
#include "worker/engine/operators/attention.h"
#include "worker/engine/operators/attention_kernels.h"

namespace motley::engine {
namespace {

using Lengths = std::vector<DocumentLengths>;

// [samples, 1, seq_len, seq_len]: what a position does not see.
at::Tensor Unseen(const Lengths& lengths, int64_t seq_len) {
  const at::Tensor unseen = at::ones({static_cast<int64_t>(lengths.size()), 1, seq_len, seq_len}, at::kBool);
  for (size_t s = 0; s < lengths.size(); ++s) {
    int64_t begin = 0;
    for (const int32_t length : lengths[s]) {
      unseen[static_cast<int64_t>(s)][0]
          .narrow(0, begin, length)
          .narrow(1, begin, length)
          .copy_(at::ones({length, length}, at::kBool).triu(1));
      begin += length;
    }
  }
  return unseen;
}

at::Tensor Textbook(const at::Tensor& qkv, const HeadLayout& layout, const at::Tensor& unseen) {
  const int64_t group = layout.heads / layout.kv_heads;
  const at::Tensor q = HeadsView(qkv, layout, 0, layout.heads).transpose(1, 2);
  const at::Tensor k = HeadsView(qkv, layout, layout.heads, layout.kv_heads).transpose(1, 2).repeat_interleave(group, 1);
  const at::Tensor v =
      HeadsView(qkv, layout, layout.heads + layout.kv_heads, layout.kv_heads).transpose(1, 2).repeat_interleave(group, 1);
  const at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) / std::sqrt(static_cast<double>(layout.head_dim));
  return at::matmul(at::softmax(scores.masked_fill(unseen, -INFINITY), -1), v).transpose(1, 2).flatten(-2);
}

class AttentionRowsTest : public OperatorTest {
 protected:
  double limit() const { return dtype() == at::kDouble ? 1e-12 : 1e-5; }

  void Check(const HeadLayout& layout, const Lengths& lengths, int64_t seq_len) {
    const auto samples = static_cast<int64_t>(lengths.size());
    const Borders borders = MakeBorders(lengths, at::kCPU);
    const at::Tensor qkv = Leaf(Make({samples, seq_len, layout.width()}));
    const at::Tensor grad_output = Make({samples, seq_len, layout.heads * layout.head_dim});
    const at::Tensor want = Textbook(qkv, layout, Unseen(lengths, seq_len));
    const at::Tensor want_grad = AutogradOf(want, {qkv}, grad_output)[0];

    c10::NoGradGuard no_grad;
    const AttentionOutput got = AttentionForward(qkv.detach(), layout, &borders);
    EXPECT_TRUE(got.output.is_contiguous());
    EXPECT_EQ(got.logsumexp.numel(), samples * layout.heads * seq_len) << "as many bytes as of whole samples";
    ExpectNear(got.output, want, limit(), "output");
    ExpectNear(AttentionBackward(grad_output, qkv.detach(), got, layout, &borders), want_grad, limit(), "gradient");

    const VarlenKernels kernels;
    for (const AttentionKernel* kernel : {&MathAttention(), &FlashAttention(), &EfficientAttention()}) {
      CheckKernel(*kernel, qkv.detach(), layout, borders, want, want_grad, grad_output);
    }
  }

  void CheckKernel(const AttentionKernel& kernel, const at::Tensor& qkv, const HeadLayout& layout, const Borders& borders,
                   const at::Tensor& want, const at::Tensor& want_grad, const at::Tensor& grad_output) {
    const auto apart = [&](int64_t first, int64_t count) { return HeadsView(qkv, layout, first, count).transpose(1, 2); };
    const auto together = [](const at::Tensor& heads) { return heads.transpose(1, 2).flatten(-2); };
    const AttentionHeads heads = {apart(0, layout.heads), apart(layout.heads, layout.kv_heads),
                                  apart(layout.heads + layout.kv_heads, layout.kv_heads)};
    const AttentionResult got = kernel.forward_apart(heads, borders, {});
    ExpectNear(together(got.output), want, limit(), std::string("output of the kernel ") + kernel.name);
    EXPECT_EQ(got.logsumexp.numel(), qkv.size(0) * layout.heads * qkv.size(1)) << kernel.name;
    const at::Tensor grad = grad_output.unflatten(-1, {layout.heads, layout.head_dim}).transpose(1, 2);
    const AttentionHeads grads = kernel.backward_apart(grad, heads, got, borders, {});
    ExpectNear(at::cat({together(grads.q), together(grads.k), together(grads.v)}, -1), want_grad, limit(),
               std::string("gradient of the kernel ") + kernel.name);
  }
};

TEST_P(AttentionRowsTest, EqualsTextbook) { Check({.heads = 4, .kv_heads = 4, .head_dim = 8}, {{5, 1, 7}, {13}, {2, 11}}, 13); }
TEST_P(AttentionRowsTest, GroupedQueryHeadsEqualTextbook) {
  Check({.heads = 6, .kv_heads = 2, .head_dim = 8}, {{5, 1, 7}, {4, 4, 5}}, 13);
}
TEST_P(AttentionRowsTest, OneKeyHeadEqualsTextbook) { Check({.heads = 4, .kv_heads = 1, .head_dim = 16}, {{3, 4}}, 7); }
TEST_P(AttentionRowsTest, DocumentsOfOneTokenEqualTextbook) {
  Check({.heads = 4, .kv_heads = 2, .head_dim = 8}, {{1, 1, 1, 1}, {1, 1, 1, 1}}, 4);
}
TEST_P(AttentionRowsTest, LongerThanOneBlockOfTheKernelEqualsTextbook) {
  Check({.heads = 2, .kv_heads = 1, .head_dim = 4}, {{600, 60, 40}}, 700);
}
// One call for all would keep a square of logsumexps.
TEST_P(AttentionRowsTest, ManyShortDocumentsBesideALongOneEqualTextbook) {
  DocumentLengths lengths(100, 1);
  lengths.push_back(150);
  Check({.heads = 2, .kv_heads = 1, .head_dim = 4}, {lengths, lengths}, 250);
}

TEST_P(AttentionRowsTest, SamplesOfOneDocumentHaveTheBitsOfSamplesWithoutBorders) {
  const HeadLayout layout{.heads = 4, .kv_heads = 2, .head_dim = 8};
  const Borders borders = MakeBorders({{9}, {9}}, at::kCPU);
  const at::Tensor qkv = Make({2, 9, layout.width()}), grad = Make({2, 9, 32});
  c10::NoGradGuard no_grad;
  const AttentionOutput with = AttentionForward(qkv, layout, &borders), without = AttentionForward(qkv, layout);
  EXPECT_TRUE(at::equal(with.output, without.output) && at::equal(with.logsumexp, without.logsumexp));
  EXPECT_TRUE(at::equal(AttentionBackward(grad, qkv, with, layout, &borders), AttentionBackward(grad, qkv, without, layout)));
}

TEST_P(AttentionRowsTest, AnotherDocumentMovesNoBit) {
  const HeadLayout layout{.heads = 4, .kv_heads = 2, .head_dim = 8};
  const Borders borders = MakeBorders({{6, 5, 9}, {20}}, at::kCPU);
  const at::Tensor qkv = Make({2, 20, layout.width()}), grad = Make({2, 20, 32});
  at::Tensor changed = qkv.clone();
  changed[0].narrow(0, 6, 5).add_(Make({5, layout.width()}));
  c10::NoGradGuard no_grad;
  const AttentionOutput before = AttentionForward(qkv, layout, &borders), after = AttentionForward(changed, layout, &borders);
  const at::Tensor grad_before = AttentionBackward(grad, qkv, before, layout, &borders);
  const at::Tensor grad_after = AttentionBackward(grad, changed, after, layout, &borders);
  for (const auto& [was, is] : {std::pair(before.output, after.output), std::pair(grad_before, grad_after)}) {
    EXPECT_TRUE(at::equal(was[0].narrow(0, 0, 6), is[0].narrow(0, 0, 6)));
    EXPECT_FALSE(at::equal(was[0].narrow(0, 6, 5), is[0].narrow(0, 6, 5)));
    EXPECT_TRUE(at::equal(was[0].narrow(0, 11, 9), is[0].narrow(0, 11, 9)));
    EXPECT_TRUE(at::equal(was[1], is[1]));
  }
}

MOTLEY_BOTH_DTYPES(AttentionRowsTest);

}  // namespace
}  // namespace motley::engine
