// Attention over a window of the newest positions: every kernel against the textbook with a mask, of samples and of documents.
#include <cmath>
#include <string>

#include "tests/worker/engine/model/autograd_oracle.h"
#include "tests/worker/engine/operators/varlen_kernels.h"
#include "worker/engine/operators/attention.h"
#include "worker/engine/operators/attention_kernels.h"

namespace motley::engine {
namespace {

using Lengths = std::vector<DocumentLengths>;

struct Setting {
  HeadLayout layout;
  Lengths lengths;
  int64_t seq_len = 0;
  AttentionForm form;
};

// Position i sees j of its document where i - window < j <= i: as transformers has it.
bool Sees(int64_t i, int64_t j, int64_t begin, int64_t window) { return begin <= j && j <= i && (window == 0 || j > i - window); }

at::Tensor Unseen(const Setting& setting) {
  const int64_t n = setting.seq_len;
  at::Tensor unseen = at::ones({static_cast<int64_t>(setting.lengths.size()), 1, n, n}, at::kBool);
  auto at = unseen.accessor<bool, 4>();
  for (size_t s = 0; s < setting.lengths.size(); ++s) {
    int64_t begin = 0;
    for (const int32_t length : setting.lengths[s]) {
      for (int64_t i = begin; i < begin + length; ++i) {
        for (int64_t j = begin; j <= i; ++j) at[static_cast<int64_t>(s)][0][i][j] = !Sees(i, j, begin, setting.form.window);
      }
      begin += length;
    }
  }
  return unseen;
}

class AttentionWindowTest : public OperatorTest {
 protected:
  double limit() const { return dtype() == at::kDouble ? 1e-12 : 1e-5; }

  static at::Tensor Heads(const at::Tensor& qkv, const HeadLayout& layout, int64_t first, int64_t count) {
    return HeadsView(qkv, layout, first, count).transpose(1, 2);
  }
  static at::Tensor Together(const at::Tensor& heads) { return heads.transpose(1, 2).flatten(-2); }

  static at::Tensor Textbook(const at::Tensor& qkv, const Setting& setting) {
    const HeadLayout& layout = setting.layout;
    const int64_t group = layout.heads / layout.kv_heads;
    const at::Tensor k = Heads(qkv, layout, layout.heads, layout.kv_heads).repeat_interleave(group, 1);
    const at::Tensor v = Heads(qkv, layout, layout.heads + layout.kv_heads, layout.kv_heads).repeat_interleave(group, 1);
    const double scale = setting.form.scale != 0 ? setting.form.scale : 1 / std::sqrt(static_cast<double>(layout.head_dim));
    const at::Tensor scores = at::matmul(Heads(qkv, layout, 0, layout.heads), k.transpose(-2, -1)) * scale;
    return Together(at::matmul(at::softmax(scores.masked_fill(Unseen(setting), -INFINITY), -1), v));
  }

  void Check(const Setting& setting) {
    const HeadLayout& layout = setting.layout;
    const auto samples = static_cast<int64_t>(setting.lengths.size());
    const at::Tensor qkv = Leaf(Make({samples, setting.seq_len, layout.width()}));
    const at::Tensor grad_output = Make({samples, setting.seq_len, layout.heads * layout.head_dim});
    const at::Tensor want = Textbook(qkv, setting);
    const at::Tensor want_grad = AutogradOf(want, {qkv}, grad_output)[0];
    const Borders borders = MakeBorders(setting.lengths, at::kCPU);
    const bool apart = !AreSamples(&borders);

    c10::NoGradGuard no_grad;
    const at::Tensor in = qkv.detach();
    const AttentionOutput got = AttentionForward(in, layout, &borders, setting.form);
    EXPECT_TRUE(got.output.is_contiguous());
    EXPECT_EQ(got.logsumexp.numel(), samples * layout.heads * setting.seq_len) << "as many bytes as without a window";
    ExpectNear(got.output, want, limit(), "output");
    ExpectNear(AttentionBackward(grad_output, in, got, layout, &borders, setting.form), want_grad, limit(), "gradient");

    const VarlenKernels kernels;
    const AttentionHeads heads = {Heads(in, layout, 0, layout.heads), Heads(in, layout, layout.heads, layout.kv_heads),
                                  Heads(in, layout, layout.heads + layout.kv_heads, layout.kv_heads)};
    const at::Tensor grad = grad_output.unflatten(-1, {layout.heads, layout.head_dim}).transpose(1, 2);
    for (const AttentionKernel* kernel : {&MathAttention(), &FlashAttention(), &EfficientAttention()}) {
      if (!apart && kernel == &FlashAttention() && setting.form.WindowOver(setting.seq_len) == 0) continue;  // a card's alone
      const AttentionResult made =
          apart ? kernel->forward_apart(heads, borders, setting.form) : kernel->forward(heads, setting.form);
      ExpectNear(Together(made.output), want, limit(), std::string("output of the kernel ") + kernel->name);
      const AttentionHeads grads = apart ? kernel->backward_apart(grad, heads, made, borders, setting.form)
                                         : kernel->backward(grad, heads, made, setting.form);
      ExpectNear(at::cat({Together(grads.q), Together(grads.k), Together(grads.v)}, -1), want_grad, limit(),
                 std::string("gradient of the kernel ") + kernel->name);
    }
  }
};

constexpr HeadLayout kGrouped{.heads = 6, .kv_heads = 2, .head_dim = 8};

TEST_P(AttentionWindowTest, EveryWindowEqualsTextbook) {
  for (int64_t window = 1; window <= 14; ++window) Check({kGrouped, {{13}, {13}}, 13, {.window = window}});
}
TEST_P(AttentionWindowTest, EveryWindowOfRowsEqualsTextbook) {
  for (int64_t window = 1; window <= 9; ++window) {
    Check({kGrouped, {{5, 1, 7}, {13}, {2, 11}}, 13, {.window = window}});
  }
}
TEST_P(AttentionWindowTest, SeveralBlocksOfQueriesEqualTextbook) {
  for (const int64_t window : {3, 100, 300, 600}) {
    Check({{.heads = 2, .kv_heads = 1, .head_dim = 4}, {{1100}}, 1100, {.window = window}});
  }
}
TEST_P(AttentionWindowTest, LongDocumentsEqualTextbook) {
  Check({{.heads = 2, .kv_heads = 2, .head_dim = 4}, {{600, 60, 40}}, 700, {.window = 90}});
}
TEST_P(AttentionWindowTest, AnotherScaleEqualsTextbook) {
  Check({kGrouped, {{13}}, 13, {.scale = 0.7}});
  Check({kGrouped, {{13}}, 13, {.window = 4, .scale = 0.7}});
  Check({kGrouped, {{5, 1, 7}}, 13, {.window = 4, .scale = 0.7}});
}

// What lies before the window moves no bit.
TEST_P(AttentionWindowTest, APositionBeforeTheWindowMovesNoBit) {
  constexpr int64_t kSeqLen = 900, kWindow = 70, kChanged = 300;
  const HeadLayout layout{.heads = 2, .kv_heads = 1, .head_dim = 8};
  const at::Tensor qkv = Make({1, kSeqLen, layout.width()});
  at::Tensor changed = qkv.clone();
  changed.narrow(1, kChanged, 1).add_(1);
  const AttentionForm form{.window = kWindow};
  c10::NoGradGuard no_grad;
  const at::Tensor before = AttentionForward(qkv, layout, nullptr, form).output;
  const at::Tensor after = AttentionForward(changed, layout, nullptr, form).output;
  const auto same = [&](int64_t begin, int64_t end) {
    return at::equal(before.narrow(1, begin, end - begin), after.narrow(1, begin, end - begin));
  };
  EXPECT_TRUE(same(0, kChanged));
  EXPECT_FALSE(same(kChanged + kWindow - 1, kChanged + kWindow));
  EXPECT_TRUE(same(kChanged + kWindow, kSeqLen));
}

// It is none, to the bit.
TEST_P(AttentionWindowTest, AWindowThatHoldsAllHasTheBitsOfNone) {
  const at::Tensor qkv = Make({2, 9, kGrouped.width()}), grad = Make({2, 9, 48});
  c10::NoGradGuard no_grad;
  const AttentionOutput none = AttentionForward(qkv, kGrouped), all = AttentionForward(qkv, kGrouped, nullptr, {.window = 9});
  EXPECT_TRUE(at::equal(none.output, all.output) && at::equal(none.logsumexp, all.logsumexp));
  EXPECT_TRUE(at::equal(AttentionBackward(grad, qkv, none, kGrouped),
                        AttentionBackward(grad, qkv, all, kGrouped, nullptr, {.window = 9})));
}

MOTLEY_BOTH_DTYPES(AttentionWindowTest);

}  // namespace
}  // namespace motley::engine
