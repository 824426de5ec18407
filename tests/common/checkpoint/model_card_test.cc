#include "common/checkpoint/model_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "common/checkpoint/checkpoint.h"
#include "common/weights/base_model.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

CheckpointManifest SomeManifest() {
  return {.job = "chats", .job_uid = JobUid(std::string(32, '1')), .step = 20, .model = TinyLlama(), .data_digest = "d1"};
}

BaseModel SomeBase(const std::string& card) {
  BaseModel base{{{"model.norm.weight", "model.norm.weight", DType::kFloat32}, {"a", "b", DType::kBFloat16}}, {}};
  if (!card.empty()) base.files.push_back({kCardName, card});
  return base;
}

TEST(ModelCardTest, SaysAllThatIsKnown) {
  CardFacts facts = {.date = "2026-11-28",
                     .job_name = "tuned on our chats",
                     .base_model = "Qwen/Qwen2.5-0.5B",
                     .data = "chats",
                     .validation_data = "held-out",
                     .seq_len = 100,
                     .global_batch_size = 16};
  facts.losses = {{10, {3.5, 2.0}}, {20, {2.25, {}}}, {30, {1.5, 1.0}}};
  EXPECT_EQ(ModelCard(SomeManifest(), SomeBase("---\nlanguage: en\nlicense: apache-2.0\n---\nlicense: not here\n"), facts),
            R"(---
base_model: "Qwen/Qwen2.5-0.5B"
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
tags:
- motley
- llama
---

# tuned on our chats

Made by Motley.

| | |
|---|---|
| job | chats, uid 11111111111111111111111111111111 |
| exported | 2026-11-28 |
| base model | Qwen/Qwen2.5-0.5B |
| family | llama, 5288 parameters |
| type of the weights | BF16, F32; trained in float32 |
| data | chats, digest d1 |
| validation data | held-out |
| steps | 20 |
| tokens trained | 32000 (a step has 16 samples of 100) |
| training loss | 2.25 at step 20 |
| validation loss | 2 (perplexity 7.38906) at step 10 |
| license | as the base's |

The base's own card is [README.base.md](README.base.md).
)");
}

TEST(ModelCardTest, WhatIsNotKnownIsLeftOut) {
  CheckpointManifest manifest = SomeManifest();
  manifest.job_uid = JobUid();
  EXPECT_EQ(ModelCard(manifest, {}, {}), R"(---
library_name: transformers
pipeline_tag: text-generation
tags:
- motley
- llama
---

# chats

Made by Motley.

| | |
|---|---|
| job | chats |
| family | llama, 5288 parameters |
| type of the weights | F32; trained in float32 |
| data | digest d1 |
| steps | 20 |
)");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string card = ModelCard(manifest, SomeBase(""), {.losses = {{1, {4, 3.0}}, {2, {nan, nan}}, {21, {1, 1.0}}}});
  EXPECT_THAT(card, AllOf(HasSubstr("| training loss | 4 at step 1 |"), HasSubstr("at step 1 |\n| license | as the base's |"),
                          Not(HasSubstr("README.base.md")), Not(HasSubstr("license:"))));
}

TEST(ModelCardTest, NamesBreakNeitherYamlNorTheTable) {
  const std::string card = ModelCard(SomeManifest(), {}, {.job_name = "a\n# <b>|", .base_model = "x: \"y\"\n---", .data = "d|e"});
  EXPECT_THAT(card, AllOf(HasSubstr("base_model: \"x: \\\"y\\\"\\n---\"\n"), HasSubstr("\n# a\\n# &lt;b>\\|\n"),
                          HasSubstr("| data | d\\|e, digest d1 |")));
}

// Only what YAML has in one line, and only before the text.
TEST(ModelCardTest, TakesOverALicenseInALineAlone) {
  const auto card = [](const std::string& base) { return ModelCard(SomeManifest(), SomeBase(base), {}); };
  EXPECT_THAT(card("---\r\nlicense: other\r\nlicense_name: llama3.2\r\nlicense_link: LICENSE\r\n---\r\n"),
              HasSubstr("---\nlicense: other\nlicense_name: llama3.2\nlicense_link: LICENSE\nlibrary_name"));
  const char* const none[] = {
      "license: mit\n",           "# A\n---\nlicense: mit\n---\n", "---\nlicense:\n- mit\n---\n", "---\nlicense: \n---",
      "---\nlicense: [mit]\n---", "---\nlicense: >-\n  mit\n---",  "---\nlicense: \"mit\n---",    "---"};
  for (const char* base : none) {
    EXPECT_THAT(card(base), Not(HasSubstr("license:"))) << base;
  }
}

}  // namespace
}  // namespace motley
