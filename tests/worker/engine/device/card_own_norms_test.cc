// Norms and the last residual by kernels of our own on a card, beside PyTorch's operators on the host in float32: tests without a
// card hold the host's build of the same kernels against float64.
#include <ATen/ATen.h>

#include "tests/worker/engine/device/card.h"
#include "worker/engine/kernels/kernel_launcher.h"
#include "worker/engine/operators/finite_check.h"
#include "worker/engine/operators/norm.h"
#include "worker/engine/operators/residual.h"

namespace motley::engine {
namespace {

class CardOwnNormsTest : public CardTest, public testing::WithParamInterface<at::ScalarType> {
 protected:
  void SetUp() override {
    CardTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_NE(card().kernels(), nullptr) << card().note();
  }
  at::Tensor There(const at::Tensor& here) { return here.defined() ? here.to(card().tensors()) : here; }
  // `steps`: of the type between two numbers.
  void ExpectNear(const at::Tensor& got, const at::Tensor& want, double steps, const char* what) const {
    const double step = GetParam() == at::kBFloat16 ? 1.0 / 128 : GetParam() == at::kHalf ? 1.0 / 1024 : 1.0 / (1 << 20);
    const at::Tensor apart = (got.cpu().to(at::kDouble) - want.to(at::kDouble)).abs();
    EXPECT_LE((apart / (want.to(at::kDouble).abs() + 1)).max().item<double>(), steps * step) << what;
  }
};

TEST_P(CardOwnNormsTest, AreTheHosts) {
  for (const NormKind kind : {NormKind::kLayerNorm, NormKind::kRmsNorm, NormKind::kRmsNormPlusOne}) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 8}, {37, 88}, {3000, 768}, {129, 4096}, {9, 12288}}) {
      const at::Tensor x = at::randn({rows, columns}).to(GetParam()), past = at::randn({rows, columns}).to(GetParam()),
                       grad = at::randn({rows, columns}).to(GetParam()), weight = at::randn({columns}).to(GetParam()),
                       bias = kind == NormKind::kLayerNorm ? at::randn({columns}).to(GetParam()) : at::Tensor();
      const at::Tensor sum = x.add(past).to(at::kFloat), wide_bias = bias.defined() ? bias.to(at::kFloat) : bias;
      NormStats stats;
      const at::Tensor output = NormForward(kind, sum, weight.to(at::kFloat), wide_bias, 1e-5, stats);
      const NormGradients want = NormBackward(kind, grad.to(at::kFloat), sum, weight.to(at::kFloat), wide_bias, stats);

      const FiniteCheck check(1, 1, at::TensorOptions(at::kFloat).device(card().tensors()));
      std::vector<NormGradients> made;
      for (int again = 0; again < 2; ++again) {
        const at::Tensor there = There(x);
        NormStats stats_there;
        FiniteMark mark = check.MarkOf(0, 0);
        const at::Tensor got =
            NormForward(kind, there, There(weight), There(bias), 1e-5, stats_there, card().kernels(), There(past));
        made.push_back(NormBackward(kind, There(grad), there, There(weight), There(bias), stats_there, card().kernels(),
                                    There(past), &mark));
        EXPECT_TRUE(mark.taken());
        EXPECT_TRUE(there.cpu().equal(x.add(past)));
        ExpectNear(got, output, 1, "output");
      }
      EXPECT_EQ(check.First(), 1);
      ExpectNear(made[0].input, want.input.add(past.to(at::kFloat)), 2, "gradient");
      const double terms = std::sqrt(static_cast<double>(rows));
      EXPECT_LE((made[0].weight.cpu() - want.weight).abs().max().item<double>(), 1e-5 * terms);
      if (bias.defined()) {
        EXPECT_LE((made[0].bias.cpu() - want.bias).abs().max().item<double>(), 1e-5 * terms);
      }
      EXPECT_TRUE(made[0].input.equal(made[1].input) && made[0].weight.equal(made[1].weight)) << "two runs differ";
    }
  }
}

TEST_P(CardOwnNormsTest, AResidualSaysWhatIsNotFinite) {
  for (const double bad : {0.0, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    const at::Tensor x = at::randn({300, 776}).to(GetParam()), past = at::randn({300, 776}).to(GetParam());
    past.select(0, 299).select(0, 775).fill_(bad);
    const FiniteCheck check(1, 1, at::TensorOptions(at::kFloat).device(card().tensors()));
    FiniteMark mark = check.MarkOf(0, 0);
    const at::Tensor there = There(x);
    AddCarried(there, There(past), card().kernels(), &mark);
    EXPECT_TRUE(mark.taken());
    EXPECT_EQ(check.First(), bad == 0 ? 1 : 0);
    if (bad == 0) {
      EXPECT_TRUE(there.cpu().equal(x.add(past)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CardOwnNormsTest, testing::Values(at::kBFloat16, at::kHalf, at::kFloat));

}  // namespace
}  // namespace motley::engine
