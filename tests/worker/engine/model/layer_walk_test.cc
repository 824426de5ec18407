// The table of a layer's operators and the engine's functions side by side, and the walks over both.
#include "worker/engine/model/layer_walk.h"

#include <algorithm>
#include <functional>
#include <random>
#include <span>

#include "common/model/operators.h"
#include "common/model/pass_bytes.h"
#include "tests/worker/engine/model/autograd_oracle.h"
#include "worker/engine/base/memory.h"
#include "worker/engine/base/scalar_type.h"
#include "worker/engine/model/unit_model.h"
#include "worker/engine/operators/attention_kernels.h"

namespace motley::engine {
namespace {

constexpr int64_t kLayerSamples = 2, kLayerSeqLen = 7;
constexpr ValueSet kAllValues = [] {
  ValueSet all;
  for (int i = 0; i < kNumLayerValues; ++i) all = all | ValueSet::Of(static_cast<LayerValue>(i));
  return all;
}();
// Of these no function makes a gradient: their part is in that of the tensor they belong to.
constexpr ValueSet kStatistics =
    ValueSet::Of(LayerValue::kMean1, LayerValue::kRstd1, LayerValue::kMean2, LayerValue::kRstd2, LayerValue::kBehindRstd1,
                 LayerValue::kBehindRstd2, LayerValue::kLogsumexp, LayerValue::kRawHeads, LayerValue::kHeadsRstd);

ModelShape LayerShape(ModelFamily family) {
  return {.family = family,
          .vocab_size = 50,
          .hidden_size = 24,
          .num_layers = 1,
          .num_heads = 4,
          .num_kv_heads = family == ModelFamily::kGpt2 ? 4 : 2,
          .head_dim = 6,
          .intermediate_size = 40,
          .max_positions = 20};
}

// Of whole samples, or of rows of several documents.
class LayerWalkTest : public ::testing::TestWithParam<std::tuple<ModelFamily, bool>> {
 protected:
  LayerWalkTest() {
    rotary = MakeRotaryTables(kLayerSeqLen, shape.head_dim, shape.rope_theta, at::kDouble);
    if (std::get<1>(GetParam())) of_rows = DocumentsOfRows(kLayerSamples);
    params = Random({layout[1].num_elements}, at::kDouble, 0.2);
    input = Random({kLayerSamples, kLayerSeqLen, shape.hidden_size}, at::kDouble);
    grad_output = Random({kLayerSamples, kLayerSeqLen, shape.hidden_size}, at::kDouble);
  }

  // Three documents in each sample.
  Documents DocumentsOfRows(int64_t samples) {
    const DocumentLengths lengths = {kLayerSeqLen - 4, 1, 3};
    borders.push_back(
        std::make_unique<Borders>(MakeBorders(std::vector<DocumentLengths>(static_cast<size_t>(samples), lengths), at::kCPU)));
    return UnitModel(shape, kLayerSeqLen, DType::kFloat64).DocumentsOf(*borders.back());
  }
  const Documents* documents() const { return of_rows ? &*of_rows : nullptr; }
  LayerFrame Frame() const {
    const Documents* const of = documents();
    return {shape,
            traits,
            of != nullptr && !of->rotary.empty() ? of->rotary.front() : rotary,
            kLayerSamples,
            kLayerSeqLen,
            /*adds_carried=*/true,
            of != nullptr ? of->borders : nullptr};
  }
  LayerTensors View(const at::Tensor& flat) const { return LayerView(traits, layout[1], flat); }
  // Every value of a forward.
  LayerFrame Forward() const {
    LayerFrame frame = Frame();
    frame.weights = View(params);
    frame.Value(LayerValue::kInput) = AsRows(input);
    LayerWalk(traits).Forward(frame, kAllValues, UnitSegment::kWhole);
    return frame;
  }
  static ValueSet Defined(const std::vector<at::Tensor>& tensors) {
    ValueSet defined;
    for (int i = 0; i < kNumLayerValues; ++i) {
      if (tensors[i].defined()) defined = defined | ValueSet::Of(static_cast<LayerValue>(i));
    }
    return defined;
  }
  int64_t Bytes(LayerValue value) const { return ValueBytes(shape, value, kLayerSamples, kLayerSeqLen, DType::kFloat64); }
  // Those that this family has.
  ValueSet Existing(ValueSet values) const {
    ValueSet existing;
    values.ForEach([&](LayerValue value) { existing = Bytes(value) > 0 ? existing | ValueSet::Of(value) : existing; });
    return existing;
  }
  void ExpectExactly(const std::vector<at::Tensor>& tensors, ValueSet wanted, const LayerOperator& op, const char* what) const {
    EXPECT_EQ(Defined(tensors), Existing(wanted)) << OpName(op.op) << ", " << what;
    Defined(tensors).ForEach([&](LayerValue value) {
      EXPECT_EQ(static_cast<int64_t>(tensors[static_cast<size_t>(value)].nbytes()), Bytes(value))
          << OpName(op.op) << ", " << what << ", value " << static_cast<int>(value);
    });
  }

  const ModelShape shape = LayerShape(std::get<0>(GetParam()));
  const FamilyTraits& traits = TraitsOf(std::get<0>(GetParam()));
  const std::vector<UnitSpec> layout = ParameterLayout(shape);
  RotaryTables rotary;
  std::vector<std::unique_ptr<Borders>> borders;
  std::optional<Documents> of_rows;
  at::Tensor params, input, grad_output;
};

// A function that reads what its row does not name finds nothing there, and throws.
TEST_P(LayerWalkTest, EveryFunctionReadsAndMakesWhatItsRowSays) {
  LayerFrame all = Forward();
  const auto give = [&](ValueSet values, std::vector<at::Tensor>& to) {
    Existing(values).ForEach([&](LayerValue value) { to[static_cast<size_t>(value)] = all.Value(value).clone(); });
  };
  const auto give_gradients = [&](ValueSet values, std::vector<at::Tensor>& to) {
    Existing(values.Without(kStatistics)).ForEach([&](LayerValue value) {
      const at::Tensor& like = all.Value(value);
      const std::vector<int64_t> weights = value == LayerValue::kHeadsScale
                                               ? LayerView(traits, layout[1], params).head_norm.sizes().vec()
                                               : std::vector<int64_t>{shape.hidden_size};
      to[static_cast<size_t>(value)] = Random(like.defined() ? like.sizes() : at::IntArrayRef(weights), at::kDouble);
    });
  };
  for (const LayerOperator& op : LayerOperatorsOf(traits)) {
    const LayerFunctions& functions = FunctionsOf(op.op, traits.norm_places);
    LayerFrame forward = Frame();
    forward.weights = View(params);
    give(op.reads, forward.values);
    functions.forward(forward);
    ExpectExactly(forward.values, op.reads | op.makes, op, "forward");

    LayerFrame backward = Frame();
    backward.weights = View(params);
    give(op.input_reads, backward.values);
    give_gradients(op.makes, backward.gradients);
    functions.backward_input(backward);
    ExpectExactly(backward.values, op.input_reads, op, "values of backward by input");
    ExpectExactly(backward.gradients, (op.makes | op.made_gradients()).Without(kStatistics), op, "backward by input");

    ASSERT_EQ(functions.backward_weight != nullptr, op.has_weights()) << OpName(op.op);
    if (!op.has_weights()) continue;
    LayerFrame weights = Frame();  // needs no parameters
    const at::Tensor grads = at::zeros({layout[1].num_elements}, at::kDouble);
    weights.weight_gradients = View(grads);
    give(op.weight_reads, weights.values);
    give_gradients(op.weight_gradients, weights.gradients);
    functions.backward_weight(weights);
    EXPECT_GT(grads.abs().sum().item<double>(), 0) << OpName(op.op);
  }
}

TEST_P(LayerWalkTest, TheTwoHalvesAreTheWholeAndLeaveWhatTheTableSays) {
  InstallCounting();
  UnitModel model(shape, kLayerSeqLen, DType::kFloat64);
  Saved whole, halves;
  model.LayerForward(params, input, &whole, OpSet::None(), documents());
  model.LayerForward(params, input, &halves, OpSet::None(), documents());
  at::Tensor grads = at::zeros_like(params), in_halves = at::zeros_like(params);
  const at::Tensor grad = model.LayerBackward(params, whole, grad_output, grads, UnitSegment::kWhole, documents());

  const int64_t saved = halves.Bytes() - static_cast<int64_t>(input.nbytes()), before = ProcessMemory()->current_bytes();
  const at::Tensor grad_in_half = model.LayerBackwardInput(params, halves, grad_output, UnitSegment::kWhole, documents());
  const int64_t waiting = WaitingBytes(shape, UnitKind::kLayer, kLayerSamples, kLayerSeqLen, DType::kFloat64);
  EXPECT_EQ(halves.Bytes(), waiting);
  // The input and the gradient of the output are the caller's.
  const std::span<const LayerOperator> rows = LayerOperatorsOf(traits);
  int64_t callers = 0;
  if (WaitingValues(rows).Has(LayerValue::kInput)) callers += static_cast<int64_t>(input.nbytes());
  if (WaitingGradients(rows).Has(LayerValue::kOutput)) callers += static_cast<int64_t>(grad_output.nbytes());
  EXPECT_EQ(ProcessMemory()->current_bytes() - before, waiting - callers - saved + static_cast<int64_t>(grad_in_half.nbytes()));
  EXPECT_TRUE(at::equal(grad, grad_in_half));
  model.LayerBackwardWeight(halves, in_halves);
  EXPECT_EQ(halves.Bytes(), 0);
  EXPECT_TRUE(at::equal(grads, in_halves));
}

// The most that a pass over a layer holds beside what is there when it begins.
int64_t MostBytes(const std::function<void()>& pass) {
  const int64_t before = ProcessMemory()->current_bytes();
  ProcessMemory()->ResetPeak();
  pass();
  return ProcessMemory()->peak_bytes() - before;
}

// A half has nothing freed that waits, so it is fuller than the whole, and elsewhere.
TEST_P(LayerWalkTest, APassHoldsWhatIsCounted) {
  InstallCounting();
  constexpr int64_t kSamples = 16;  // so that the kernels' own buffers are small beside them
  const at::Tensor activations = Random({kSamples, kLayerSeqLen, shape.hidden_size}, at::kDouble);
  const at::Tensor gradient = Random(activations.sizes(), at::kDouble);
  std::optional<Documents> many;
  if (documents() != nullptr) many = DocumentsOfRows(kSamples);
  const Documents* const rows = many ? &*many : nullptr;
  for (const int64_t columns : {int64_t{13}, int64_t{120}}) {
    ModelShape of_columns = shape;
    of_columns.intermediate_size = columns;
    UnitModel model(of_columns, kLayerSeqLen, DType::kFloat64);
    const at::Tensor flat = Random({ParameterLayout(of_columns)[1].num_elements}, at::kDouble, 0.2);
    at::Tensor grads = at::zeros_like(flat), made;
    const auto expect = [&](int64_t most, int64_t counted, const char* what) {
      EXPECT_NEAR(static_cast<double>(most), static_cast<double>(counted), 0.02 * static_cast<double>(counted) + 1024)
          << what << ", " << columns << " columns";
    };
    Saved saved;
    model.LayerForward(flat, activations.clone(), &saved, OpSet::None(), rows);
    const int64_t whole = MostBytes([&] { made = model.LayerBackward(flat, saved, gradient, grads, UnitSegment::kWhole, rows); });
    const int64_t counted = LayerBackwardBytes(of_columns, kSamples, kLayerSeqLen, DType::kFloat64);
    // Where attention is the fullest a peak has the repeated keys and values as well, which a profile measures; elsewhere fewer
    // of them, or none.
    const bool repeats = shape.num_kv_heads < shape.num_heads && !HostKnowsGroups();
    const int64_t repeated = repeats ? 2 * activations.numel() / shape.hidden_size * shape.num_heads * shape.head_dim * 8 : 0;
    const auto beside = [&](int64_t most, int64_t of) { return std::clamp<int64_t>(most - of, 0, repeated); };
    expect(whole - beside(whole, counted), counted, "whole");

    model.LayerForward(flat, activations.clone(), &saved, OpSet::None(), rows);
    const int64_t half = MostBytes([&] { made = model.LayerBackwardInput(flat, saved, gradient, UnitSegment::kWhole, rows); });
    const int64_t of_half = LayerBackwardInputBytes(of_columns, kSamples, kLayerSeqLen, DType::kFloat64);
    expect(half - beside(half, of_half), of_half, "by input");
    EXPECT_GT(half, whole);

    const int64_t weights = MostBytes([&] { model.LayerBackwardWeight(saved, grads); });
    expect(weights, LayerBackwardWeightBytes(of_columns, kSamples, kLayerSeqLen, DType::kFloat64), "by weight");
  }
}

// Every set of the layer's operators: what it frees is gone after the forward and there again before the backward.
TEST_P(LayerWalkTest, EverySetOfRecomputedOperatorsFreesItsBytesAndChangesNothing) {
  InstallCounting();
  UnitModel model(shape, kLayerSeqLen, DType::kFloat64);
  Saved all;
  const at::Tensor output = model.LayerForward(params, input, &all, OpSet::None(), documents());
  at::Tensor grads = at::zeros_like(params);
  const at::Tensor grad = model.LayerBackward(params, all, grad_output, grads, UnitSegment::kWhole, documents());

  const std::vector<OpCost> costs = UnitOperators(shape, UnitKind::kLayer, kLayerSamples, kLayerSeqLen, DType::kFloat64);
  const int64_t every = SavedBytes(shape, UnitKind::kLayer, kLayerSamples, kLayerSeqLen, DType::kFloat64);
  // Of a family with more operators so many at random, and both ends.
  constexpr uint32_t kMostSets = 1 << 12;
  const uint32_t sets = uint32_t{1} << costs.size();
  std::mt19937 random(7);
  for (uint32_t n = 0; n < std::min(sets, kMostSets); ++n) {
    const bool drawn = sets > kMostSets && n != 0 && n + 1 != kMostSets;
    const uint32_t bits = drawn ? static_cast<uint32_t>(random() % sets) : n == 0 ? 0 : sets > kMostSets ? sets - 1 : n;
    OpSet set;
    int64_t freed = 0;
    for (size_t i = 0; i < costs.size(); ++i) {
      if (bits >> i & 1) set = set.With(costs[i].op), freed += costs[i].output_bytes;
    }
    Saved saved;
    const int64_t before = ProcessMemory()->current_bytes();
    ASSERT_TRUE(at::equal(model.LayerForward(params, input, &saved, set, documents()), output));
    ASSERT_EQ(saved.Bytes(), every - freed) << bits;
    ASSERT_EQ(ProcessMemory()->current_bytes() - before, every - freed - static_cast<int64_t>(input.nbytes())) << bits;
    model.LayerRecompute(params, saved, set, documents());
    ASSERT_EQ(saved.Bytes(), every) << bits;
    at::Tensor again = at::zeros_like(params);
    ASSERT_TRUE(at::equal(model.LayerBackward(params, saved, grad_output, again, UnitSegment::kWhole, documents()), grad))
        << bits;
    ASSERT_TRUE(at::equal(again, grads)) << bits;
  }
}

// Some layers of a family have no rotary positions: passes over one know from its forward.
TEST_P(LayerWalkTest, ALayerWithoutRotaryPositionsIsTheLayerWithoutThatRow) {
  UnitModel model(shape, kLayerSeqLen, DType::kFloat64);
  const auto pass = [&](LayerKind kind, OpSet recomputed, bool split) {
    Saved saved;
    saved.kind = kind;
    at::Tensor grads = at::zeros_like(params);
    const at::Tensor output = model.LayerForward(params, input, &saved, recomputed);
    if (!recomputed.empty()) model.LayerRecompute(params, saved, recomputed);
    const at::Tensor grad =
        split ? model.LayerBackwardInput(params, saved, grad_output) : model.LayerBackward(params, saved, grad_output, grads);
    if (split) model.LayerBackwardWeight(saved, grads);
    return std::vector{output, grad, grads};
  };
  const auto same = [](const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
  };
  const LayerKind without = {.rotary = false};
  const std::vector<at::Tensor> want = pass(without, OpSet::None(), false);
  EXPECT_EQ(same(want, pass(LayerKind(), OpSet::None(), false)), traits.positions == PositionKind::kLearned);
  for (const OpSet recomputed : {OpSet::None(), OpSet().With(Op::kQkv), OpSet().With(Op::kHeadNorm), OpSet::All()}) {
    EXPECT_TRUE(same(pass(without, recomputed, false), want));
    EXPECT_TRUE(same(pass(without, recomputed, true), want));
  }
}

// Whatever is recomputed, and in halves; what is kept has the bytes of a layer without a window.
TEST_P(LayerWalkTest, AWindowIsThatOfEveryPassOverItsLayer) {
  InstallCounting();
  UnitModel model(shape, kLayerSeqLen, DType::kFloat64);
  const std::vector<OpCost> costs = UnitOperators(shape, UnitKind::kLayer, kLayerSamples, kLayerSeqLen, DType::kFloat64);
  const int64_t every = SavedBytes(shape, UnitKind::kLayer, kLayerSamples, kLayerSeqLen, DType::kFloat64);
  const auto pass = [&](int64_t window, uint32_t bits, bool split) {
    OpSet set;
    int64_t freed = 0;
    for (size_t i = 0; i < costs.size(); ++i) {
      if (bits >> i & 1) set = set.With(costs[i].op), freed += costs[i].output_bytes;
    }
    Saved saved;
    saved.kind.window = window;
    at::Tensor grads = at::zeros_like(params);
    const at::Tensor output = model.LayerForward(params, input, &saved, set, documents());
    EXPECT_EQ(saved.Bytes(), every - freed);
    model.LayerRecompute(params, saved, set, documents());
    const at::Tensor grad = split ? model.LayerBackwardInput(params, saved, grad_output, UnitSegment::kWhole, documents())
                                  : model.LayerBackward(params, saved, grad_output, grads, UnitSegment::kWhole, documents());
    if (split) model.LayerBackwardWeight(saved, grads);
    return std::vector{output, grad, grads};
  };
  const auto same = [](const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
  };
  const std::vector<at::Tensor> want = pass(2, 0, false);
  EXPECT_FALSE(same(want, pass(0, 0, false)));
  EXPECT_FALSE(same(want, pass(1, 0, false)));
  EXPECT_TRUE(same(pass(0, 0, false), pass(kLayerSeqLen, 0, false))) << "of all tokens it is none";
  for (uint32_t bits = 1; bits < uint32_t{1} << costs.size(); bits += 37) EXPECT_TRUE(same(want, pass(2, bits, bits % 2 == 0)));
}

TEST_P(LayerWalkTest, FullRecomputationKeepsTheInputAlone) {
  UnitModel model(shape, kLayerSeqLen, DType::kFloat64);
  Saved saved;
  model.LayerForward(params, input, &saved, OpSet::All(), documents());
  EXPECT_EQ(saved.Bytes(), static_cast<int64_t>(input.nbytes()));
  model.LayerRecompute(params, saved, OpSet::All(), documents());
  EXPECT_EQ(saved.Bytes(), SavedBytes(shape, UnitKind::kLayer, kLayerSamples, kLayerSeqLen, DType::kFloat64));
}

INSTANTIATE_TEST_SUITE_P(Families, LayerWalkTest, ::testing::Combine(::testing::ValuesIn(kModelFamilies), ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(TraitsOf(std::get<0>(info.param)).model_type) +
                                  (std::get<1>(info.param) ? "OnRows" : "");
                         });

}  // namespace
}  // namespace motley::engine
