// The head's products and loss on a card beside the host's, with as many words as GPT-2 has: no multiple of anything.
#include <ATen/ATen.h>

#include "tests/worker/engine/device/card.h"
#include "worker/engine/operators/lm_head_loss.h"

namespace motley::engine {
namespace {

constexpr int64_t kWords = 50257, kHidden = 64, kRows = 96;

class CardHeadTest : public CardTest, public testing::WithParamInterface<at::ScalarType> {};

double Off(const at::Tensor& got, const at::Tensor& want) {
  const at::Tensor wide = want.to(at::kDouble);
  return ((got.cpu().to(at::kDouble) - wide).norm() / wide.norm()).item<double>();
}

TEST_P(CardHeadTest, MakesTheHostsNumbers) {
  // Half logits are rounded on both sides, and the gradients of their rows.
  const bool half = GetParam() != at::kDouble;
  const double tolerance = !half ? 1e-10 : GetParam() == at::kHalf ? 2e-3 : 2e-2;
  constexpr double kScale = 1.0 / 3;
  const at::Tensor normed = at::randn({kRows, kHidden}, at::kDouble).to(GetParam());
  const at::Tensor weight = at::randn({kWords, kHidden}, at::kDouble).mul_(0.2).to(GetParam());
  const at::Tensor targets = at::randint(kWords, {kRows}, at::kLong);
  targets[0] = kWords - 1;
  at::Tensor of_host = at::ones({kWords, kHidden}, half ? at::kFloat : GetParam());
  at::Tensor of_card = of_host.to(card().tensors());
  const at::Tensor there[] = {normed.to(card().tensors()), weight.to(card().tensors()), targets.to(card().tensors())};

  EXPECT_LE(Off(LmHeadLossForward(there[0], there[1], there[2]), LmHeadLossForward(normed, weight, targets)), tolerance);
  const LmHeadGradient on_card = LmHeadLossBackward(there[0], there[1], there[2], kScale, of_card);
  const LmHeadGradient on_host = LmHeadLossBackward(normed, weight, targets, kScale, of_host);
  EXPECT_LE(Off(on_card.loss, on_host.loss), tolerance);
  EXPECT_LE(Off(on_card.normed, on_host.normed), tolerance);
  EXPECT_LE(Off(of_card.cpu().sub(1), of_host.sub(1)), tolerance);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CardHeadTest, testing::Values(at::kDouble, at::kHalf, at::kBFloat16),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

}  // namespace
}  // namespace motley::engine
