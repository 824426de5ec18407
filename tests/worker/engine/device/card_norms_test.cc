// Norms on a card beside the host's in float64, which tests of operators hold against autograd.
#include <ATen/ATen.h>

#include <string>

#include "tests/worker/engine/device/card.h"
#include "worker/engine/operators/norm.h"

namespace motley::engine {
namespace {

class CardNormsTest : public CardTest, public testing::WithParamInterface<at::ScalarType> {
 protected:
  double tolerance() const {
    switch (GetParam()) {
      case at::kDouble:
        return 1e-12;
      case at::kFloat:
        return 1e-5;
      default:
        return GetParam() == at::kBFloat16 ? 1.5e-2 : 2e-3;
    }
  }
  void ExpectSame(const at::Tensor& got, const at::Tensor& want, const char* what) const {
    ASSERT_EQ(got.sizes(), want.sizes()) << what;
    const double distance = (got.cpu().to(at::kDouble) - want).norm().item<double>();
    EXPECT_LE(distance, tolerance() * want.norm().item<double>()) << what;
  }
};

TEST_P(CardNormsTest, MakeTheHostsNumbers) {
  for (const NormKind kind : {NormKind::kLayerNorm, NormKind::kRmsNorm}) {
    const bool bias = kind == NormKind::kLayerNorm;
    const auto made = [&](at::IntArrayRef shape) { return at::randn(shape, at::kDouble).to(GetParam()); };
    const at::Tensor x = made({300, 256}), w = made({256}), b = made({256}), dy = made({300, 256}), none;
    const auto wide = [](const at::Tensor& t) { return t.to(at::kDouble); };
    const auto on_card = [&](const at::Tensor& t) { return t.to(card().tensors()); };
    NormStats want_stats, stats;
    const at::Tensor want = NormForward(kind, wide(x), wide(w), bias ? wide(b) : none, 1e-5, want_stats);
    const NormGradients want_grads = NormBackward(kind, wide(dy), wide(x), wide(w), bias ? wide(b) : none, want_stats);
    ExpectSame(NormForward(kind, on_card(x), on_card(w), bias ? on_card(b) : none, 1e-5, stats), want, "output");
    // What the ledger counts for them.
    EXPECT_EQ(stats.rstd.scalar_type(), GetParam() == at::kDouble ? at::kDouble : at::kFloat);
    ExpectSame(stats.rstd, want_stats.rstd, "statistics");
    const NormGradients grads = NormBackward(kind, on_card(dy), on_card(x), on_card(w), bias ? on_card(b) : none, stats);
    ExpectSame(grads.input, want_grads.input, "input gradient");
    ExpectSame(grads.weight, want_grads.weight, "weight gradient");
    if (bias) ExpectSame(grads.bias, want_grads.bias, "bias gradient");
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CardNormsTest, testing::Values(at::kDouble, at::kFloat, at::kHalf, at::kBFloat16),
                         [](const auto& info) { return std::string(at::toString(info.param)); });

}  // namespace
}  // namespace motley::engine
