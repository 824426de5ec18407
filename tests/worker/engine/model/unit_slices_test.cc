// Units computed by a tensor-parallel group, a slice each, against the whole unit: what the ranks make is summed by hand, in
// place, as the group's collectives do.
#include <algorithm>
#include <cmath>

#include "common/model/layer_table.h"
#include "common/model/model_slice.h"
#include "common/model/operators.h"
#include "tests/worker/engine/model/autograd_oracle.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/model/unit_model.h"

namespace motley::engine {
namespace {

constexpr int64_t kSamplesOfSlices = 2, kSeqLenOfSlices = 7;

struct SliceCase {
  std::string name;
  ModelFamily family = ModelFamily::kGpt2;
  bool tied = false;
  std::vector<double> shares;
};

// Twelve parts, which divide neither the vocabulary nor the MLP's columns.
ModelShape ShapeOfCase(const SliceCase& c) {
  return {.family = c.family,
          .vocab_size = 53,
          .hidden_size = 24,
          .num_layers = 1,
          .num_heads = c.family == ModelFamily::kGpt2 ? 12 : 24,
          .num_kv_heads = 12,
          .head_dim = 2,
          .intermediate_size = 41,
          .max_positions = 600,
          .tie_embeddings = c.tied};
}

class UnitSlicesTest : public ::testing::TestWithParam<std::tuple<SliceCase, DType>> {
 protected:
  struct Rank {
    ModelSlice slice;
    UnitModel model;
    std::vector<at::Tensor> flats, grads;  // by unit
    Saved saved;
  };

  explicit UnitSlicesTest(int64_t seq_len = kSeqLenOfSlices)
      : shape(ShapeOfCase(std::get<0>(GetParam()))),
        dtype(std::get<1>(GetParam())),
        type(ScalarTypeOf(dtype)),
        exact_type(motley::IsHalf(dtype) ? at::kDouble : type),
        seq_len(seq_len),
        whole(shape, seq_len, motley::IsHalf(dtype) ? DType::kFloat64 : dtype),
        layout(ParameterLayout(shape)) {
    for (const UnitSpec& unit : layout) {
      flats.push_back(Random({unit.num_elements}, type, 0.2).to(exact_type));
      grads.push_back(at::zeros({unit.num_elements}, exact_type));
    }
    const auto slices = SlicesOf(shape, std::get<0>(GetParam()).shares);
    for (const ModelSlice& slice : slices.value()) {
      Rank rank = {slice, UnitModel(shape, seq_len, dtype, c10::kCPU, slice), {}, {}, {}};
      for (size_t u = 0; u < layout.size(); ++u) {
        const int64_t elements = ParameterLayout(ShapeOf(shape, slice))[u].num_elements;
        at::Tensor& flat = rank.flats.emplace_back(at::empty({elements}, type));
        for (const SliceRun& run : RunsOf(layout[u], slice)) {
          flat.narrow(0, run.in_slice, run.elements).copy_(flats[u].narrow(0, run.in_unit, run.elements));
        }
        rank.grads.push_back(at::zeros({elements}, motley::IsHalf(dtype) ? at::kFloat : type));
      }
      ranks.push_back(std::move(rank));
    }
    tokens = at::randint(shape.vocab_size, {kSamplesOfSlices, seq_len}, at::kLong);
    targets = at::randint(shape.vocab_size, {kSamplesOfSlices, seq_len}, at::kLong);
    input = Activation();
    grad_output = Activation();
  }

  at::Tensor Activation() const { return Random({kSamplesOfSlices, seq_len, shape.hidden_size}, type); }
  // make(rank) of each, summed into all of them, and what is carried past a layer's segment.
  template <typename Make>
  at::Tensor Sum(const Make& make, const at::Tensor& carried = at::Tensor()) {
    std::vector<at::Tensor> terms;
    for (Rank& rank : ranks) terms.push_back(make(rank));
    at::Tensor sum = terms.front().clone();
    for (size_t i = 1; i < terms.size(); ++i) sum.add_(terms[i]);
    if (carried.defined()) sum.add_(carried);
    for (at::Tensor& term : terms) {
      EXPECT_TRUE(term.is_contiguous());
      term.copy_(sum);
    }
    return sum;
  }
  double tolerance() const { return motley::IsHalf(dtype) ? 2e-2 : 1e-12; }
  at::Tensor Exact(const at::Tensor& tensor) const { return tensor.to(exact_type); }
  // Of a tensor whose gradient is zero in exact arithmetic (GPT-2's key bias) only the unit's size tells how much is nothing.
  void ExpectSameGradients(size_t unit) const {
    at::Tensor sum = at::zeros_like(grads[unit]);
    for (const Rank& rank : ranks) {
      for (const SliceRun& run : RunsOf(layout[unit], rank.slice)) {
        sum.narrow(0, run.in_unit, run.elements).add_(rank.grads[unit].narrow(0, run.in_slice, run.elements));
      }
    }
    const double size = grads[unit].norm().item<double>() / std::sqrt(static_cast<double>(layout[unit].tensors.size()));
    EXPECT_GT(size, 0);
    for (const TensorSpec& tensor : layout[unit].tensors) {
      const auto of = [&](const at::Tensor& flat) { return flat.narrow(0, tensor.offset_elements, tensor.num_elements); };
      const double near = tolerance() * (size + of(grads[unit]).norm().item<double>());
      EXPECT_LE((of(sum) - of(grads[unit])).norm().item<double>(), near) << tensor.name;
    }
  }
  void ZeroGradients() {
    for (Rank& rank : ranks) {
      for (at::Tensor& grad : rank.grads) grad.zero_();
    }
  }

  at::Tensor ForwardOfGroup(OpSet recomputed) {
    const auto run = [&](UnitSegment segment, const at::Tensor& from) {
      const auto term = [&](Rank& rank) {
        return rank.model.LayerForward(segment, rank.flats[1], from, rank.saved, rank.model.KeptFor(recomputed));
      };
      return Sum(term, from);
    };
    return run(UnitSegment::kMlp, run(UnitSegment::kAttention, input));
  }
  at::Tensor BackwardOfGroup(bool split) {
    at::Tensor grad = grad_output;
    for (const UnitSegment segment : {UnitSegment::kMlp, UnitSegment::kAttention}) {
      const auto term = [&](Rank& rank) {
        if (split) return rank.model.LayerBackwardInput(rank.flats[1], rank.saved, grad, segment);
        return rank.model.LayerBackward(rank.flats[1], rank.saved, grad, rank.grads[1], segment);
      };
      grad = Sum(term, grad);
    }
    return grad;
  }

  const ModelShape shape;
  const DType dtype;
  const at::ScalarType type, exact_type;  // of the ranks, and of the whole that they are held against
  const int64_t seq_len;
  UnitModel whole;
  const std::vector<UnitSpec> layout;
  std::vector<at::Tensor> flats, grads;  // of the whole
  std::vector<Rank> ranks;
  at::Tensor tokens, targets, input, grad_output;
};

TEST_P(UnitSlicesTest, LayersAddUpToTheWholeLayer) {
  Saved saved;
  const at::Tensor output = whole.LayerForward(flats[1], Exact(input), &saved);
  const at::Tensor grad = whole.LayerBackward(flats[1], saved, Exact(grad_output), grads[1]);
  const auto of = [](auto... ops) {
    OpSet set;
    ((set = set.With(ops)), ...);
    return set;
  };
  for (const OpSet recomputed :
       {OpSet::None(), OpSet::All(), of(Op::kNorm1, Op::kQkv), of(Op::kAttnOut, Op::kResidual1, Op::kNorm2, Op::kActivation),
        of(Op::kAttention, Op::kUp, Op::kDown), of(Op::kDown), of(Op::kHeadNorm)}) {
    for (const bool split : {false, true}) {
      ZeroGradients();
      ExpectNear(ForwardOfGroup(recomputed), output, tolerance(), "output");
      for (Rank& rank : ranks) {
        EXPECT_TRUE(rank.saved.tensors[static_cast<size_t>(LayerValue::kResidual)].defined());
        if (!recomputed.empty()) rank.model.LayerRecompute(rank.flats[1], rank.saved, recomputed);
        EXPECT_EQ(rank.saved.Bytes(), SavedBytes(rank.model.shape(), UnitKind::kLayer, kSamplesOfSlices, kSeqLenOfSlices, dtype));
      }
      ExpectNear(BackwardOfGroup(split), grad, tolerance(), "gradient of the input");
      if (split) {
        for (Rank& rank : ranks) rank.model.LayerBackwardWeight(rank.saved, rank.grads[1]);
      }
      for (Rank& rank : ranks) EXPECT_EQ(rank.saved.Bytes(), 0);
      ExpectSameGradients(1);
    }
  }
}

// A segment's weights may come before the other segment's input.
TEST_P(UnitSlicesTest, WeightsOfASegmentMayComeEarly) {
  Saved saved;
  whole.LayerForward(flats[1], Exact(input), &saved);
  const at::Tensor grad = whole.LayerBackward(flats[1], saved, Exact(grad_output), grads[1]);
  ForwardOfGroup(OpSet::None());
  at::Tensor made = grad_output;
  for (const UnitSegment segment : {UnitSegment::kMlp, UnitSegment::kAttention}) {
    made = Sum([&](Rank& rank) { return rank.model.LayerBackwardInput(rank.flats[1], rank.saved, made, segment); }, made);
    for (Rank& rank : ranks) rank.model.LayerBackwardWeight(rank.saved, rank.grads[1], segment);
  }
  ExpectNear(made, grad, tolerance(), "gradient of the input");
  for (Rank& rank : ranks) EXPECT_EQ(rank.saved.Bytes(), 0);
  ExpectSameGradients(1);
}

TEST_P(UnitSlicesTest, SegmentsOfTheWholeAreTheWholeBitForBit) {
  Saved saved, in_segments;
  const at::Tensor output = whole.LayerForward(flats[1], Exact(input), &saved);
  const at::Tensor grad = whole.LayerBackward(flats[1], saved, Exact(grad_output), grads[1]);
  const at::Tensor between = whole.LayerForward(UnitSegment::kAttention, flats[1], Exact(input), in_segments, KeptValues());
  EXPECT_TRUE(at::equal(whole.LayerForward(UnitSegment::kMlp, flats[1], between, in_segments, KeptValues()), output));
  at::Tensor again = at::zeros_like(grads[1]);
  const at::Tensor grad_between = whole.LayerBackward(flats[1], in_segments, Exact(grad_output), again, UnitSegment::kMlp);
  EXPECT_TRUE(at::equal(whole.LayerBackward(flats[1], in_segments, grad_between, again, UnitSegment::kAttention), grad));
  EXPECT_TRUE(at::equal(again, grads[1]));
}

TEST_P(UnitSlicesTest, EmbeddingsAddUpToTheWholeTable) {
  const at::Tensor output = whole.EmbeddingForward(flats[0], tokens);
  whole.EmbeddingBackward(tokens, Exact(grad_output), grads[0]);
  ExpectNear(Sum([&](Rank& rank) { return rank.model.EmbeddingForward(rank.flats[0], tokens); }), output, tolerance(), "output");
  for (Rank& rank : ranks) rank.model.EmbeddingBackward(tokens, grad_output, rank.grads[0]);
  ExpectSameGradients(0);
}

// More rows than one chunk; few of half numbers, in which ATen's layer norm for the CPU adds up the rows' gradients.
class HeadSlicesTest : public UnitSlicesTest {
 protected:
  HeadSlicesTest() : UnitSlicesTest(motley::IsHalf(std::get<1>(GetParam())) ? kSeqLenOfSlices : kHeadChunkTokens / 2 + 9) {}

  void Check(const at::Tensor& trained);
};

void HeadSlicesTest::Check(const at::Tensor& trained) {
  const double scale = 1.0 / static_cast<double>(targets.numel());
  const auto tied = [&](const std::vector<at::Tensor>& arrays) { return shape.tie_embeddings ? arrays[0] : at::Tensor(); };
  Saved saved;
  UnitModel::HeadKeep(Exact(input), saved);
  at::Tensor table = tied(grads);
  const HeadGradient of_whole = whole.HeadBackward(flats[2], tied(flats), saved, targets, scale, grads[2], table, trained);
  const double loss = of_whole.loss.item<double>();
  for (const Keep keep : {Keep::kAll, Keep::kBoundary}) {
    ZeroGradients();
    std::vector<at::Tensor> rows;
    for (Rank& rank : ranks) {
      rows.push_back(rank.model.HeadLogits(rank.flats[2], tied(rank.flats), input, targets, keep, rank.saved, trained));
    }
    const at::Tensor of_all = at::stack(rows);
    for (Rank& rank : ranks) {
      EXPECT_NEAR(rank.model.HeadLoss(of_all, keep, rank.saved, trained).item<double>(), loss, tolerance() * loss);
      if (keep == Keep::kBoundary) rank.model.HeadRecompute(rank.flats[2], tied(rank.flats), rank.saved);
    }
    const at::Tensor sum = Sum([&](Rank& rank) {
      at::Tensor own_table = tied(rank.grads);
      const HeadGradient made =
          rank.model.HeadBackward(rank.flats[2], tied(rank.flats), rank.saved, targets, scale, rank.grads[2], own_table, trained);
      EXPECT_FALSE(made.loss.defined()) << "its forward has said it";
      return made.input;
    });
    ExpectNear(sum, of_whole.input, tolerance(), "gradient of the input");
    ExpectSameGradients(2);
    if (shape.tie_embeddings) ExpectSameGradients(0);
  }
}

TEST_P(HeadSlicesTest, LossAndGradientsAreTheWholeHeads) { Check({}); }
TEST_P(HeadSlicesTest, OfSomeTokensTheyAreToo) { Check(at::arange(1, kSamplesOfSlices * seq_len, 3, at::kLong)); }

std::vector<SliceCase> SliceCases() {
  std::vector<SliceCase> cases;
  const std::vector<std::pair<std::string, std::vector<double>>> shares = {
      {"ThreeToOne", {0.75, 0.25}}, {"Even", {0.5, 0.5}}, {"ThreeUnlike", {1.0 / 6, 7.0 / 12, 0.25}}};
  const auto add = [&](const std::string& name, ModelFamily family, bool tied) {
    for (const auto& [how, of] : shares) cases.push_back({name + how, family, tied, of});
  };
  add("Gpt2Tied", ModelFamily::kGpt2, true);
  add("Gpt2", ModelFamily::kGpt2, false);
  add("Llama", ModelFamily::kLlama, false);
  add("LlamaTied", ModelFamily::kLlama, true);
  add("Qwen2", ModelFamily::kQwen2, false);
  add("Qwen3", ModelFamily::kQwen3, true);
  add("Phi3", ModelFamily::kPhi3, false);
  return cases;
}
std::string NameOfSlices(const ::testing::TestParamInfo<std::tuple<SliceCase, DType>>& info) {
  return std::get<0>(info.param).name + std::string(DTypeName(std::get<1>(info.param)));
}
const auto kAllSlices =
    ::testing::Combine(::testing::ValuesIn(SliceCases()), ::testing::Values(DType::kFloat64, DType::kBFloat16));
INSTANTIATE_TEST_SUITE_P(Slices, UnitSlicesTest, kAllSlices, NameOfSlices);
INSTANTIATE_TEST_SUITE_P(Slices, HeadSlicesTest, kAllSlices, NameOfSlices);

}  // namespace
}  // namespace motley::engine
