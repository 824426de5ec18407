// A model on rows of several documents, of which some tokens are trained on: the numbers of each document alone.
#include <array>
#include <string>
#include <tuple>

#include "common/model/operators.h"
#include "tests/worker/engine/model/autograd_oracle.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/model/unit_model.h"

namespace motley::engine {
namespace {

constexpr int64_t kRowLength = 12;

struct RowsCase {
  std::string name;
  ModelFamily family;
  bool tied;
};

ModelShape ShapeOfRows(const RowsCase& c) {
  return {.family = c.family,
          .vocab_size = 50,
          .hidden_size = 24,
          .num_layers = 2,
          .num_heads = 4,
          .num_kv_heads = c.family == ModelFamily::kGpt2 ? 4 : 2,
          .head_dim = 6,
          .intermediate_size = 40,
          .max_positions = 20,
          .norm_eps = 1e-6,
          .rope_theta = 500.0,
          .tie_embeddings = c.tied};
}

class UnitModelRowsTest : public ::testing::TestWithParam<std::tuple<RowsCase, DType>> {
 protected:
  UnitModelRowsTest()
      : shape(ShapeOfRows(std::get<0>(GetParam()))),
        dtype(std::get<1>(GetParam())),
        type(ScalarTypeOf(dtype)),
        layout(ParameterLayout(shape)),
        head(layout.size() - 1) {
    for (const UnitSpec& unit : layout) flats.push_back(Random({unit.num_elements}, type, 0.15));
    tokens = at::randint(shape.vocab_size, {rows(), kRowLength}, at::kLong);
    targets = at::randint(shape.vocab_size, {rows(), kRowLength}, at::kLong);
  }

  int64_t rows() const { return static_cast<int64_t>(lengths.size()); }
  double scale() const { return 1.0 / 9; }
  at::Tensor Tied(const std::vector<at::Tensor>& of) const { return shape.tie_embeddings ? of[0] : at::Tensor(); }
  std::vector<at::Tensor> Zeros() const {
    std::vector<at::Tensor> zeros;
    for (const UnitSpec& unit : layout) zeros.push_back(at::zeros({unit.num_elements}, type));
    return zeros;
  }

  struct Pass {
    double loss = 0;
    std::vector<at::Tensor> outputs;  // of the embedding and each layer
    std::vector<at::Tensor> grads;
  };
  // `borders` null: each sample is one document.
  Pass Train(const at::Tensor& inputs, const at::Tensor& labels, const Borders* borders, const at::Tensor& trained,
             OpSet recomputed = OpSet::None(), bool split = false) {
    UnitModel model(shape, inputs.size(1), dtype);
    Pass pass{.loss = 0, .outputs = {}, .grads = Zeros()};
    std::optional<Documents> of;
    if (borders != nullptr) of = model.DocumentsOf(*borders);
    const Documents* const documents = of ? &*of : nullptr;
    std::vector<Saved> saved(layout.size());
    pass.outputs.push_back(model.EmbeddingForward(flats[0], inputs, borders));
    for (size_t u = 1; u < head; ++u) {
      pass.outputs.push_back(model.LayerForward(flats[u], pass.outputs.back(), &saved[u], recomputed, documents));
    }
    UnitModel::HeadKeep(pass.outputs.back(), saved[head]);
    const HeadGradient of_head =
        model.HeadBackward(flats[head], Tied(flats), saved[head], labels, scale(), pass.grads[head], Tied(pass.grads), trained);
    pass.loss = of_head.loss.item<double>();
    at::Tensor grad = of_head.input;
    for (size_t u = head - 1; u > 0; --u) {
      if (!recomputed.empty()) model.LayerRecompute(flats[u], saved[u], recomputed, documents);
      EXPECT_EQ(saved[u].Bytes(), SavedBytes(shape, UnitKind::kLayer, inputs.size(0), inputs.size(1), dtype));
      if (split) {
        grad = model.LayerBackwardInput(flats[u], saved[u], grad, UnitSegment::kWhole, documents);
        model.LayerBackwardWeight(saved[u], pass.grads[u]);
      } else {
        grad = model.LayerBackward(flats[u], saved[u], grad, pass.grads[u], UnitSegment::kWhole, documents);
      }
    }
    model.EmbeddingBackward(inputs, grad, pass.grads[0], borders);
    return pass;
  }

  const ModelShape shape;
  const DType dtype;
  const at::ScalarType type;
  const std::vector<UnitSpec> layout;
  const size_t head;
  const std::vector<DocumentLengths> lengths = {{4, 1, 7}, {12}, {5, 5, 2}};
  std::vector<at::Tensor> flats;
  at::Tensor tokens, targets;
  // Nothing of the second document, of the second row, or at a document's end.
  const at::Tensor trained = at::tensor({0, 2, 6, 7, 10, 24, 26, 29, 30, 34}, at::kLong);
};

TEST_P(UnitModelRowsTest, LossAndGradientsAreThoseOfEachDocumentAlone) {
  const Borders borders = MakeBorders(lengths, at::kCPU);
  Pass alone{.loss = 0, .outputs = {}, .grads = Zeros()};
  const at::Tensor counts = at::zeros({rows() * kRowLength}, at::kBool).index_fill(0, trained, true).view({rows(), kRowLength});
  for (size_t row = 0; row < lengths.size(); ++row) {
    int64_t begin = 0;
    for (const int32_t length : lengths[row]) {
      const auto part = [&](const at::Tensor& of) { return of.narrow(0, static_cast<int64_t>(row), 1).narrow(1, begin, length); };
      const at::Tensor some = part(counts).flatten().nonzero().flatten();
      const Pass document = Train(part(tokens), part(targets), nullptr, some);
      alone.loss += document.loss;
      for (size_t u = 0; u <= head; ++u) alone.grads[u].add_(document.grads[u]);
      begin += length;
    }
  }
  for (const auto& [recomputed, split] : {std::pair(OpSet::None(), false), std::pair(OpSet::None(), true),
                                          std::pair(OpSet::All(), false), std::pair(OpSet::None().With(Op::kAttention), true)}) {
    const Pass together = Train(tokens, targets, &borders, trained, recomputed, split);
    EXPECT_NEAR(together.loss, alone.loss, Tolerance(type) * alone.loss);
    for (size_t u = 0; u <= head; ++u) {
      for (const TensorSpec& t : layout[u].tensors) {
        const at::Tensor want = alone.grads[u].narrow(0, t.offset_elements, t.num_elements);
        const at::Tensor got = together.grads[u].narrow(0, t.offset_elements, t.num_elements);
        // GPT-2's key bias has none but for roundings.
        EXPECT_LE((got - want).norm().item<double>(), Tolerance(type) * (want.norm().item<double>() + 1e-3)) << t.name;
      }
    }
  }
}

TEST_P(UnitModelRowsTest, ATokenOfAnotherDocumentMovesNoBitOfAnyLayer) {
  const Borders borders = MakeBorders(lengths, at::kCPU);
  at::Tensor changed = tokens.clone();
  changed[0].narrow(0, 5, 7).add_(1).remainder_(shape.vocab_size);
  const Pass before = Train(tokens, targets, &borders, trained), after = Train(changed, targets, &borders, trained);
  for (size_t u = 0; u < before.outputs.size(); ++u) {
    const at::Tensor &was = before.outputs[u], &is = after.outputs[u];
    EXPECT_TRUE(at::equal(was[0].narrow(0, 0, 5), is[0].narrow(0, 0, 5))) << u;
    EXPECT_FALSE(at::equal(was[0].narrow(0, 5, 7), is[0].narrow(0, 5, 7))) << u;
    EXPECT_TRUE(at::equal(was.narrow(0, 1, 2), is.narrow(0, 1, 2))) << u;
  }
}

TEST_P(UnitModelRowsTest, WhereNothingIsTrainedLossAndGradientsAreZero) {
  const Borders borders = MakeBorders(lengths, at::kCPU);
  const Pass pass = Train(tokens, targets, &borders, at::empty({0}, at::kLong));
  EXPECT_EQ(pass.loss, 0);
  for (const at::Tensor& grads : pass.grads) EXPECT_EQ(grads.count_nonzero().item<int64_t>(), 0);
}

TEST_P(UnitModelRowsTest, WholeSamplesThatAllCountHaveTheBitsOfNoRows) {
  const Borders borders = MakeBorders({{12}, {12}, {12}}, at::kCPU);
  const Pass rows = Train(tokens, targets, &borders, at::Tensor()), text = Train(tokens, targets, nullptr, at::Tensor());
  EXPECT_EQ(rows.loss, text.loss);
  for (size_t u = 0; u < rows.outputs.size(); ++u) EXPECT_TRUE(at::equal(rows.outputs[u], text.outputs[u])) << u;
  // Learned positions add up their gradients in another order.
  for (size_t u = 1; u <= head; ++u) EXPECT_TRUE(at::equal(rows.grads[u], text.grads[u])) << u;
}

INSTANTIATE_TEST_SUITE_P(Families, UnitModelRowsTest,
                         ::testing::Combine(::testing::Values(RowsCase{"Gpt2Tied", ModelFamily::kGpt2, true},
                                                              RowsCase{"Llama", ModelFamily::kLlama, false},
                                                              RowsCase{"Qwen2Tied", ModelFamily::kQwen2, true}),
                                            ::testing::Values(DType::kFloat64, DType::kFloat32)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + std::string(DTypeName(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace motley::engine
