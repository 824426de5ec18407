// An array's views are made once, and stay views of it.
#include "worker/engine/model/unit_array.h"

#include "tests/worker/engine/equivalence/tiny_job.h"
#include "tests/worker/engine/model/autograd_oracle.h"
#include "worker/engine/model/unit_model.h"

namespace motley::engine {
namespace {

constexpr int64_t kArrayTokens = 8;

class UnitArrayTest : public testing::TestWithParam<ModelFamily> {
 protected:
  at::Tensor Flat(size_t unit) const { return Random({layout_[unit].num_elements + 3}, at::kDouble, 0.3); }

  const ModelShape shape_ = MakeTinyJob(GetParam(), kTinySizes[0], DType::kFloat64, "").model;
  const std::vector<UnitSpec> layout_ = ParameterLayout(shape_);
  UnitModel model_ = UnitModel(shape_, kArrayTokens, DType::kFloat64);
  const at::Tensor tokens_ = at::randint(shape_.vocab_size, {2, kArrayTokens}, at::kLong);
  const at::Tensor input_ = Random({2, kArrayTokens, shape_.hidden_size}, at::kDouble);
};

TEST_P(UnitArrayTest, ViewsSeeWhatIsWrittenLater) {
  const UnitArray embedding = Flat(0), layer = Flat(1), head = Flat(layout_.size() - 1);
  const auto run = [&](const UnitArray& e, const UnitArray& l, const UnitArray& h) {
    return std::vector{model_.EmbeddingForward(e, tokens_), model_.LayerForward(l, input_, nullptr),
                       model_.HeadForward(h, e, input_, tokens_)};
  };
  const std::vector<at::Tensor> before = run(embedding, layer, head);
  for (const UnitArray* array : {&embedding, &layer, &head}) array->flat().copy_(Random(array->flat().sizes(), at::kDouble, 0.3));
  const std::vector<at::Tensor> after = run(embedding, layer, head), fresh = run(embedding.flat(), layer.flat(), head.flat());
  for (size_t i = 0; i < fresh.size(); ++i) {
    EXPECT_TRUE(at::equal(after[i], fresh[i])) << i;
    EXPECT_FALSE(at::equal(after[i], before[i])) << i;
  }
}

TEST_P(UnitArrayTest, GradientsAreAddedToTheArray) {
  const UnitArray layer = Flat(1), sum = at::zeros_like(layer.flat());
  const at::Tensor once = at::zeros_like(layer.flat());
  const auto backward = [&](const UnitArray& grads) {
    Saved saved;
    model_.LayerForward(layer, input_, &saved);
    model_.LayerBackward(layer, saved, input_, grads);
  };
  backward(once);
  ASSERT_GT(once.abs().max().item<double>(), 0);
  backward(sum);
  EXPECT_TRUE(at::equal(sum.flat(), once));
  sum.flat().zero_();
  backward(sum);
  EXPECT_TRUE(at::equal(sum.flat(), once));
}

TEST_P(UnitArrayTest, ViewsAreMadeOnce) {
  const UnitArray layer = Flat(1);
  model_.LayerForward(layer, input_, nullptr);
  const at::Tensor norm = layer.views().layer->norm1;
  model_.LayerForward(layer, input_, nullptr);
  EXPECT_TRUE(layer.views().layer->norm1.is_same(norm));
}

TEST_P(UnitArrayTest, AnotherArrayInItsPlaceHasItsOwn) {
  UnitArray array = Flat(1);
  const at::Tensor first = array.flat();
  model_.LayerForward(array, input_, nullptr);
  EXPECT_GT(first.storage().use_count(), 1u);
  array = Flat(1);
  EXPECT_EQ(first.storage().use_count(), 1u) << "nobody keeps its memory";
  EXPECT_TRUE(at::equal(model_.LayerForward(array, input_, nullptr), model_.LayerForward(array.flat(), input_, nullptr)));
}

INSTANTIATE_TEST_SUITE_P(All, UnitArrayTest, testing::Values(ModelFamily::kGpt2, ModelFamily::kLlama, ModelFamily::kQwen2));

}  // namespace
}  // namespace motley::engine
