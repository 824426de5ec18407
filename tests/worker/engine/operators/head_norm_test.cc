#include "worker/engine/operators/head_norm.h"

#include "tests/worker/engine/model/autograd_oracle.h"

namespace motley::engine {
namespace {

using HeadNormTest = OperatorTest;

constexpr HeadLayout kLayout = {.heads = 6, .kv_heads = 2, .head_dim = 8};
constexpr int64_t kRows = 14, kQueries = 6 * 8, kKeys = 2 * 8;
constexpr double kHeadNormEps = 1e-5;
constexpr HeadNorm kKinds[] = {HeadNorm::kByHead, HeadNorm::kWhole};

// transformers' Qwen3RMSNorm over each head, and Olmo2RMSNorm over all: on the fused projection.
at::Tensor HuggingFaceHeadNorm(const at::Tensor& qkv, const at::Tensor& q_norm, const at::Tensor& k_norm) {
  const auto norm = [](const at::Tensor& t, const at::Tensor& weight) {
    const at::Tensor groups = t.view({kRows, -1, weight.numel()});
    return (weight * (groups * at::rsqrt(groups.pow(2).mean(-1, true) + kHeadNormEps))).flatten(1);
  };
  return at::cat({norm(qkv.narrow(1, 0, kQueries), q_norm), norm(qkv.narrow(1, kQueries, kKeys), k_norm),
                  qkv.narrow(1, kQueries + kKeys, kKeys)},
                 1);
}

TEST_P(HeadNormTest, EqualsHuggingFaceAndAutograd) {
  for (const HeadNorm kind : kKinds) {
    const bool by_head = kind == HeadNorm::kByHead;
    const at::Tensor qkv = Leaf(Make({kRows, kLayout.width()})), dy = Make({kRows, kLayout.width()});
    const at::Tensor q_norm = Leaf(Make({by_head ? 8 : kQueries})), k_norm = Leaf(Make({by_head ? 8 : kKeys}));
    const at::Tensor want = HuggingFaceHeadNorm(qkv, q_norm, k_norm);
    const auto grads = AutogradOf(want, {qkv, q_norm, k_norm}, dy);

    c10::NoGradGuard no_grad;
    const at::Tensor weights = at::cat({q_norm, k_norm});
    at::Tensor y = qkv.detach().clone(), dx = dy.clone();
    const HeadNormSaved saved = HeadNormForward(y, kLayout, kind, weights, kHeadNormEps);
    EXPECT_TRUE(at::equal(saved.raw, qkv.narrow(1, 0, kQueries + kKeys)));
    EXPECT_EQ(saved.rstd.sizes(), (at::IntArrayRef{kRows, by_head ? 8 : 2}));
    const at::Tensor dw = HeadNormBackward(dx, saved, kLayout, kind, weights);
    ExpectNear(y, want, tolerance(), "output");
    ExpectNear(dx, grads[0], tolerance(), "input gradient");
    ExpectNear(dw, at::cat({grads[1], grads[2]}), tolerance(), "gradient of the weights");
    const auto values = [](const at::Tensor& t) { return t.narrow(1, kQueries + kKeys, kKeys); };
    EXPECT_TRUE(at::equal(values(y), values(qkv)) && at::equal(values(dx), values(dy)));
  }
}

// What is stored is what the weights are short of 1.
TEST_P(HeadNormTest, PlusOneIsTheNormOfWeightsThatAreOneMore) {
  const at::Tensor qkv = Make({kRows, kLayout.width()}), dy = Make({kRows, kLayout.width()}), weights = Make({16});
  const auto pass = [&](NormKind norm, const at::Tensor& stored) {
    at::Tensor y = qkv.clone(), dx = dy.clone();
    const HeadNormSaved saved = HeadNormForward(y, kLayout, HeadNorm::kByHead, stored, kHeadNormEps, norm);
    return std::vector{y, dx, HeadNormBackward(dx, saved, kLayout, HeadNorm::kByHead, stored, norm)};
  };
  const auto got = pass(NormKind::kRmsNormPlusOne, weights), want = pass(NormKind::kRmsNorm, weights + 1);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << i;
}

TEST_P(HeadNormTest, NoRowsAreLegal) {
  for (const HeadNorm kind : kKinds) {
    at::Tensor none = at::empty({0, kLayout.width()}, dtype()), grad = none.clone();
    const at::Tensor weights = Make({kind == HeadNorm::kByHead ? 16 : kQueries + kKeys});
    const HeadNormSaved saved = HeadNormForward(none, kLayout, kind, weights, kHeadNormEps);
    EXPECT_EQ(HeadNormBackward(grad, saved, kLayout, kind, weights).abs().sum().item<double>(), 0);
  }
}

MOTLEY_BOTH_DTYPES(HeadNormTest);

}  // namespace
}  // namespace motley::engine
