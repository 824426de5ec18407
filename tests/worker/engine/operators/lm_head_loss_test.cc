#include "worker/engine/operators/lm_head_loss.h"

#include <cmath>
#include <limits>

#include "tests/worker/engine/model/autograd_oracle.h"

namespace motley::engine {
namespace {

using LmHeadLossTest = OperatorTest;

TEST_P(LmHeadLossTest, EqualsAutograd) {
  constexpr double kScale = 0.125;
  const at::Tensor x = Leaf(Make({9, 8})), w = Leaf(Make({17, 8}));
  const at::Tensor targets = at::randint(17, {9}, at::kLong);
  const at::Tensor want = at::cross_entropy_loss(at::matmul(x, w.t()), targets, {}, at::Reduction::Sum);
  const auto grads = AutogradOf(want * kScale, {x, w}, at::ones({}, dtype()));
  c10::NoGradGuard no_grad;
  const double sum = LmHeadLossForward(x.detach(), w.detach(), targets).item<double>();
  EXPECT_NEAR(sum, want.item<double>(), tolerance() * want.item<double>());
  at::Tensor dw = at::ones_like(w);
  ExpectNear(LmHeadLossBackward(x.detach(), w.detach(), targets, kScale, dw), grads[0], tolerance(), "input gradient");
  ExpectNear(dw, grads[1] + 1, tolerance(), "weight gradient is added to what was there");
}

TEST_P(LmHeadLossTest, LargeLogitsStayFinite) {
  const at::Tensor x = at::full({2, 4}, 100.0, dtype()), w = at::eye(4, dtype()) * 50;
  const at::Tensor targets = at::tensor({1, 2}, at::kLong);
  EXPECT_NEAR(LmHeadLossForward(x, w, targets).item<double>(), 2 * std::log(4.0), 1e-3);
}

TEST_P(LmHeadLossTest, NonFiniteInputShowsInTheSum) {
  at::Tensor x = Make({2, 4});
  x[0][0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(LmHeadLossForward(x, Make({5, 4}), at::tensor({1, 2}, at::kLong)).item<double>()));
}

MOTLEY_BOTH_DTYPES(LmHeadLossTest);

}  // namespace
}  // namespace motley::engine
