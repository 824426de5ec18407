// A head's loss and gradient by one kernel, which a fake driver runs over host memory, beside PyTorch's operators.
#include "worker/engine/operators/own_head_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/model/operators.h"
#include "tests/worker/engine/kernels/open_fake_kernels.h"
#include "worker/engine/base/memory.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/model/unit_model.h"
#include "worker/engine/operators/half.h"
#include "worker/engine/operators/lm_head_loss.h"

namespace motley::engine {
namespace {

class OwnHeadLossTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 13, kWords = 203, kHidden = 24;
  static constexpr double kScale = 8;

  void SetUp() override { ASSERT_TRUE(kernels_.ok()) << kernels_.status(); }
  const KernelLauncher* kernels() const { return kernels_->get(); }
  static at::Tensor Draw(at::IntArrayRef sizes, at::ScalarType type) { return at::randn(sizes).to(type); }
  static double Bound(at::ScalarType type) { return type == at::kFloat ? 1e-5 : type == at::kHalf ? 2e-3 : 1.6e-2; }
  static void ExpectNear(const at::Tensor& got, const at::Tensor& want, double bound) {
    ASSERT_EQ(got.sizes(), want.sizes());
    ASSERT_EQ(got.scalar_type(), want.scalar_type());
    EXPECT_LE((got - want).to(at::kDouble).norm().item<double>(), bound * want.to(at::kDouble).norm().item<double>());
  }

  // What PyTorch holds beside the largest of the three products: for a processor with instructions for a type its library makes
  // copies in an order of its own.
  static int64_t Scratch(const at::Tensor& x, const at::Tensor& w, at::Tensor dw) {
    at::Tensor room = at::zeros({kRows, LogitColumns(kWords)}, x.options());
    int64_t most = 0;
    const auto measure = [&](const auto& product) {
      const int64_t before = ProcessMemory()->current_bytes();
      ProcessMemory()->ResetPeak();
      const at::Tensor made = product();
      const int64_t result = made.defined() ? static_cast<int64_t>(made.nbytes()) : 0;
      most = std::max(most, ProcessMemory()->peak_bytes() - before - result);
    };
    const int64_t whole = kWords / kLogitColumns * kLogitColumns;
    for (const auto& [first, count] : {std::pair(int64_t{0}, whole), std::pair(whole, kWords - whole)}) {
      at::Tensor logits = room.narrow(1, first, count), sum = dw.narrow(0, first, count);
      measure([&, first = first, count = count] {
        Multiply(logits, x, w.narrow(0, first, count).t());
        return at::Tensor();
      });
      measure([&] {
        AddProduct(sum, logits.t(), x);
        return at::Tensor();
      });
    }
    measure([&] { return at::mm(room.narrow(1, 0, kWords), w); });
    return most;
  }

  const absl::StatusOr<std::unique_ptr<KernelLauncher>> kernels_ = LoadFakeKernels();
};

TEST_F(OwnHeadLossTest, IsPyTorchs) {
  at::manual_seed(7);
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kFloat}) {
    const at::Tensor x = Draw({kRows, kHidden}, type), w = Draw({kWords, kHidden}, type);
    const at::Tensor targets = at::randint(kWords, {kRows}, at::kLong);
    at::Tensor dw = at::zeros({kWords, kHidden}, at::kFloat), want_dw = dw.clone();
    const long before = FakeLaunches();
    const LmHeadGradient made = LmHeadLossBackward(x, w, targets, kScale, dw, kernels());
    EXPECT_EQ(FakeLaunches(), before + 1);
    EXPECT_EQ(made.loss.item<double>(), LmHeadLossForward(x, w, targets, kernels()).item<double>()) << "of the same logits";
    EXPECT_EQ(FakeLaunches(), before + 2);
    const LmHeadGradient want = LmHeadLossBackward(x, w, targets, kScale, want_dw);
    EXPECT_EQ(FakeLaunches(), before + 2);
    EXPECT_NEAR(made.loss.item<double>(), want.loss.item<double>(), 2e-6 * want.loss.item<double>());
    ExpectNear(made.normed, want.normed, Bound(type));
    ExpectNear(dw, want_dw, Bound(type));
  }
}

// Where half types multiply into float32, as on cards with libtorch 2.11, the gradient stands beside them.
TEST_F(OwnHeadLossTest, OfFloat32LogitsTheGradientIsInTheTypeThatComputes) {
  at::manual_seed(8);
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    at::Tensor logits = at::randn({kRows, LogitColumns(kWords)}) * 3;
    logits.narrow(1, kWords, LogitColumns(kWords) - kWords).fill_(-INFINITY);
    const at::Tensor like = at::empty({0}, type), targets = at::randint(kWords, {kRows}, at::kLong), before = logits.clone();
    const at::Tensor loss = OwnHeadLoss(*kernels(), logits, like, targets, kWords);
    const LossAndGradient made = OwnHeadLossAndGradient(*kernels(), logits, like, targets, kWords, kScale);
    EXPECT_TRUE(logits.equal(before));
    EXPECT_TRUE(made.loss.equal(loss));
    const at::Tensor log_softmax = at::log_softmax(logits.narrow(1, 0, kWords).to(at::kDouble), 1);
    const at::Tensor want_loss = -log_softmax.gather(1, targets.unsqueeze(1)).sum();
    EXPECT_NEAR(loss.item<double>(), want_loss.item<double>(), 2e-6 * want_loss.item<double>());
    const at::Tensor want = ((log_softmax.exp() - at::one_hot(targets, kWords)) * kScale).to(type);
    ExpectNear(made.gradient.narrow(1, 0, kWords), want, Bound(type));
    EXPECT_GT(made.gradient.narrow(1, 0, kWords).eq(want).to(at::kFloat).mean().item<double>(), 0.99) << "rounded elsewhere";
    EXPECT_TRUE(made.gradient.narrow(1, kWords, LogitColumns(kWords) - kWords).eq(0).all().item<bool>());
  }
}

// A chunk's logits, in whose place the gradient comes, and a few numbers a row.
TEST_F(OwnHeadLossTest, BytesAreThoseOfTheLogits) {
  InstallCounting();
  for (const at::ScalarType type : {at::kBFloat16, at::kFloat}) {
    const at::Tensor x = Draw({kRows, kHidden}, type), w = Draw({kWords, kHidden}, type);
    const at::Tensor targets = at::randint(kWords, {kRows}, at::kLong);
    at::Tensor dw = at::zeros_like(w);
    const int64_t before = ProcessMemory()->current_bytes();
    ProcessMemory()->ResetPeak();
    LmHeadLossBackward(x, w, targets, 1, dw, kernels());
    const int64_t used = ProcessMemory()->peak_bytes() - before;
    const int64_t size = static_cast<int64_t>(x.element_size()), logits = kRows * LogitColumns(kWords) * size;
    EXPECT_LE(used, logits + kRows * kHidden * size + 64 * kRows + Scratch(x, w, dw)) << type;
  }
}

TEST_F(OwnHeadLossTest, ATargetThatIsNoWordIsNoNumber) {
  for (const int64_t target : {int64_t{-1}, kWords, LogitColumns(kWords), int64_t{1} << 40}) {
    const at::Tensor x = Draw({2, kHidden}, at::kFloat), w = Draw({kWords, kHidden}, at::kFloat);
    EXPECT_TRUE(std::isnan(LmHeadLossForward(x, w, at::tensor({int64_t{3}, target}, at::kLong), kernels()).item<double>()));
  }
}

TEST_F(OwnHeadLossTest, Float64IsPyTorchsToTheBit) {
  const long before = FakeLaunches();
  const at::Tensor x = Draw({kRows, kHidden}, at::kDouble), w = Draw({kWords, kHidden}, at::kDouble);
  const at::Tensor targets = at::randint(kWords, {kRows}, at::kLong);
  at::Tensor dw = at::zeros_like(w), want_dw = at::zeros_like(w);
  const LmHeadGradient made = LmHeadLossBackward(x, w, targets, 1, dw, kernels()),
                       want = LmHeadLossBackward(x, w, targets, 1, want_dw);
  EXPECT_TRUE(made.normed.equal(want.normed) && made.loss.equal(want.loss) && dw.equal(want_dw));
  EXPECT_EQ(FakeLaunches(), before);
}

// Of a unit: one launch a chunk, in an evaluation and in a backward, of some rows alone as of all. Its norm is one forward in
// both, and two backward.
TEST_F(OwnHeadLossTest, AHeadTakesIt) {
  ModelShape shape = *ModelFlavor("gpt2", "debug");
  constexpr int64_t kSeqLen = 9;
  UnitModel own(shape, kSeqLen, DType::kBFloat16, c10::kCPU, ModelSlice(), kernels());
  UnitModel other(shape, kSeqLen, DType::kBFloat16);
  const std::vector<UnitSpec> layout = ParameterLayout(shape);
  at::manual_seed(9);
  const auto numbers = [](const UnitSpec& unit) { return Draw({unit.num_elements}, at::kBFloat16) * 0.1; };
  const UnitArray table = numbers(layout.front()), head = numbers(layout.back());
  const at::Tensor input = Draw({2, kSeqLen, shape.hidden_size}, at::kBFloat16);
  const at::Tensor targets = at::randint(shape.vocab_size, {2, kSeqLen}, at::kLong);
  const auto run = [&](UnitModel& model, const at::Tensor& trained, long launches) {
    const auto zeros = [](const UnitSpec& unit) { return UnitArray(at::zeros({unit.num_elements}, at::kFloat)); };
    const UnitArray table_sum = zeros(layout.front()), head_sum = zeros(layout.back());
    const long before = FakeLaunches();
    const at::Tensor loss = model.HeadForward(head, table, input, targets, trained);
    Saved saved;
    UnitModel::HeadKeep(input, saved);
    const HeadGradient made = model.HeadBackward(head, table, saved, targets, kScale, head_sum, table_sum, trained);
    EXPECT_EQ(FakeLaunches(), before + launches);
    EXPECT_TRUE(made.loss.equal(loss));
    return std::vector{loss, made.input, table_sum.flat()};
  };
  for (const at::Tensor& trained : {at::Tensor(), at::tensor({1, 2, 11}, at::kLong)}) {
    const std::vector<at::Tensor> got = run(own, trained, 6), want = run(other, trained, 0);
    for (size_t i = 0; i < got.size(); ++i) ExpectNear(got[i], want[i], 1.6e-2);
  }
}

}  // namespace
}  // namespace motley::engine
