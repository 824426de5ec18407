#include <cmath>

#include "gtest/gtest.h"
#include "worker/engine/base/torch_pch.h"
#include "worker/engine/model/unit_model.h"

namespace motley::engine {
namespace {

UnitSpec Layer(ModelFamily family = ModelFamily::kGpt2, int64_t hidden_size = 64) {
  ModelShape shape{.family = family,
                   .vocab_size = 256,
                   .hidden_size = hidden_size,
                   .num_layers = 2,
                   .num_heads = 4,
                   .num_kv_heads = 4,
                   .head_dim = hidden_size / 4,
                   .intermediate_size = 256,
                   .max_positions = 64};
  return ParameterLayout(shape)[1];
}

at::Tensor Range(const UnitSpec& unit, int64_t seed, int64_t begin, int64_t end, at::ScalarType dtype = at::kDouble,
                 int threads = 1) {
  at::Tensor out = at::empty({end - begin}, dtype);
  InitializeRange(unit, seed, begin, end, out, threads);
  return out;
}

TEST(InitializeRangeTest, AnyRangeAgreesWithTheWhole) {
  const UnitSpec unit = Layer();
  const at::Tensor whole = Range(unit, 5, 0, unit.num_elements);
  for (const auto& [begin, end] :
       {std::pair<int64_t, int64_t>{0, 1}, {60, 70}, {127, 12345}, {777, 777}, {12416, unit.num_elements}}) {
    EXPECT_TRUE(at::equal(Range(unit, 5, begin, end), whole.narrow(0, begin, end - begin))) << begin << " " << end;
  }
}

TEST(InitializeRangeTest, ThreadsDrawWhatOneDraws) {
  const UnitSpec unit = Layer(ModelFamily::kGpt2, 512);
  EXPECT_TRUE(at::equal(Range(unit, 5, 77, unit.num_elements, at::kDouble, 4), Range(unit, 5, 77, unit.num_elements)));
}

// Computed by another program from the formula of docs/use/training-semantics.md. A seed gives the same model wherever an element
// is stored: these are HuggingFace's rows and columns.
TEST(InitializeRangeTest, ValuesAreThoseOfTheNamedElement) {
  struct Known {
    ModelFamily family;
    const char* name;
    int64_t row, column;
    double value;
  };
  for (const auto& [family, name, row, column, value] :
       {Known{ModelFamily::kGpt2, "transformer.h.0.attn.c_attn.weight", 3, 5, 0.00362719302812783},
        Known{ModelFamily::kGpt2, "transformer.h.0.attn.c_attn.weight", 63, 191, 0.003717206858101136},
        Known{ModelFamily::kGpt2, "transformer.h.0.attn.c_proj.weight", 3, 5, -0.0007695166304186838},
        Known{ModelFamily::kGpt2, "transformer.h.0.mlp.c_fc.weight", 10, 200, 0.026980135710990723},
        Known{ModelFamily::kGpt2, "transformer.h.0.mlp.c_proj.weight", 200, 10, -0.0075145907403681555},
        Known{ModelFamily::kLlama, "model.layers.0.self_attn.k_proj.weight", 5, 3, -0.0029756103589237805},
        Known{ModelFamily::kLlama, "model.layers.0.self_attn.o_proj.weight", 5, 3, 0.010646200705684795},
        Known{ModelFamily::kLlama, "model.layers.0.mlp.down_proj.weight", 10, 150, -0.011313250470470689}}) {
    const UnitSpec unit = Layer(family);
    const at::Tensor whole = Range(unit, 5, 0, unit.num_elements);
    bool found = false;
    for (const TensorSpec& tensor : unit.tensors) {
      if (tensor.name != name) continue;
      found = true;
      const at::Tensor stored = whole.narrow(0, tensor.offset_elements, tensor.num_elements).view(tensor.shape);
      const at::Tensor named = tensor.transposed ? stored.t() : stored;
      EXPECT_DOUBLE_EQ(named[row][column].item<double>(), value) << name << " " << row << " " << column;
    }
    EXPECT_TRUE(found) << name;
  }
}

TEST(InitializeRangeTest, HasTheKindsAndDeviationsOfTheLayout) {
  const UnitSpec unit = Layer();
  const at::Tensor whole = Range(unit, 5, 0, unit.num_elements);
  for (const TensorSpec& tensor : unit.tensors) {
    const at::Tensor part = whole.narrow(0, tensor.offset_elements, tensor.num_elements);
    if (tensor.init == InitKind::kNormal) {
      const double n = static_cast<double>(tensor.num_elements);
      EXPECT_NEAR(part.std().item<double>() / tensor.init_std, 1.0, 4 / std::sqrt(2 * n)) << tensor.name;
      EXPECT_NEAR(part.mean().item<double>() / tensor.init_std, 0.0, 4 / std::sqrt(n)) << tensor.name;
    } else {
      EXPECT_TRUE(at::equal(part, at::full_like(part, tensor.init == InitKind::kOnes ? 1 : 0))) << tensor.name;
    }
  }
}

TEST(InitializeRangeTest, DependsOnSeedAndNameAndRoundsToTheDtype) {
  const UnitSpec unit = Layer();
  const at::Tensor a = Range(unit, 5, 0, unit.num_elements);
  EXPECT_FALSE(at::equal(a, Range(unit, 6, 0, unit.num_elements)));
  EXPECT_TRUE(at::equal(a.to(at::kFloat), Range(unit, 5, 0, unit.num_elements, at::kFloat)));
  UnitSpec renamed = unit;
  for (TensorSpec& tensor : renamed.tensors) tensor.name += "x";
  EXPECT_FALSE(at::equal(a, Range(renamed, 5, 0, unit.num_elements)));
}

}  // namespace
}  // namespace motley::engine
