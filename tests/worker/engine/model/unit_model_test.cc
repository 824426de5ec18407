// Whole units, chained as a model, against a textbook transformer under autograd that reads the same flat arrays.
#include "worker/engine/model/unit_model.h"

#include <cmath>

#include "common/model/operators.h"
#include "tests/worker/engine/model/autograd_oracle.h"
#include "worker/engine/base/memory.h"
#include "worker/engine/base/scalar_type.h"

namespace motley::engine {
namespace {

struct Case {
  std::string name;
  ModelShape shape;
};

ModelShape Gpt2(bool tied) {
  return {.family = ModelFamily::kGpt2,
          .vocab_size = 50,
          .hidden_size = 24,
          .num_layers = 2,
          .num_heads = 3,
          .num_kv_heads = 3,
          .head_dim = 8,
          .intermediate_size = 40,
          .max_positions = 20,
          .norm_eps = 1e-5,
          .tie_embeddings = tied};
}
ModelShape Llama(bool tied, int64_t kv_heads, int64_t head_dim = 6) {
  return {.family = ModelFamily::kLlama,
          .vocab_size = 50,
          .hidden_size = 24,
          .num_layers = 2,
          .num_heads = 4,
          .num_kv_heads = kv_heads,
          .head_dim = head_dim,
          .intermediate_size = 40,
          .max_positions = 20,
          .norm_eps = 1e-6,
          .rope_theta = 500.0,
          .tie_embeddings = tied};
}

ModelShape Qwen2(bool tied, int64_t kv_heads) {
  ModelShape shape = Llama(tied, kv_heads);
  shape.family = ModelFamily::kQwen2;
  return shape;
}

ModelShape Like(ModelFamily family, ModelShape shape) {
  shape.family = family;
  return shape;
}
// The first of two layers has no positions.
ModelShape SmolLm3(bool tied, int64_t kv_heads) {
  ModelShape shape = Like(ModelFamily::kSmolLm3, Llama(tied, kv_heads));
  shape.layer_kinds = {{.rotary = false}, {.rotary = true}};
  return shape;
}

// Mistral has one window in all layers, others in some.
ModelShape Windowed(ModelShape shape, std::vector<int64_t> windows) {
  shape.layer_kinds.resize(windows.size());
  for (size_t i = 0; i < windows.size(); ++i) shape.layer_kinds[i].window = windows[i];
  return shape;
}

// Windows with a base of their own, and a scale that is not the heads'.
ModelShape Gemma3(bool tied, int64_t kv_heads) {
  ModelShape shape = Like(ModelFamily::kGemma3, Llama(tied, kv_heads));
  shape.layer_kinds = {{.window = 4, .rope_theta = 50.0}, {}};
  shape.query_scalar = 10;
  return shape;
}

constexpr int64_t kSamples = 3, kSeqLen = 11;

class UnitModelTest : public ::testing::TestWithParam<std::tuple<Case, DType>> {
 protected:
  UnitModelTest()
      : shape(std::get<0>(GetParam()).shape),
        dtype(std::get<1>(GetParam())),
        layout(ParameterLayout(shape)),
        type(ScalarTypeOf(dtype)),
        oracle_type(motley::IsHalf(dtype) ? at::kDouble : type),
        gradient_type(motley::IsHalf(dtype) ? at::kFloat : type) {
    // The same at every run, whatever ran before: what a half type rounds away depends on the numbers.
    at::Generator generator = at::detail::createCPUGenerator(7);
    const auto options = at::TensorOptions().dtype(at::kDouble);
    for (const UnitSpec& unit : layout) flats.push_back(at::normal(0.0, 0.15, {unit.num_elements}, generator, options).to(type));
    tokens = at::randint(shape.vocab_size, {kSamples, kSeqLen}, generator, at::kLong);
    targets = at::randint(shape.vocab_size, {kSamples, kSeqLen}, generator, at::kLong);
  }

  // As HuggingFace has it.
  at::Tensor Named(const std::vector<at::Tensor>& leaves, const std::string& name) const {
    for (size_t u = 0; u < layout.size(); ++u) {
      for (const TensorSpec& t : layout[u].tensors) {
        if (t.name != name) continue;
        const at::Tensor stored = leaves[u].narrow(0, t.offset_elements, t.num_elements).view(t.shape);
        return t.transposed ? stored.t() : stored;
      }
    }
    ADD_FAILURE() << "no tensor " << name;
    return {};
  }
  bool gpt2() const { return shape.family == ModelFamily::kGpt2; }
  bool gemma() const { return shape.family == ModelFamily::kGemma3; }

  at::Tensor OracleRotary(const at::Tensor& x, double theta) const {
    const auto f64 = at::TensorOptions().dtype(at::kDouble);
    const int64_t d = shape.head_dim;
    const at::Tensor inverse = 1.0 / at::pow(theta, at::arange(0, d, 2, f64) / static_cast<double>(d));
    const at::Tensor half = at::outer(at::arange(kSeqLen, f64), inverse), angles = at::cat({half, half}, -1);
    const at::Tensor rotated = at::cat({-x.narrow(-1, d / 2, d / 2), x.narrow(-1, 0, d / 2)}, -1);
    return x * angles.cos().to(x.scalar_type()) + rotated * angles.sin().to(x.scalar_type());
  }
  // q and k of each head before their rotation: `norm_q`, `norm_k` undefined where there is no such norm.
  at::Tensor OracleAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const LayerKind& kind,
                             const at::Tensor& norm_q = {}, const at::Tensor& norm_k = {}) const {
    const auto heads = [&](const at::Tensor& t, int64_t n) {
      return t.view({kSamples, kSeqLen, n, shape.head_dim}).transpose(1, 2);
    };
    at::Tensor qh = heads(q, shape.num_heads), kh = heads(k, shape.num_kv_heads), vh = heads(v, shape.num_kv_heads);
    if (norm_q.defined()) qh = OracleRmsNorm(qh, norm_q), kh = OracleRmsNorm(kh, norm_k);
    const double theta = kind.rope_theta != 0 ? kind.rope_theta : shape.rope_theta;
    if (kind.rotary && !gpt2()) qh = OracleRotary(qh, theta), kh = OracleRotary(kh, theta);
    const int64_t group = shape.num_heads / shape.num_kv_heads;
    kh = kh.repeat_interleave(group, 1), vh = vh.repeat_interleave(group, 1);
    const at::Tensor ones = at::ones({kSeqLen, kSeqLen}, at::kBool);
    at::Tensor unseen = ones.triu(1);
    if (kind.window != 0) unseen = unseen.logical_or(ones.tril(-kind.window));
    const at::Tensor scores = at::matmul(qh, kh.transpose(-2, -1)) /
                              std::sqrt(static_cast<double>(shape.query_scalar != 0 ? shape.query_scalar : shape.head_dim));
    return at::matmul(at::softmax(scores.masked_fill(unseen, -INFINITY), -1), vh)
        .transpose(1, 2)
        .reshape({kSamples, kSeqLen, -1});
  }
  at::Tensor OracleRmsNorm(const at::Tensor& x, const at::Tensor& w) const {
    return x * at::rsqrt(x.pow(2).mean(-1, true) + shape.norm_eps) * (gemma() ? w + 1 : w);
  }

  at::Tensor OracleGpt2Layer(const std::vector<at::Tensor>& leaves, int64_t layer, const at::Tensor& x) const {
    const auto p = [&](const std::string& name) { return Named(leaves, "transformer.h." + std::to_string(layer) + "." + name); };
    const auto conv = [&](const at::Tensor& t, const std::string& name) {
      return at::matmul(t, p(name + ".weight")) + p(name + ".bias");
    };
    const auto norm = [&](const at::Tensor& t, const std::string& name) {
      return at::layer_norm(t, {shape.hidden_size}, p(name + ".weight"), p(name + ".bias"), shape.norm_eps);
    };
    const auto qkv = conv(norm(x, "ln_1"), "attn.c_attn").chunk(3, -1);
    const at::Tensor x1 =
        x +
        conv(OracleAttention(qkv[0].contiguous(), qkv[1].contiguous(), qkv[2].contiguous(), shape.KindOf(layer)), "attn.c_proj");
    return x1 + conv(at::gelu(conv(norm(x1, "ln_2"), "mlp.c_fc"), "tanh"), "mlp.c_proj");
  }
  // Those of its relatives too: Qwen 2 has biases of queries, keys and values, Qwen 3 norms of queries and keys, Phi-3 fused
  // products, SmolLM 3 layers without positions, OLMo 2 norms of what attention and MLP make, and of all queries and all keys,
  // and Gemma 3 norms of what they read, of what they make, and of queries and keys.
  at::Tensor OracleLlamaLayer(const std::vector<at::Tensor>& leaves, int64_t layer, const at::Tensor& x) const {
    const auto p = [&](const std::string& name) {
      return Named(leaves, "model.layers." + std::to_string(layer) + "." + name + ".weight");
    };
    const auto linear = [&](const at::Tensor& t, const std::string& name) { return at::matmul(t, p(name).t()); };
    const auto projected = [&](const at::Tensor& t, const std::string& name) {
      if (shape.family != ModelFamily::kQwen2) return linear(t, name);
      return linear(t, name) + Named(leaves, "model.layers." + std::to_string(layer) + "." + name + ".bias");
    };
    const bool behind = shape.family == ModelFamily::kOlmo2;
    const at::Tensor n1 = behind ? x : OracleRmsNorm(x, p("input_layernorm"));
    const bool fused = shape.family == ModelFamily::kPhi3, normed = shape.family == ModelFamily::kQwen3 || gemma();
    const auto parts = [&](const at::Tensor& t, const char* of_all, std::vector<const char*> names,
                           std::vector<int64_t> columns) {
      if (fused) return linear(t, of_all).split_with_sizes(columns, -1);
      std::vector<at::Tensor> made;
      for (const char* name : names) made.push_back(projected(t, name));
      return made;
    };
    const int64_t q = shape.num_heads * shape.head_dim, kv = shape.num_kv_heads * shape.head_dim;
    std::vector<at::Tensor> qkv =
        parts(n1, "self_attn.qkv_proj", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}, {q, kv, kv});
    if (behind) {
      qkv[0] = OracleRmsNorm(qkv[0], p("self_attn.q_norm"));
      qkv[1] = OracleRmsNorm(qkv[1], p("self_attn.k_norm"));
    }
    const at::Tensor attended =
        OracleAttention(qkv[0].contiguous(), qkv[1].contiguous(), qkv[2].contiguous(), shape.KindOf(layer),
                        normed ? p("self_attn.q_norm") : at::Tensor(), normed ? p("self_attn.k_norm") : at::Tensor());
    const at::Tensor projected1 = linear(attended, "self_attn.o_proj"), norm = p("post_attention_layernorm");
    const at::Tensor x1 = x + (behind || gemma() ? OracleRmsNorm(projected1, norm) : projected1);
    const at::Tensor n2 = behind ? x1 : OracleRmsNorm(x1, gemma() ? p("pre_feedforward_layernorm") : norm);
    const int64_t columns = shape.intermediate_size;
    const at::Tensor gate_up =
        fused ? linear(n2, "mlp.gate_up_proj") : at::cat({linear(n2, "mlp.gate_proj"), linear(n2, "mlp.up_proj")}, -1);
    const at::Tensor gate = gate_up.narrow(-1, 0, columns);
    const at::Tensor activated = (gemma() ? at::gelu(gate, "tanh") : at::silu(gate)) * gate_up.narrow(-1, columns, columns);
    const at::Tensor projected2 = linear(activated, "mlp.down_proj");
    return x1 + (behind || gemma() ? OracleRmsNorm(projected2, p("post_feedforward_layernorm")) : projected2);
  }
  at::Tensor OracleLoss(const std::vector<at::Tensor>& leaves) const {
    const std::string table = gpt2() ? "transformer.wte.weight" : "model.embed_tokens.weight";
    at::Tensor x = at::embedding(Named(leaves, table), tokens);
    if (gemma()) x = x * std::sqrt(static_cast<double>(shape.hidden_size));
    if (gpt2()) x = x + Named(leaves, "transformer.wpe.weight").narrow(0, 0, kSeqLen);
    for (int64_t l = 0; l < shape.num_layers; ++l) x = gpt2() ? OracleGpt2Layer(leaves, l, x) : OracleLlamaLayer(leaves, l, x);
    x = gpt2() ? at::layer_norm(x, {shape.hidden_size}, Named(leaves, "transformer.ln_f.weight"),
                                Named(leaves, "transformer.ln_f.bias"), shape.norm_eps)
               : OracleRmsNorm(x, Named(leaves, "model.norm.weight"));
    const at::Tensor logits = at::matmul(x, Named(leaves, shape.tie_embeddings ? table : "lm_head.weight").t());
    return at::cross_entropy_loss(logits.view({-1, shape.vocab_size}), targets.view({-1}), {}, at::Reduction::Sum);
  }

  const ModelShape shape;
  const DType dtype;
  const std::vector<UnitSpec> layout;
  // Half types are held against float64, and have float32 gradients.
  const at::ScalarType type, oracle_type, gradient_type;
  std::vector<at::Tensor> flats;
  at::Tensor tokens, targets;
};

TEST_P(UnitModelTest, LossAndEveryGradientEqualAutograd) {
  constexpr double kMostBeside = 2;
  // Float16 loses small gradients without a loss scale.
  const double scale = (dtype == DType::kFloat16 ? 1024.0 : 1.0) / (kSamples * kSeqLen);
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& flat : flats) leaves.push_back(Leaf(flat.to(oracle_type)));
  const at::Tensor want = OracleLoss(leaves);
  const auto want_grads = AutogradOf(want * scale, leaves, at::ones({}, oracle_type));
  // How coarsely a processor multiplies half types is its own: autograd in the same type misses as much there.
  std::vector<at::Tensor> own_leaves, own_grads;
  for (const at::Tensor& flat : flats) own_leaves.push_back(Leaf(flat));
  own_grads = AutogradOf(OracleLoss(own_leaves) * scale, own_leaves, at::ones({}, type));

  UnitModel model(shape, kSeqLen, dtype);
  std::vector<at::Tensor> grads;
  for (const at::Tensor& flat : flats) grads.push_back(at::zeros({flat.numel() + 5}, gradient_type));  // a buffer may be longer
  const size_t head = flats.size() - 1;
  std::vector<Saved> saved(flats.size());
  at::Tensor x = model.EmbeddingForward(flats[0], tokens);
  for (size_t u = 1; u < head; ++u) {
    saved[u].kind = shape.KindOf(static_cast<int64_t>(u) - 1);
    x = model.LayerForward(flats[u], x, &saved[u]);
  }
  const at::Tensor tied = shape.tie_embeddings ? flats[0] : at::Tensor();
  UnitModel::HeadKeep(x, saved[head]);
  at::Tensor none;
  const HeadGradient of_head =
      model.HeadBackward(flats[head], tied, saved[head], targets, scale, grads[head], shape.tie_embeddings ? grads[0] : none);
  const double loss = of_head.loss.item<double>();
  at::Tensor grad = of_head.input;
  for (size_t u = head - 1; u > 0; --u) {
    grad = model.LayerBackward(flats[u], saved[u], grad, grads[u]);
    EXPECT_EQ(saved[u].Bytes(), 0);
  }
  model.EmbeddingBackward(tokens, grad, grads[0]);

  const double tolerance = motley::IsHalf(dtype) ? (dtype == DType::kBFloat16 ? 6e-2 : 1e-2) : Tolerance(type);
  EXPECT_NEAR(loss, want.item<double>(), tolerance * want.item<double>());
  for (size_t u = 0; u < flats.size(); ++u) {
    for (const TensorSpec& t : layout[u].tensors) {
      const at::Tensor expected = want_grads[u].narrow(0, t.offset_elements, t.num_elements);
      const at::Tensor own = own_grads[u].narrow(0, t.offset_elements, t.num_elements);
      const double missed = ((own.to(at::kDouble) - expected).norm() / (expected.norm() + 1e-30)).item<double>();
      ExpectNear(grads[u].narrow(0, t.offset_elements, t.num_elements), expected, std::max(tolerance, kMostBeside * missed),
                 t.name);
    }
  }
}

TEST_P(UnitModelTest, KeepingNothingGivesTheSameOutput) {
  UnitModel model(shape, kSeqLen, dtype);
  const at::Tensor x = model.EmbeddingForward(flats[0], tokens);
  Saved saved;
  EXPECT_TRUE(at::equal(model.LayerForward(flats[1], x, &saved), model.LayerForward(flats[1], x, nullptr)));
}

TEST_P(UnitModelTest, SavedTensorsMatchTheOperatorTable) {
  InstallCounting();
  UnitModel model(shape, kSeqLen, dtype);
  const at::Tensor input = Random({kSamples, kSeqLen, shape.hidden_size}, type);
  Saved layer;
  const int64_t before = ProcessMemory()->current_bytes();
  const at::Tensor output = model.LayerForward(flats[1], input, &layer);
  const int64_t want = SavedBytes(shape, UnitKind::kLayer, kSamples, kSeqLen, dtype);
  EXPECT_EQ(layer.Bytes(), want);
  // What the allocator sees: all that is kept but the input, which was there, and the output.
  EXPECT_EQ(ProcessMemory()->current_bytes() - before,
            want - static_cast<int64_t>(input.nbytes()) + static_cast<int64_t>(output.nbytes()));
}

TEST_P(UnitModelTest, ForwardThatKeepsNothingLeavesOnlyTheOutput) {
  InstallCounting();
  UnitModel model(shape, kSeqLen, dtype);
  const at::Tensor input = Random({kSamples, kSeqLen, shape.hidden_size}, type);
  const int64_t before = ProcessMemory()->current_bytes();
  const at::Tensor output = model.LayerForward(flats[1], input, nullptr);
  EXPECT_EQ(ProcessMemory()->current_bytes() - before, static_cast<int64_t>(output.nbytes()));
}

INSTANTIATE_TEST_SUITE_P(
    Families, UnitModelTest,
    ::testing::Combine(::testing::Values(Case{"Gpt2Tied", Gpt2(true)}, Case{"Gpt2Untied", Gpt2(false)},
                                         Case{"LlamaTied", Llama(true, 4)}, Case{"LlamaUntiedGrouped", Llama(false, 2)},
                                         Case{"LlamaTiedOneKeyHead", Llama(true, 1)}, Case{"LlamaWideHeads", Llama(false, 2, 10)},
                                         Case{"MistralGrouped", Windowed(Llama(false, 2), {4, 4})},
                                         Case{"Qwen2Tied", Qwen2(true, 4)}, Case{"Qwen2UntiedGrouped", Qwen2(false, 2)},
                                         Case{"Qwen3TiedGrouped", Like(ModelFamily::kQwen3, Llama(true, 2, 10))},
                                         Case{"Qwen3Untied", Like(ModelFamily::kQwen3, Llama(false, 4))},
                                         Case{"Phi3UntiedGrouped", Like(ModelFamily::kPhi3, Llama(false, 2))},
                                         Case{"SmolLm3TiedGrouped", SmolLm3(true, 2)},
                                         Case{"SmolLm3Windowed", Windowed(SmolLm3(true, 2), {3, 0})},
                                         Case{"Olmo2UntiedGrouped", Like(ModelFamily::kOlmo2, Llama(false, 2, 10))},
                                         Case{"Olmo2Tied", Like(ModelFamily::kOlmo2, Llama(true, 4))},
                                         Case{"Gemma3TiedGrouped", Gemma3(true, 2)}, Case{"Gemma3Untied", Gemma3(false, 4)}),
                       ::testing::Values(DType::kFloat64, DType::kFloat32, DType::kBFloat16, DType::kFloat16)),
    [](const auto& info) { return std::get<0>(info.param).name + std::string(DTypeName(std::get<1>(info.param))); });

// More rows than one chunk of the head.
TEST(UnitModelHeadTest, ChunksDoNotChangeTheSum) {
  const ModelShape shape = Gpt2(false);
  const std::vector<UnitSpec> layout = ParameterLayout(shape);
  constexpr int64_t kRows = 2 * kHeadChunkTokens + 7;
  UnitModel model(shape, kRows, DType::kFloat64);
  const at::Tensor params = Random({layout.back().num_elements}, at::kDouble, 0.3),
                   x = Random({1, kRows, shape.hidden_size}, at::kDouble);
  const at::Tensor targets = at::randint(shape.vocab_size, {1, kRows}, at::kLong);
  double by_row = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    by_row += model.HeadForward(params, {}, x.narrow(1, row, 1), targets.narrow(1, row, 1)).item<double>();
  }
  EXPECT_NEAR(model.HeadForward(params, {}, x, targets).item<double>(), by_row, 1e-10 * by_row);
}

}  // namespace
}  // namespace motley::engine
