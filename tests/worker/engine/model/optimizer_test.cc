#include "worker/engine/model/optimizer.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "tests/worker/engine/model/autograd_oracle.h"

namespace motley::engine {
namespace {

using OptimizerTest = OperatorTest;

TEST_P(OptimizerTest, EqualsTheFormulaOverManySteps) {
  const OptimizerSection options{.lr = 3e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
  constexpr double kClip = 0.37;
  constexpr int64_t kElements = 1001;
  at::Tensor p = Make({kElements}), m = at::zeros_like(p), v = at::zeros_like(p);
  at::Tensor want = p.clone().to(at::kDouble), want_m = at::zeros_like(want), want_v = at::zeros_like(want);
  for (int64_t step = 1; step <= 20; ++step) {
    const double lr = options.lr / static_cast<double>(step);
    at::Tensor g = Make({kElements});
    const at::Tensor g64 = g.to(at::kDouble) * kClip;
    AdamWStep(options, lr, step, kClip, {g, p, m, v});
    want = want * (1 - lr * options.weight_decay);
    want_m = options.beta1 * want_m + (1 - options.beta1) * g64;
    want_v = options.beta2 * want_v + (1 - options.beta2) * g64 * g64;
    const at::Tensor m_hat = want_m / (1 - std::pow(options.beta1, step)), v_hat = want_v / (1 - std::pow(options.beta2, step));
    want = want - lr * m_hat / (v_hat.sqrt() + options.eps);
  }
  ExpectNear(p, want, tolerance(), "parameters");
  ExpectNear(m, want_m, tolerance(), "first moment");
  ExpectNear(v, want_v, tolerance(), "second moment");
}

TEST_P(OptimizerTest, EmptyRangeIsLegal) {
  at::Tensor p = at::empty({0}, dtype()), m = p.clone(), v = p.clone(), g = p.clone();
  AdamWStep({}, 1e-3, 1, 1.0, {g, p, m, v});
  EXPECT_EQ(SquaredNorm(p).item<double>(), 0);
}

TEST_P(OptimizerTest, SquaredNormIsSummedInDouble) {
  const at::Tensor g = at::full({1 << 20}, 1e-3, dtype());
  const double value = g[0].item<double>();
  EXPECT_NEAR(SquaredNorm(g).item<double>(), value * value * (1 << 20), 1e-9);
}

// Ranks that hold the same bits must agree to the last one.
TEST_P(OptimizerTest, SquaredNormIsTheSameWithAnyThreads) {
  const at::Tensor g = Make({1'000'003});
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const double want = SquaredNorm(g).item<double>();
  at::set_num_threads(3);
  EXPECT_EQ(SquaredNorm(g).item<double>(), want);
  at::set_num_threads(before);
  EXPECT_NEAR(want, g.to(at::kDouble).square().sum().item<double>(), 1e-6);
}

// Of GPT-2's layer first what tensor parallelism divides, biases of queries among it, then norms and the other biases.
TEST(DecayRunsTest, MatricesAloneAreDecayedWhereAsked) {
  const UnitSpec layer = ParameterLayout(*ModelFlavor("gpt2", "debug"))[1];
  const OptimizerSection all, matrices = {.decay = "matrices"};
  const int64_t size = layer.num_elements;
  EXPECT_EQ(DecayRunsOf(all, layer, 0, size), (std::vector<DecayRun>{{0, size, true}}));
  EXPECT_TRUE(DecayRunsOf(matrices, layer, 7, 7).empty());
  for (const auto& [begin, end] : {std::pair{int64_t{0}, size}, {int64_t{100}, size - 3}, {int64_t{12290}, int64_t{12300}}}) {
    std::vector<bool> decayed;
    for (const DecayRun& run : DecayRunsOf(matrices, layer, begin, end)) {
      EXPECT_EQ(run.begin, static_cast<int64_t>(decayed.size()));
      decayed.insert(decayed.end(), static_cast<size_t>(run.end - run.begin), run.decayed);
    }
    ASSERT_EQ(static_cast<int64_t>(decayed.size()), end - begin);
    for (const TensorSpec& tensor : layer.tensors) {
      for (int64_t i = std::max(begin, tensor.offset_elements); i < std::min(end, tensor.offset_elements + tensor.num_elements);
           ++i) {
        ASSERT_EQ(decayed[static_cast<size_t>(i - begin)], tensor.shape.size() == 2) << tensor.name;
      }
    }
  }
  EXPECT_EQ(DecayRunsOf(matrices, layer, 0, size).size(), 6u) << "qkv, its bias, out and up, the bias of up, down, the rest";
}

TEST(ClipCoefficientTest, IsTorchsFormula) {
  EXPECT_EQ(ClipCoefficient(0.5, 1.0), 1.0);
  EXPECT_DOUBLE_EQ(ClipCoefficient(4.0, 1.0), 1.0 / (4.0 + 1e-6));
  EXPECT_EQ(ClipCoefficient(1e9, 0), 1.0);
}

MOTLEY_BOTH_DTYPES(OptimizerTest);

}  // namespace
}  // namespace motley::engine
