#include "worker/engine/operators/projection.h"

#include "tests/worker/engine/model/autograd_oracle.h"

namespace motley::engine {
namespace {

class ProjectionTest : public OperatorTest {
 protected:
  void Check(WeightLayout layout, bool with_bias) {
    const bool in_out = layout == WeightLayout::kInOut;
    const at::Tensor x = Leaf(Make({7, 12})), dy = Make({7, 20});
    const at::Tensor w = Leaf(in_out ? Make({12, 20}) : Make({20, 12})), b = Leaf(Make({20}));
    at::Tensor want = at::matmul(x, in_out ? w : w.t());
    if (with_bias) want = want + b;
    const auto grads = AutogradOf(want, with_bias ? std::vector<at::Tensor>{x, w, b} : std::vector<at::Tensor>{x, w}, dy);

    c10::NoGradGuard no_grad;
    const at::Tensor bias = with_bias ? b.detach() : at::Tensor();
    ExpectNear(ProjectionForward(x.detach(), w.detach(), bias, layout), want, tolerance(), "output");
    ExpectNear(ProjectionBackwardInput(dy, w.detach(), layout), grads[0], tolerance(), "input gradient");
    at::Tensor dw = at::ones_like(w), db = with_bias ? at::ones_like(b) : at::Tensor();
    ProjectionBackwardWeight(dy, x.detach(), layout, dw, db);
    ExpectNear(dw, grads[1] + 1, tolerance(), "weight gradient is added to what was there");
    if (with_bias) ExpectNear(db, grads[2] + 1, tolerance(), "bias gradient is added to what was there");
  }
};

TEST_P(ProjectionTest, Conv1dEqualsAutograd) { Check(WeightLayout::kInOut, /*with_bias=*/true); }
TEST_P(ProjectionTest, LinearEqualsAutograd) { Check(WeightLayout::kOutIn, /*with_bias=*/false); }
TEST_P(ProjectionTest, LinearWithBiasEqualsAutograd) { Check(WeightLayout::kOutIn, /*with_bias=*/true); }

MOTLEY_BOTH_DTYPES(ProjectionTest);

}  // namespace
}  // namespace motley::engine
