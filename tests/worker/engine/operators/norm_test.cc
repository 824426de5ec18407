#include "worker/engine/operators/norm.h"

#include "tests/worker/engine/model/autograd_oracle.h"
#include "worker/engine/operators/fused_rms_norm.h"

namespace motley::engine {
namespace {

using NormTest = OperatorTest;
constexpr double kEps = 1e-5;

TEST_P(NormTest, LayerNormEqualsAutograd) {
  const at::Tensor x = Leaf(Make({6, 16})), w = Leaf(Make({16})), b = Leaf(Make({16})), dy = Make({6, 16});
  const at::Tensor want = at::layer_norm(x, {16}, w, b, kEps);
  const auto grads = AutogradOf(want, {x, w, b}, dy);

  c10::NoGradGuard no_grad;
  NormStats stats;
  ExpectNear(NormForward(NormKind::kLayerNorm, x.detach(), w.detach(), b.detach(), kEps, stats), want, tolerance(), "output");
  const auto [dx, dw, db] = NormBackward(NormKind::kLayerNorm, dy, x.detach(), w.detach(), b.detach(), stats);
  ExpectNear(dx, grads[0], tolerance(), "input gradient");
  ExpectNear(dw, grads[1], tolerance(), "weight gradient");
  ExpectNear(db, grads[2], tolerance(), "bias gradient");
}

TEST_P(NormTest, RmsNormEqualsAutograd) {
  const at::Tensor x = Leaf(Make({6, 16})), w = Leaf(Make({16})), dy = Make({6, 16});
  const at::Tensor want = x * at::rsqrt(x.pow(2).mean(-1, true) + kEps) * w;
  const auto grads = AutogradOf(want, {x, w}, dy);

  c10::NoGradGuard no_grad;
  NormStats stats;
  ExpectNear(NormForward(NormKind::kRmsNorm, x.detach(), w.detach(), at::Tensor(), kEps, stats), want, tolerance(), "output");
  EXPECT_FALSE(stats.mean.defined());
  const auto [dx, dw, db] = NormBackward(NormKind::kRmsNorm, dy, x.detach(), w.detach(), at::Tensor(), stats);
  ExpectNear(dx, grads[0], tolerance(), "input gradient");
  ExpectNear(dw, grads[1], tolerance(), "weight gradient");
  EXPECT_FALSE(db.defined());
}

TEST_P(NormTest, RmsNormPlusOneEqualsAutograd) {
  const at::Tensor x = Leaf(Make({6, 16})), w = Leaf(Make({16})), dy = Make({6, 16});
  const at::Tensor want = x * at::rsqrt(x.pow(2).mean(-1, true) + kEps) * (1 + w);
  const auto grads = AutogradOf(want, {x, w}, dy);

  c10::NoGradGuard no_grad;
  constexpr NormKind kKind = NormKind::kRmsNormPlusOne;
  NormStats stats;
  ExpectNear(NormForward(kKind, x.detach(), w.detach(), at::Tensor(), kEps, stats), want, tolerance(), "output");
  const auto [dx, dw, db] = NormBackward(kKind, dy, x.detach(), w.detach(), at::Tensor(), stats);
  ExpectNear(dx, grads[0], tolerance(), "input gradient");
  ExpectNear(dw, grads[1], tolerance(), "weight gradient");
  EXPECT_FALSE(db.defined());
}

// Of what cards take, as far as the host has it: the forward. Its backward is a test of device/.
TEST_P(NormTest, TheFusedRmsNormMakesTheSame) {
  if (!HasFusedRmsNorm(at::empty({}, at::kMeta))) GTEST_SKIP() << "this libtorch has no fused RMSNorm";
  const at::Tensor x = Make({6, 16}), w = Make({16});
  NormStats stats;
  const at::Tensor want = NormForward(NormKind::kRmsNorm, x, w, at::Tensor(), kEps, stats);
  const FusedRmsNorm got = FusedRmsNormForward(x, w, kEps);
  ExpectNear(got.output, want, dtype() == at::kDouble ? 1e-12 : 1e-6, "output");
  ExpectNear(got.rstd, stats.rstd, dtype() == at::kDouble ? 1e-12 : 1e-6, "statistics");
}

MOTLEY_BOTH_DTYPES(NormTest);

}  // namespace
}  // namespace motley::engine
