#include "worker/engine/operators/lm_head_loss.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "common/model/operators.h"
#include "tests/worker/engine/model/autograd_oracle.h"
#include "worker/engine/base/memory.h"

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
  const LmHeadGradient made = LmHeadLossBackward(x.detach(), w.detach(), targets, kScale, dw);
  ExpectNear(made.normed, grads[0], tolerance(), "input gradient");
  EXPECT_EQ(made.loss.item<double>(), sum) << "of the same logits";
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

// A part of the words is the whole where it has them all.
TEST_P(LmHeadLossTest, APartOfAllWordsIsTheWhole) {
  constexpr int64_t kRows = 5, kWords = 67;
  const at::Tensor x = Make({kRows, 8}), w = Make({kWords, 8}), targets = at::randint(kWords, {kRows}, at::kLong);
  const at::Tensor rows = at::empty({2, kRows}, dtype());
  LmHeadRows(x, w, targets, 0, rows);
  const RowsOfAll all = CombineRows(rows.unsqueeze(0));
  EXPECT_NEAR(all.loss.item<double>(), LmHeadLossForward(x, w, targets).item<double>(), tolerance() * 100);
  at::Tensor whole = at::zeros_like(w), part = at::zeros_like(w);
  const at::Tensor want = LmHeadLossBackward(x, w, targets, 0.5, whole).normed;
  ExpectNear(LmHeadPartBackward(x, w, targets, 0, all.logsumexp, 0.5, part), want, tolerance(), "input gradient");
  ExpectNear(part, whole, tolerance(), "weight gradient");
}

// Of the matrices that products of a head read and write: the sizes that are not the hidden one's or the rows'.
class ProductSizes {
 public:
  explicit ProductSizes(std::set<int64_t> others) {
    others_ = std::move(others);
    seen_.clear();
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback(&ProductSizes::Note).scopes({at::RecordScope::FUNCTION}).needsInputs(true));
  }
  ~ProductSizes() { at::removeCallback(handle_); }
  const std::set<std::pair<int64_t, int64_t>>& seen() const { return seen_; }

 private:
  static std::unique_ptr<at::ObserverContext> Note(const at::RecordFunction& function) {
    const std::string name = function.name();
    if (name != "aten::mm" && name != "aten::addmm_") return nullptr;
    for (const c10::IValue& input : function.inputs()) {
      if (!input.isTensor() || input.toTensor().dim() != 2) continue;
      const at::Tensor& t = input.toTensor();
      for (const int side : {0, 1}) {
        if (!others_.contains(t.size(side))) seen_.insert({t.size(side), std::max(t.stride(0), t.stride(1))});
      }
    }
    return nullptr;
  }
  static inline std::set<int64_t> others_;
  static inline std::set<std::pair<int64_t, int64_t>> seen_;  // words, length of a row in memory
  at::CallbackHandle handle_ = at::INVALID_CALLBACK_HANDLE;
};

// On an H200 products with 50257 words ran at an eighth of the rate of those with 50304.
TEST_P(LmHeadLossTest, ProductsHaveWholeMultiplesOf64WordsAndASmallRest) {
  constexpr int64_t kRows = 3, kHidden = 8, kWords = 3 * 64 + 17;
  const at::Tensor x = Make({kRows, kHidden}), w = Make({kWords, kHidden}), targets = at::randint(kWords, {kRows}, at::kLong);
  at::Tensor dw = at::zeros_like(w);
  ProductSizes sizes({kRows, kHidden});
  LmHeadLossForward(x, w, targets);
  LmHeadLossBackward(x, w, targets, 1, dw);
  LmHeadPartBackward(x, w, targets, 0, at::zeros({kRows}, dtype()), 1, dw);
  // Logits in rows of 256, and weights. The host alone sums over all words at once, which rounds once less.
  const std::set<std::pair<int64_t, int64_t>> want = {{192, 256},     {17, 256},     {kWords, 256},
                                                      {192, kHidden}, {17, kHidden}, {kWords, kHidden}};
  EXPECT_EQ(sizes.seen(), want);
}

// Without a norm's gradients and the gradient that the head gathers, which are not of this function.
TEST_P(LmHeadLossTest, BytesAreThoseOfThePaddedLogits) {
  InstallCounting();
  constexpr int64_t kRows = 16, kWords = 203, kHidden = 4;
  const at::Tensor x = Make({kRows, kHidden}), w = Make({kWords, kHidden}), targets = at::randint(kWords, {kRows}, at::kLong);
  at::Tensor dw = at::zeros_like(w);
  const int64_t before = ProcessMemory()->current_bytes();
  ProcessMemory()->ResetPeak();
  LmHeadLossBackward(x, w, targets, 1, dw);
  const int64_t held = ProcessMemory()->peak_bytes() - before, size = static_cast<int64_t>(x.element_size());
  const int64_t logits = kRows * LogitColumns(kWords) * size, rows = 8 * kRows * size + 8 * 3 * kRows;
  EXPECT_GE(held, logits);
  EXPECT_LE(held, logits + rows) << "and a few numbers a row";
}

MOTLEY_BOTH_DTYPES(LmHeadLossTest);

}  // namespace
}  // namespace motley::engine
