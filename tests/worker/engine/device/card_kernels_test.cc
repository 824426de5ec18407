// Kernels of our own on a card beside PyTorch's operators on the host, which round at the same places: tests without a card hold
// the host's build of the same kernels against both.
#include <ATen/ATen.h>

#include <cmath>

#include "tests/worker/engine/device/card.h"
#include "worker/engine/kernels/kernel_launcher.h"
#include "worker/engine/model/optimizer.h"
#include "worker/engine/operators/activation.h"
#include "worker/engine/operators/lm_head_loss.h"
#include "worker/engine/operators/own_bias_gradient.h"
#include "worker/engine/operators/own_rotary.h"

namespace motley::engine {
namespace {

class CardKernelsTest : public CardTest, public testing::WithParamInterface<at::ScalarType> {
 protected:
  void SetUp() override {
    CardTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_NE(card().kernels(), nullptr) << card().note();
  }
  // A card contracts products and sums, and its exponentials may differ in their last bits. Of a difference of products few
  // digits may be left, so float32 is held against what went in, which is about 1. In half types two roundings may fall apart: an
  // intermediate's and the end's.
  void ExpectSame(const at::Tensor& got, const at::Tensor& want, const char* what, double float_step = 1.0 / (1 << 20),
                  double same = 0.99) const {
    const at::Tensor here = got.cpu(), apart = (here.to(at::kDouble) - want.to(at::kDouble)).abs();
    const double step = GetParam() == at::kBFloat16 ? 1.0 / 64 : GetParam() == at::kHalf ? 1.0 / 512 : float_step;
    const double floor = GetParam() == at::kFloat ? 1 : 1e-2;
    EXPECT_LE((apart / (want.to(at::kDouble).abs() + floor)).max().item<double>(), step) << what;
    if (GetParam() != at::kFloat) {
      EXPECT_GT(here.eq(want).to(at::kFloat).mean().item<double>(), same) << what << ": rounded elsewhere";
    }
  }
};

TEST_P(CardKernelsTest, SwiGluIsTheHosts) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 8}, {37, 88}, {129, 1528}}) {
    const at::Tensor input = (at::randn({rows, 2 * columns}) * 3).to(GetParam()),
                     grad = at::randn({rows, columns}).to(GetParam());
    const at::Tensor there = input.to(card().tensors());
    ExpectSame(SwiGluForward(there, card().kernels()), SwiGluForward(input), "output");
    ExpectSame(SwiGluBackward(grad.to(card().tensors()), there, card().kernels()), SwiGluBackward(grad, input), "gradients");
  }
}

TEST_P(CardKernelsTest, GeGluIsTheHosts) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 8}, {129, 1528}}) {
    const at::Tensor input = (at::randn({rows, 2 * columns}) * 2).to(GetParam()),
                     grad = at::randn({rows, columns}).to(GetParam());
    const at::Tensor there = input.to(card().tensors());
    // Of PyTorch's 1 + tanh(u) few digits are left where it is near 0.
    ExpectSame(GeGluForward(there, card().kernels()), GeGluForward(input), "output", 1e-4, 0.97);
    ExpectSame(GeGluBackward(grad.to(card().tensors()), there, card().kernels()), GeGluBackward(grad, input), "gradients", 1e-4,
               0.97);
  }
}

TEST_P(CardKernelsTest, RotaryAndPackedHeadsAreTheHosts) {
  for (const int64_t dim : {64, 80, 128}) {
    const RotaryTables tables = MakeRotaryTables(33, dim, 1e4, GetParam());
    const RotaryTables there = {tables.cos.to(card().tensors()), tables.sin.to(card().tensors())};
    at::Tensor rows = at::randn({3, 33, 8 * dim}).to(GetParam()), on_card = rows.to(card().tensors());
    RotaryForward(there, on_card, 6, card().kernels());
    RotaryForward(tables, rows, 6);
    ExpectSame(on_card, rows, "turned");
    const auto draw = [&](int64_t heads) { return at::randn({3, 33, heads, dim}).to(GetParam()).transpose(1, 2); };
    const AttentionHeads grads = {draw(4), draw(2), draw(2)};
    const AttentionHeads on_the_card = {grads.q.to(card().tensors()), grads.k.to(card().tensors()), grads.v.to(card().tensors())};
    at::Tensor want = at::cat({grads.q.transpose(1, 2), grads.k.transpose(1, 2), grads.v.transpose(1, 2)}, 2).flatten(2);
    RotaryBackward(tables, want, 6);
    ExpectSame(OwnPackHeads(*card().kernels(), on_the_card, there), want, "side by side");
  }
}

TEST_P(CardKernelsTest, ABiasGradientIsTheHostsAndTwiceTheSame) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 8}, {100, 72}, {5000, 776}}) {
    const at::Tensor grad = at::randn({rows, columns}).to(GetParam()), there = grad.to(card().tensors());
    at::Tensor sums = at::zeros({columns}, there.options().dtype(at::kFloat)), again = at::zeros_like(sums);
    OwnAddSums(*card().kernels(), there, sums);
    OwnAddSums(*card().kernels(), there, again);
    EXPECT_TRUE(sums.equal(again));
    EXPECT_LT((sums.cpu() - grad.to(at::kDouble).sum(0)).abs().max().item<double>(), 1e-6 * static_cast<double>(rows + 1));
  }
}

// Of more threads than an emulated card gives it, of logits in both types.
TEST_P(CardKernelsTest, HeadLossIsTheHosts) {
  for (const at::ScalarType of_logits : {GetParam(), at::kFloat}) {
    for (const auto& [rows, words] : {std::pair<int64_t, int64_t>{1, 8}, {37, 203}, {5, 50257}}) {
      at::Tensor logits = (at::randn({rows, (words + 63) / 64 * 64}) * 3).to(of_logits);
      logits.narrow(1, words, logits.size(1) - words).fill_(-INFINITY);
      const at::Tensor like = at::empty({1}, GetParam()), targets = at::randint(words, {rows}, at::kLong);
      const LossAndGradient here = LossAndGradientOf(logits.clone(), like, targets, words, 8, nullptr);
      const c10::Device there = card().tensors();
      const LossAndGradient on_card =
          LossAndGradientOf(logits.to(there), like.to(there), targets.to(there), words, 8, card().kernels());
      EXPECT_NEAR(on_card.loss.item<double>(), here.loss.item<double>(), 1e-5 * here.loss.item<double>());
      ExpectSame(on_card.gradient, here.gradient, "gradient of logits");
    }
  }
}

TEST_P(CardKernelsTest, AdamWIsTheHosts) {
  constexpr int64_t kCount = 5003;
  const auto drawn = [](int64_t begin) { return at::rand({begin + kCount}).narrow(0, begin, kCount); };
  AdamWRange here = {drawn(3), drawn(0), drawn(0), drawn(2), at::zeros({kCount + 1}, GetParam()).narrow(0, 1, kCount), true};
  AdamWRange there = here;
  for (at::Tensor AdamWRange::*const tensor :
       {&AdamWRange::gradient, &AdamWRange::parameter, &AdamWRange::exp_avg, &AdamWRange::exp_avg_sq, &AdamWRange::cast}) {
    const at::Tensor room = at::zeros({kCount + 3}, (here.*tensor).options().device(card().tensors()));
    there.*tensor = room.narrow(0, (here.*tensor).storage_offset(), kCount).copy_(here.*tensor);
  }
  AdamWStep({}, 1e-3, 3, 0.37, here);
  AdamWStep({}, 1e-3, 3, 0.37, there, card().kernels());
  for (at::Tensor AdamWRange::*const tensor : {&AdamWRange::parameter, &AdamWRange::exp_avg, &AdamWRange::exp_avg_sq}) {
    EXPECT_TRUE(at::allclose((there.*tensor).cpu(), here.*tensor, 1e-5, 1e-7));
  }
  ExpectSame(there.cast, here.cast, "cast");
  EXPECT_TRUE(there.gradient.eq(0).all().item<bool>());
}

TEST_P(CardKernelsTest, EveryOneIsLaunchedOnceWithNothingToDo) {
  const DType type = GetParam() == at::kBFloat16 ? DType::kBFloat16 : GetParam() == at::kHalf ? DType::kFloat16 : DType::kFloat32;
  EXPECT_TRUE(card().kernels()->LaunchEachOnce(type).ok());
  card().Synchronize();
}

INSTANTIATE_TEST_SUITE_P(Types, CardKernelsTest, testing::Values(at::kBFloat16, at::kHalf, at::kFloat));

}  // namespace
}  // namespace motley::engine
