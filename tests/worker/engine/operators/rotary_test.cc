#include "worker/engine/operators/rotary.h"

#include <array>
#include <cmath>

#include "tests/worker/engine/model/autograd_oracle.h"

namespace motley::engine {
namespace {

using RotaryTest = OperatorTest;

// transformers' apply_rotary_pos_emb, on [samples, seq_len, heads, head_dim].
at::Tensor HuggingFaceRotary(const at::Tensor& x, double theta) {
  const int64_t seq_len = x.size(1), dim = x.size(3);
  const auto f64 = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor inverse = 1.0 / at::pow(theta, at::arange(0, dim, 2, f64) / static_cast<double>(dim));
  const at::Tensor half = at::outer(at::arange(seq_len, f64), inverse);
  const at::Tensor angles = at::cat({half, half}, -1).unsqueeze(1);
  const at::Tensor rotated = at::cat({-x.narrow(-1, dim / 2, dim / 2), x.narrow(-1, 0, dim / 2)}, -1);
  return x * angles.cos().to(x.scalar_type()) + rotated * angles.sin().to(x.scalar_type());
}

TEST_P(RotaryTest, EqualsHuggingFaceAndAutograd) {
  const at::Tensor x = Leaf(Make({2, 9, 3, 8})), dy = Make({2, 9, 3, 8});
  const at::Tensor want = HuggingFaceRotary(x, 10000.0);
  const auto grads = AutogradOf(want, {x}, dy);

  c10::NoGradGuard no_grad;
  const RotaryTables tables = MakeRotaryTables(9, 8, 10000.0, dtype());
  at::Tensor y = x.detach().clone().flatten(2), dx = dy.clone().flatten(2);
  RotaryForward(tables, y, 3);
  RotaryBackward(tables, dx, 3);
  ExpectNear(y.view_as(x), want, tolerance(), "output");
  ExpectNear(dx.view_as(x), grads[0], tolerance(), "input gradient");
}

TEST_P(RotaryTest, WorksInPlaceOnTheFirstHeads) {
  const at::Tensor whole = Make({2, 5, 6, 4});
  at::Tensor rows = whole.clone().flatten(2);
  RotaryForward(MakeRotaryTables(5, 4, 500000.0, dtype()), rows, 4);
  const at::Tensor heads = rows.view_as(whole);
  ExpectNear(heads.narrow(2, 0, 4), HuggingFaceRotary(whole.narrow(2, 0, 4), 500000.0), tolerance(), "rotated heads");
  EXPECT_TRUE(at::equal(heads.narrow(2, 4, 2), whole.narrow(2, 4, 2)));
}

// In a row with borders each document turns as it does alone.
TEST_P(RotaryTest, PositionsOfDocumentsCountFromZero) {
  const RotaryTables tables = MakeRotaryTables(9, 8, 10000.0, dtype());
  const at::Tensor positions = at::tensor({0, 1, 2, 3, 0, 1, 2, 0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8}, at::kInt);
  const at::Tensor x = Make({2, 9, 3 * 8});
  at::Tensor y = x.clone();
  RotaryForward(TablesAt(tables, positions, 2), y, 3);
  const auto expect_alone = [&](int64_t sample, int64_t begin, int64_t length) {
    at::Tensor alone = x.narrow(0, sample, 1).narrow(1, begin, length).clone();
    RotaryForward(MakeRotaryTables(length, 8, 10000.0, dtype()), alone, 3);
    EXPECT_TRUE(at::equal(y.narrow(0, sample, 1).narrow(1, begin, length), alone)) << begin;
  };
  expect_alone(0, 0, 4);
  expect_alone(0, 4, 3);
  expect_alone(0, 7, 2);
  expect_alone(1, 0, 9);
  RotaryBackward(TablesAt(tables, positions, 2), y, 3);
  ExpectNear(y, x, tolerance(), "turned back");
}

// Frequencies of transformers 5.23: ROPE_INIT_FUNCTIONS["llama3"], of which one is kept, two are mixed, and five divided.
TEST_P(RotaryTest, ScaledFrequenciesAreThoseOfTransformers) {
  const std::array<double, 8> want = {1.0,
                                      0.24438458681106567,
                                      0.013042256236076355,
                                      0.0039528473280370235,
                                      0.0012499999720603228,
                                      0.00039528473280370235,
                                      0.0001250000059371814,
                                      3.9528473280370235e-05};
  const RotaryTables tables = MakeRotaryTables(
      2, 16, 10000.0, at::kDouble, {.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_max_positions = 64});
  for (int64_t i = 0; i < 8; ++i) {
    const double angle = std::atan2(tables.sin[1][i].item<double>(), tables.cos[1][i].item<double>());
    EXPECT_NEAR(angle, want[static_cast<size_t>(i)], 2e-7 * angle) << i;
  }
}

MOTLEY_BOTH_DTYPES(RotaryTest);

}  // namespace
}  // namespace motley::engine
