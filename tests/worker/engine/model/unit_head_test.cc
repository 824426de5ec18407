// A whole head that trains leaves its forward to its backward: three products of each chunk, and nothing kept but its input.
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "common/model/operators.h"
#include "tests/worker/engine/equivalence/tiny_job.h"
#include "tests/worker/engine/model/autograd_oracle.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/model/unit_bench.h"

namespace motley::engine {
namespace {

constexpr int64_t kHeadSamples = 2, kHeadTokens = 12;

// How often this thread has called each operator of PyTorch, while it lives.
class CallsOfOperators {
 public:
  CallsOfOperators() {
    calls_.clear();
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&CallsOfOperators::Note).scopes({at::RecordScope::FUNCTION}));
  }
  ~CallsOfOperators() { at::removeCallback(handle_); }
  CallsOfOperators(const CallsOfOperators&) = delete;
  CallsOfOperators& operator=(const CallsOfOperators&) = delete;

  const std::map<std::string, int>& calls() const { return calls_; }
  int products() const { return calls_["aten::mm"] + calls_["aten::addmm_"] + calls_["aten::addmm"]; }

 private:
  static std::unique_ptr<at::ObserverContext> Note(const at::RecordFunction& function) {
    ++calls_[function.name()];
    return nullptr;
  }
  static inline std::map<std::string, int> calls_;
  at::CallbackHandle handle_ = at::INVALID_CALLBACK_HANDLE;
};

class UnitHeadTest : public testing::TestWithParam<std::tuple<ModelFamily, DType>> {
 protected:
  UnitHeadTest() {
    at::manual_seed(5);
    const at::TensorOptions type = at::TensorOptions().dtype(ScalarTypeOf(precision_.compute));
    for (const UnitSpec& unit : ParameterLayout(shape_)) params_.push_back(at::randn({unit.num_elements}, type).mul_(0.1));
    input_ = at::randn({kHeadSamples, kHeadTokens, shape_.hidden_size}, type);
    targets_ = at::randint(shape_.vocab_size, {kHeadSamples, kHeadTokens}, at::kLong);
  }

  UnitArray TableOf(const std::vector<at::Tensor>& arrays) const { return shape_.tie_embeddings ? arrays.front() : at::Tensor(); }
  std::vector<at::Tensor> Zeros() const {
    std::vector<at::Tensor> zeros;
    for (const at::Tensor& array : params_) zeros.push_back(at::zeros({array.numel()}, ScalarTypeOf(precision_.master)));
    return zeros;
  }

  const ModelShape shape_ =
      MakeTinyJob(std::get<0>(GetParam()), kTinySizes[0], std::get<1>(GetParam()), "").model;  // words: a multiple of 64
  const Precision precision_{.master = motley::IsHalf(std::get<1>(GetParam())) ? DType::kFloat32 : std::get<1>(GetParam()),
                             .compute = std::get<1>(GetParam())};
  UnitModel model_ = UnitModel(shape_, kHeadTokens, precision_.compute);
  std::vector<at::Tensor> params_;
  at::Tensor input_, targets_;
};

// As a step and a profile run it.
TEST_P(UnitHeadTest, TrainsInThreeProductsAllOfThemBackward) {
  ASSERT_EQ(shape_.vocab_size % kLogitColumns, 0);
  UnitBench bench(model_, shape_, kHeadTokens, precision_, c10::kCPU, UnitKind::kHead);
  for (const bool split : {false, true}) {
    bench.Prepare(kHeadSamples);
    {
      CallsOfOperators forward;
      bench.Forward();
      for (const auto& [name, times] : forward.calls()) {
        EXPECT_TRUE(name == "aten::reshape" || name == "aten::view" || name == "aten::_reshape_alias") << name;
      }
    }
    CallsOfOperators backward;
    split ? bench.BackwardInput() : bench.Backward();
    EXPECT_EQ(backward.products(), 3);
    if (split) bench.BackwardWeight();
    EXPECT_EQ(backward.products(), 3) << "the other half is an addition";
    bench.Clear();
  }
}

TEST_P(UnitHeadTest, AnEvaluationsForwardIsOneProduct) {
  CallsOfOperators forward;
  model_.HeadForward(params_.back(), TableOf(params_), input_, targets_);
  EXPECT_EQ(forward.products(), 1);
}

TEST_P(UnitHeadTest, KeepsItsInputAlone) {
  Saved saved;
  UnitModel::HeadKeep(input_, saved);
  EXPECT_EQ(saved.Bytes(), static_cast<int64_t>(input_.nbytes()));
  EXPECT_TRUE(saved.tensors.front().is_alias_of(input_)) << "no copy";
  EXPECT_EQ(saved.Bytes(), SavedBytes(shape_, UnitKind::kHead, kHeadSamples, kHeadTokens, precision_.compute));
}

// Sums are of other rows, and so have other roundings.
TEST_P(UnitHeadTest, AsManyRowsAtOnceAsThereIsRoomFor) {
  std::map<int64_t, std::pair<HeadGradient, at::Tensor>> by_rows;
  for (const int64_t rows_at_once : {int64_t{5}, kHeadChunkTokens}) {
    Saved saved;
    UnitModel::HeadKeep(input_, saved);
    std::vector<at::Tensor> grads = Zeros();
    CallsOfOperators backward;
    const HeadGradient made = model_.HeadBackward(params_.back(), TableOf(params_), saved, targets_, 0.25, grads.back(),
                                                  TableOf(grads), {}, rows_at_once);
    EXPECT_EQ(backward.products(), rows_at_once == 5 ? 3 * 5 : 3);  // of 24 rows
    by_rows[rows_at_once] = {made, shape_.tie_embeddings ? grads.front() : grads.back()};
  }
  const auto& [few, of_few] = by_rows[5];
  const auto& [all, of_all] = by_rows[kHeadChunkTokens];
  const double rounding = motley::IsHalf(precision_.compute) ? 2e-2 : precision_.compute == DType::kFloat32 ? 1e-5 : 1e-12;
  EXPECT_NEAR(few.loss.item<double>(), all.loss.item<double>(), 1e-6 * all.loss.item<double>());
  EXPECT_TRUE(at::allclose(few.input, all.input, rounding, rounding));
  EXPECT_TRUE(at::allclose(of_few, of_all, rounding, rounding));
}

// Of all tokens, of some, and of none; what is not trained has no gradient.
TEST_P(UnitHeadTest, ItsBackwardMakesTheEvaluationsLossToTheBit) {
  const at::Tensor some = at::arange(1, kHeadSamples * kHeadTokens, 3, at::kLong);
  for (const at::Tensor& trained : {at::Tensor(), some, some.narrow(0, 0, 0)}) {
    Saved saved;
    UnitModel::HeadKeep(input_, saved);
    std::vector<at::Tensor> grads = Zeros();
    const at::Tensor input = input_.clone();
    const HeadGradient made =
        model_.HeadBackward(params_.back(), TableOf(params_), saved, targets_, 0.25, grads.back(), TableOf(grads), trained);
    EXPECT_TRUE(saved.tensors.empty());
    EXPECT_TRUE(at::equal(input, input_)) << "its rows' places are the norm's, not the input's";
    const at::Tensor loss = model_.HeadForward(params_.back(), TableOf(params_), input_, targets_, trained);
    EXPECT_EQ(made.loss.item<double>(), loss.item<double>());
    EXPECT_EQ(made.input.sizes(), input_.sizes());
    if (!trained.defined()) continue;
    const at::Tensor others = at::ones({kHeadSamples * kHeadTokens}, at::kBool).index_fill_(0, trained, false);
    EXPECT_EQ(made.input.view({-1, shape_.hidden_size}).index({others}).abs().sum().item<double>(), 0);
    EXPECT_EQ(loss.item<double>() == 0, trained.numel() == 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnitHeadTest,
                         testing::Combine(testing::Values(ModelFamily::kGpt2, ModelFamily::kLlama),
                                          testing::Values(DType::kFloat64, DType::kFloat32, DType::kBFloat16, DType::kFloat16)),
                         [](const auto& info) {
                           return std::string(TraitsOf(std::get<0>(info.param)).model_type) +
                                  std::string(DTypeName(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace motley::engine
