// Windows of attention as a config.json has them, and when two models with windows are one.
#include "common/model/hf_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "common/model/model.h"
#include "tests/common/model/small_config.h"

namespace motley {
namespace {

// As transformers 5.23 reads them: each row was looked up there.
TEST(HfWindowsTest, WindowsAreThoseOfTransformers) {
  using Windows = std::vector<int64_t>;
  const std::tuple<const char*, const char*, Windows> rows[] = {
      {"mistral", "", {4096, 4096}},
      {"mistral", R"(, "sliding_window": 64, "use_sliding_window": false)", {64, 64}},
      {"mistral", R"(, "sliding_window": null)", {0, 0}},
      {"phi3", R"(, "sliding_window": 64)", {64, 64}},
      {"phi3", "", {0, 0}},
      {"qwen2", R"(, "sliding_window": 64)", {0, 0}},
      {"qwen2", R"(, "sliding_window": 64, "use_sliding_window": true)", {0, 0}},
      {"qwen2", R"(, "use_sliding_window": true, "max_window_layers": 1)", {0, 4096}},
      {"qwen3", R"(, "sliding_window": 64, "use_sliding_window": true, "max_window_layers": 0)", {64, 64}},
      {"qwen3",
       R"(, "sliding_window": 64, "use_sliding_window": true, "layer_types": ["sliding_attention", "full_attention"])",
       {64, 0}},
      {"qwen3", R"(, "sliding_window": null, "use_sliding_window": true, "max_window_layers": 0)", {0, 0}},
      {"smollm3", R"(, "sliding_window": 64, "use_sliding_window": true, "no_rope_layers": [1, 0])", {0, 64}},
      {"smollm3",
       R"(, "sliding_window": 64, "use_sliding_window": true, "layer_types": ["sliding_attention", "full_attention"])",
       {64, 0}},
      {"smollm3", R"(, "sliding_window": 64, "no_rope_layers": [1, 0])", {0, 0}},
      {"gemma3_text", "", {4096, 4096}},
      {"gemma3_text", R"(, "sliding_window": 64, "sliding_window_pattern": 2, "use_sliding_window": false)", {64, 0}},
      {"gemma3_text", R"(, "sliding_window": 64, "layer_types": ["full_attention", "sliding_attention"])", {0, 64}},
      {"gemma3_text", R"(, "layer_types": ["full_attention", "full_attention"])", {0, 0}},
  };
  for (const auto& [type, keys, windows] : rows) {
    for (const int64_t seq_len : {0, 32, 8192}) {  // a shape says its window, whether it leaves tokens out or not
      const auto shape = ParseHfConfig(With(type, keys), "c", seq_len);
      ASSERT_TRUE(shape.ok()) << type << keys << shape.status();
      EXPECT_EQ((Windows{shape->KindOf(0).window, shape->KindOf(1).window}), windows) << type << keys;
      EXPECT_EQ(*ParseHfConfig(ToHfConfig(*shape), "c"), *shape) << ToHfConfig(*shape);
    }
  }
  EXPECT_THAT(ToHfConfig(*ParseHfConfig(With("mistral", ""), "c")), testing::HasSubstr("MistralForCausalLM"));
  EXPECT_THAT(ToHfConfig(*ParseHfConfig(With("mistral", R"(, "sliding_window": null)"), "c")),
              testing::HasSubstr("LlamaForCausalLM"));
}

// As transformers 5.23 reads them: each row was looked up there. Of the layer with a window, then of that without.
TEST(HfWindowsTest, Gemma3HasTwoBasesOfRotaryPositions) {
  const std::string types = R"(, "sliding_window": 64, "sliding_window_pattern": 2)";
  const std::string both = R"("rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 5.0},
                              "sliding_attention": {"rope_type": "default", "rope_theta": 6.0}})";
  const std::tuple<std::string, double, double> rows[] = {
      {"", 10000, 1000000},
      {R"(, "rope_theta": 7.0, "rope_local_base_freq": 8.0, "rope_scaling": null)", 8, 7},
      {", " + both, 6, 5},
      {R"(, "rope_theta": 7.0, "rope_local_base_freq": 8.0, )" + both, 6, 5},
      {R"(, "rope_local_base_freq": 8.0, "rope_parameters": {"full_attention": {"rope_theta": 5.0}})", 8, 5},
      {R"(, "rope_theta": 7.0, "rope_local_base_freq": 7.0)", 7, 7},
  };
  for (const auto& [keys, of_window, of_full] : rows) {
    const auto shape = ParseHfConfig(With("gemma3_text", types + keys), "c");
    ASSERT_TRUE(shape.ok()) << keys << shape.status();
    const auto base = [&](int64_t layer) {
      const double own = shape->KindOf(layer).rope_theta;
      return own == 0 ? shape->rope_theta : own;
    };
    EXPECT_EQ(base(0), of_window) << keys;
    EXPECT_EQ(base(1), of_full) << keys;
    EXPECT_EQ(*ParseHfConfig(ToHfConfig(*shape), "c"), *shape) << ToHfConfig(*shape);
  }
  EXPECT_EQ(ParseHfConfig(With("gemma3_text", R"(, "head_dim": 16)"), "c")->query_scalar, 256) << "left out";
  EXPECT_EQ(ParseHfConfig(With("gemma3_text", R"(, "head_dim": 16, "query_pre_attn_scalar": 16)"), "c")->query_scalar, 0);
}

// Of a checkpoint that was made before windows were read, too.
TEST(HfWindowsTest, AWindowThatHoldsTheSequencesIsNoOtherModel) {
  const ModelShape full = *ModelFlavor("llama3", "debug");
  ModelShape windowed = full, other = full;
  windowed.layer_kinds = {{.window = 64}, {.window = 64}};
  other.layer_kinds = {{.window = 64}, {}};
  EXPECT_TRUE(SameModel(full, windowed, 64));
  EXPECT_FALSE(SameModel(full, windowed, 65));
  EXPECT_FALSE(SameModel(windowed, other, 65));
  EXPECT_TRUE(SameModel(windowed, other, 64));
  EXPECT_FALSE(SameModel(full, *ModelFlavor("qwen2", "debug"), 64));
  EXPECT_THAT(ModelWords(full), testing::EndsWith(" parameters"));
  EXPECT_THAT(ModelWords(windowed), testing::EndsWith(" parameters and a window of 64 tokens in 2 of its layers"));
}

}  // namespace
}  // namespace motley
