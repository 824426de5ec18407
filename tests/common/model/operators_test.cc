#include "common/model/operators.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace motley {
namespace {

const ModelShape kGpt2 = *ModelFlavor("gpt2", "124M");
const ModelShape kLlama = *ModelFlavor("llama3", "8B");
const ModelShape kQwen2 = *ModelFlavor("qwen2", "7B");
const ModelShape kQwen3 = *ModelFlavor("qwen3", "8B");
constexpr UnitKind kUnits[] = {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kHead};

OpCost Find(const ModelShape& shape, UnitKind unit, Op op, int64_t samples, int64_t seq_len, DType dtype = DType::kFloat32) {
  for (const OpCost& cost : UnitOperators(shape, unit, samples, seq_len, dtype)) {
    if (cost.op == op) return cost;
  }
  ADD_FAILURE() << "no operator " << OpName(op);
  return {};
}

TEST(OperatorsTest, NamesAreDistinct) {
  std::set<std::string_view> names;
  int count = 0;
  ModelShape gemma = kQwen3;
  gemma.family = ModelFamily::kGemma3;
  for (const ModelShape& shape : {kGpt2, kLlama, kQwen2, kQwen3, gemma}) {
    for (const UnitKind unit : kUnits) {
      for (const OpCost& cost : UnitOperators(shape, unit, 1, 8, DType::kFloat32)) {
        if (shape.family == ModelFamily::kGemma3) ++count;
        names.insert(OpName(cost.op));
      }
    }
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumOps));
  EXPECT_EQ(count,
            kNumOps);  // Gemma 3 has them all; Qwen 3 no norms behind others, Llama none of heads, GPT-2 no rotary positions
}

// Six times the matrices' parameters for each token, as everybody counts, within the small change of norms and biases.
TEST(OperatorsTest, LayerFlopsAreSixTimesTheParametersPlusAttention) {
  for (const ModelShape& shape : {kGpt2, kLlama, kQwen2, kQwen3}) {
    const int64_t samples = 3, seq_len = 512, tokens = samples * seq_len;
    double matrices = 0;
    const std::vector<UnitSpec> layout = ParameterLayout(shape);
    for (const TensorSpec& tensor : layout[1].tensors) {
      if (tensor.shape.size() == 2) matrices += static_cast<double>(tensor.num_elements);
    }
    // Two products of 2 x seq_len^2 x width, half of each.
    const double attention = 2.0 * static_cast<double>(tokens * seq_len * shape.num_heads * shape.head_dim);
    const double forward = 2 * matrices * static_cast<double>(tokens) + attention;
    const double backward = 4 * matrices * static_cast<double>(tokens) + 2.5 * attention;
    const double got_forward = ForwardFlops(shape, UnitKind::kLayer, samples, seq_len);
    const double got_backward = BackwardFlops(shape, UnitKind::kLayer, samples, seq_len);
    EXPECT_GT(got_forward, forward);
    EXPECT_LT(got_forward, 1.01 * forward);
    EXPECT_GT(got_backward, backward);
    EXPECT_LT(got_backward, 1.01 * backward);
  }
}

// Qwen 2 is Llama with a bias for each query, key and value: an addition each way, and nothing more to keep.
TEST(OperatorsTest, BiasesAreCountedWhereTheFamilyHasThem) {
  ModelShape llama = kQwen2;
  llama.family = ModelFamily::kLlama;
  constexpr int64_t kTokens = 2 * 64;
  for (const OpCost& cost : UnitOperators(kQwen2, UnitKind::kLayer, 2, 64, DType::kFloat32)) {
    const OpCost without = Find(llama, UnitKind::kLayer, cost.op, 2, 64);
    const double biases = cost.op == Op::kQkv ? kTokens * (3584 + 2 * 512) : 0;
    EXPECT_EQ(cost.forward_flops - without.forward_flops, biases) << OpName(cost.op);
    EXPECT_EQ(cost.backward_flops() - without.backward_flops(), biases) << OpName(cost.op);
    EXPECT_EQ(cost.output_bytes, without.output_bytes) << OpName(cost.op);
  }
}

TEST(OperatorsTest, NormsOfHeadsCostAPassOverQueriesAndKeys) {
  constexpr int64_t kTokens = 2 * 64, kColumns = 4096 + 1024;
  const OpCost norm = Find(kQwen3, UnitKind::kLayer, Op::kHeadNorm, 2, 64);
  EXPECT_EQ(norm.forward_flops, 5.0 * kTokens * kColumns);
  EXPECT_EQ(norm.backward_flops(), 2 * norm.forward_flops);
  EXPECT_EQ(norm.activation_bytes, 3.0 * kTokens * kColumns * 4);
  EXPECT_EQ(norm.output_bytes, kTokens * (kColumns + 32 + 8) * 4);
  EXPECT_TRUE(norm.divided && norm.output_divided && !norm.is_matrix);
  ModelShape llama = kQwen3;
  llama.family = ModelFamily::kLlama;
  const auto waiting = [](const ModelShape& shape) { return WaitingBytes(shape, UnitKind::kLayer, 2, 64, DType::kFloat32); };
  EXPECT_EQ(waiting(kQwen3) - waiting(llama), 2 * 128 * 4) << "the gradients of two weights";
}

TEST(OperatorsTest, NormsBehindOthersKeepWhatTheyNorm) {
  ModelShape gemma = kQwen3;
  gemma.family = ModelFamily::kGemma3;
  constexpr int64_t kTokens = 2 * 64;
  const int64_t hidden = gemma.hidden_size;
  for (const Op op : {Op::kBehind1, Op::kBehind2}) {
    const OpCost norm = Find(gemma, UnitKind::kLayer, op, 2, 64);
    EXPECT_EQ(norm.forward_flops, 5.0 * static_cast<double>(kTokens * hidden));
    EXPECT_FALSE(norm.divided || norm.output_divided || norm.is_matrix);
  }
  // What it makes is the sum behind it, which the next norm reads, of the first; of the second nobody reads what it makes.
  EXPECT_EQ(Find(gemma, UnitKind::kLayer, Op::kBehind1, 2, 64).output_bytes, kTokens * (hidden + 1) * 4);
  EXPECT_EQ(Find(gemma, UnitKind::kLayer, Op::kBehind2, 2, 64).output_bytes, kTokens * 4);
  const auto saved = [](const ModelShape& shape) { return SavedBytes(shape, UnitKind::kLayer, 2, 64, DType::kFloat32); };
  EXPECT_EQ(saved(gemma) - saved(kQwen3), kTokens * 2 * (hidden + 1) * 4) << "what is normed, and a number of each token";
}

TEST(OperatorsTest, LogitsHaveRowsOfAMultipleOf64) {
  EXPECT_EQ(LogitColumns(50257), 50304);
  EXPECT_EQ(LogitColumns(32000), 32000);
  EXPECT_EQ(LogitColumns(1), 64);
}

TEST(OperatorsTest, AHeadTrainsInThreeProductsOfItsBackward) {
  const OpCost head = Find(kGpt2, UnitKind::kHead, Op::kLmHeadLoss, 2, 100);
  EXPECT_DOUBLE_EQ(head.forward_flops, 2.0 * 200 * 50257 * 768);
  EXPECT_DOUBLE_EQ(head.backward_flops(), 6.0 * 200 * 50257 * 768);
  const OpCost norm = Find(kGpt2, UnitKind::kHead, Op::kFinalNorm, 2, 100);
  EXPECT_DOUBLE_EQ(norm.backward_flops(), 3 * norm.forward_flops) << "its forward among it";
  EXPECT_TRUE(TrainsInBackward(UnitKind::kHead));
  EXPECT_FALSE(TrainsInBackward(UnitKind::kLayer) || TrainsInBackward(UnitKind::kEmbedding));
}

TEST(OperatorsTest, AttentionGrowsWithTheSquareOfTheSequence) {
  const OpCost shorter = Find(kLlama, UnitKind::kLayer, Op::kAttention, 1, 128);
  const OpCost longer = Find(kLlama, UnitKind::kLayer, Op::kAttention, 1, 256);
  EXPECT_DOUBLE_EQ(longer.forward_flops, 4 * shorter.forward_flops);
  EXPECT_DOUBLE_EQ(longer.backward_flops(), 2.5 * longer.forward_flops);
}

// What the engine's layers keep, counted by hand: x, norm1, q k v, attention, residual, norm2, up, activation, statistics.
TEST(OperatorsTest, SavedBytesAreTheTensorsOfTheLayer) {
  const int64_t tokens = 2 * 64;
  EXPECT_EQ(SavedBytes(kGpt2, UnitKind::kLayer, 2, 64, DType::kFloat32),
            tokens * 4 * ((1 + 1 + 3 + 1 + 1 + 1 + 4 + 4) * 768 + 4 + 12));
  EXPECT_EQ(SavedBytes(kLlama, UnitKind::kLayer, 2, 64, DType::kFloat64),
            tokens * 8 * ((1 + 1 + 1 + 1 + 1 + 1) * 4096 + 2 * 1024 + 3 * 14336 + 2 + 32));
  // Of Qwen 3 queries and keys before their norm, too, and one number for each of them.
  EXPECT_EQ(SavedBytes(kQwen3, UnitKind::kLayer, 2, 64, DType::kFloat64),
            tokens * 8 * ((1 + 1 + 1 + 1 + 1 + 1) * 4096 + 2 * 1024 + 3 * 12288 + 2 + 32 + (4096 + 1024) + (32 + 8)));
  // Of OLMo 2 in place of the normed inputs what attention and MLP made.
  ModelShape olmo = kQwen3;
  olmo.family = ModelFamily::kOlmo2;
  EXPECT_EQ(SavedBytes(olmo, UnitKind::kLayer, 2, 64, DType::kFloat64),
            tokens * 8 * ((1 + 1 + 1 + 1 + 1 + 1) * 4096 + 2 * 1024 + 3 * 12288 + 2 + 32 + (4096 + 1024) + 2));
  EXPECT_EQ(SavedBytes(kGpt2, UnitKind::kHead, 2, 64, DType::kFloat32), tokens * 4 * 768) << "its input";
  EXPECT_EQ(SavedBytes(kGpt2, UnitKind::kEmbedding, 2, 64, DType::kFloat32), tokens * 16);
  EXPECT_EQ(BoundaryBytes(kGpt2, 2, 64, DType::kFloat32), tokens * 4 * 768);
}

TEST(OperatorsTest, EverythingIsLinearInTheSamples) {
  for (const ModelShape& shape : {kGpt2, kLlama, kQwen2}) {
    for (const UnitKind unit : kUnits) {
      EXPECT_DOUBLE_EQ(ForwardFlops(shape, unit, 6, 32), 6 * ForwardFlops(shape, unit, 1, 32));
      EXPECT_DOUBLE_EQ(BackwardFlops(shape, unit, 6, 32), 6 * BackwardFlops(shape, unit, 1, 32));
      EXPECT_EQ(SavedBytes(shape, unit, 6, 32, DType::kFloat32), 6 * SavedBytes(shape, unit, 1, 32, DType::kFloat32));
      EXPECT_EQ(ForwardFlops(shape, unit, 0, 32), 0);
    }
  }
}

}  // namespace
}  // namespace motley
