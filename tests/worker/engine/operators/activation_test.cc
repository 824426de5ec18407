#include "worker/engine/operators/activation.h"

#include <cmath>

#include "tests/worker/engine/model/autograd_oracle.h"

namespace motley::engine {
namespace {

using ActivationTest = OperatorTest;

TEST_P(ActivationTest, GeluEqualsAutograd) {
  const at::Tensor x = Leaf(Make({5, 12}, 2.0)), dy = Make({5, 12});
  const at::Tensor want = 0.5 * x * (1 + at::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x.pow(3))));
  const auto grads = AutogradOf(want, {x}, dy);
  c10::NoGradGuard no_grad;
  ExpectNear(GeluForward(x.detach()), want, tolerance(), "output");
  ExpectNear(GeluBackward(dy, x.detach()), grads[0], tolerance(), "input gradient");
}

TEST_P(ActivationTest, SwiGluEqualsAutograd) {
  const at::Tensor x = Leaf(Make({5, 24}, 2.0)), dy = Make({5, 12});
  const at::Tensor gate = x.narrow(-1, 0, 12), up = x.narrow(-1, 12, 12);
  const at::Tensor want = gate * at::sigmoid(gate) * up;
  const auto grads = AutogradOf(want, {x}, dy);
  c10::NoGradGuard no_grad;
  ExpectNear(SwiGluForward(x.detach()), want, tolerance(), "output");
  ExpectNear(SwiGluBackward(dy, x.detach()), grads[0], tolerance(), "input gradient");
}

TEST_P(ActivationTest, GeGluEqualsAutograd) {
  const at::Tensor x = Leaf(Make({5, 24}, 2.0)), dy = Make({5, 12});
  const at::Tensor gate = x.narrow(-1, 0, 12), up = x.narrow(-1, 12, 12);
  const at::Tensor want = 0.5 * gate * (1 + at::tanh(std::sqrt(2 / M_PI) * (gate + 0.044715 * gate.pow(3)))) * up;
  const auto grads = AutogradOf(want, {x}, dy);
  c10::NoGradGuard no_grad;
  ExpectNear(GeGluForward(x.detach()), want, tolerance(), "output");
  ExpectNear(GeGluBackward(dy, x.detach()), grads[0], tolerance(), "input gradient");
}

MOTLEY_BOTH_DTYPES(ActivationTest);

}  // namespace
}  // namespace motley::engine
