#include "common/model/model_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace motley {
namespace {

using ::testing::HasSubstr;

ModelShape Shape(const char* name, int64_t intermediate, int64_t vocabulary) {
  ModelShape shape = *ModelFlavor(name, "debug");
  shape.num_layers = 1;
  shape.intermediate_size = intermediate;
  shape.vocab_size = vocabulary;
  return shape;
}

TEST(ModelSliceTest, SharesAreWholeParts) {
  ModelShape shape = Shape("gpt2", 256, 256);  // four heads
  const std::vector<double> shares = {0.7495, 0.2505};
  EXPECT_EQ(*SlicesOf(shape, shares), (std::vector<ModelSlice>{{0, 3, 4}, {3, 4, 4}}));
  EXPECT_EQ(*SlicesOf(shape, std::vector<double>{1}), (std::vector<ModelSlice>{{0, 1, 1}}));
}

TEST(ModelSliceTest, RefusesWhatCannotBeCut) {
  const ModelShape shape = Shape("gpt2", 256, 256);
  const auto message = [](const ModelShape& s, std::vector<double> shares) {
    return std::string(SlicesOf(s, shares).status().message());
  };
  EXPECT_THAT(message(shape, {0.6, 0.4}), HasSubstr("tp_share 0.6, 0.4 cut a key-value head"));
  EXPECT_THAT(message(shape, {0.6, 0.4}), HasSubstr("nearest are 0.5, 0.5"));
  EXPECT_THAT(message(shape, {0.98, 0.02}), HasSubstr("nearest are 0.75, 0.25"));
  EXPECT_THAT(message(shape, {0.2, 0.2, 0.2, 0.2, 0.2}), HasSubstr("over 5 ranks, the model has 4 key-value heads"));
  EXPECT_EQ(NumParts(Shape("olmo2", 256, 256)), 1);
  EXPECT_THAT(message(Shape("olmo2", 256, 256), {0.5, 0.5}),
              HasSubstr("a layer of olmo2 has norms over all of its heads together, so no rank computes some of them"));
  EXPECT_EQ(NumParts(Shape("gemma3", 256, 256)), 1);
  EXPECT_THAT(message(Shape("gemma3", 256, 256), {0.5, 0.5}),
              HasSubstr("a layer of gemma3_text has norms over all of its heads"));
  EXPECT_TRUE(SlicesOf(Shape("olmo2", 256, 256), std::vector<double>{1}).ok());
  EXPECT_THAT(message(Shape("gpt2", 256, 3), {0.5, 0.5}), HasSubstr("3 tokens, fewer than its 4"));
}

// What the slices of a unit's ranks have is each divided element once, and every other one in all of them; and a slice has the
// layout of its shape.
TEST(ModelSliceTest, RunsCoverEveryElement) {
  for (const char* name : {"gpt2", "llama3", "qwen2", "qwen3", "phi4"}) {
    const ModelShape shape = Shape(name, 83, 101);
    const int64_t parts = NumParts(shape);
    std::vector<ModelSlice> slices = {{0, 1, parts}, {1, parts, parts}};
    const std::vector<UnitSpec> layout = ParameterLayout(shape);
    for (size_t u = 0; u < layout.size(); ++u) {
      std::vector<int> times(static_cast<size_t>(layout[u].num_elements), 0);
      for (const ModelSlice& slice : slices) {
        const UnitSpec own = ParameterLayout(ShapeOf(shape, slice))[u];
        int64_t in_slice = 0;
        for (const SliceRun& run : RunsOf(layout[u], slice)) {
          EXPECT_EQ(run.in_slice, in_slice);
          in_slice += run.elements;
          for (int64_t i = 0; i < run.elements; ++i) ++times[static_cast<size_t>(run.in_unit + i)];
        }
        EXPECT_EQ(in_slice, own.num_elements) << name << " unit " << u;
        EXPECT_EQ(own.num_elements - own.divided_elements, layout[u].num_elements - layout[u].divided_elements);
      }
      for (int64_t i = 0; i < layout[u].num_elements; ++i) {
        ASSERT_EQ(times[static_cast<size_t>(i)], i < layout[u].divided_elements ? 1 : 2)
            << name << " unit " << u << " element " << i;
      }
    }
    EXPECT_EQ(FirstToken(shape, slices[1]), 101 / parts);
  }
}

// Fused queries, keys and values are three runs; the whole model is one.
TEST(ModelSliceTest, RunsAreFew) {
  const ModelShape shape = Shape("gpt2", 256, 256);
  const UnitSpec layer = ParameterLayout(shape)[1];
  EXPECT_EQ(RunsOf(layer, {1, 2, 4}).size(), 11u);  // 3 and 3 of qkv and its bias, out, up, its bias, down; then the rest
  EXPECT_EQ(RunsOf(layer, ModelSlice()), (std::vector<SliceRun>{{0, 0, layer.num_elements}}));
}

}  // namespace
}  // namespace motley
