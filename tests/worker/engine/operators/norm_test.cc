#include "worker/engine/operators/norm.h"

#include "tests/worker/engine/model/autograd_oracle.h"

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
  at::Tensor dw = at::ones_like(w), db = at::ones_like(b);
  const at::Tensor dx = NormBackward(NormKind::kLayerNorm, dy, x.detach(), w.detach(), b.detach(), stats, dw, db);
  ExpectNear(dx, grads[0], tolerance(), "input gradient");
  ExpectNear(dw, grads[1] + 1, tolerance(), "weight gradient is added to what was there");
  ExpectNear(db, grads[2] + 1, tolerance(), "bias gradient is added to what was there");
}

TEST_P(NormTest, RmsNormEqualsAutograd) {
  const at::Tensor x = Leaf(Make({6, 16})), w = Leaf(Make({16})), dy = Make({6, 16});
  const at::Tensor want = x * at::rsqrt(x.pow(2).mean(-1, true) + kEps) * w;
  const auto grads = AutogradOf(want, {x, w}, dy);

  c10::NoGradGuard no_grad;
  NormStats stats;
  ExpectNear(NormForward(NormKind::kRmsNorm, x.detach(), w.detach(), at::Tensor(), kEps, stats), want, tolerance(), "output");
  EXPECT_FALSE(stats.mean.defined());
  at::Tensor dw = at::ones_like(w), none;
  const at::Tensor dx = NormBackward(NormKind::kRmsNorm, dy, x.detach(), w.detach(), none, stats, dw, none);
  ExpectNear(dx, grads[0], tolerance(), "input gradient");
  ExpectNear(dw, grads[1] + 1, tolerance(), "weight gradient is added to what was there");
}

MOTLEY_BOTH_DTYPES(NormTest);

}  // namespace
}  // namespace motley::engine
