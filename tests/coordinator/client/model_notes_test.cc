// Commands that price a model whose config says more than a shape.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/common/base/temp_folder.h"
#include "tests/common/model/published_configs.h"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ModelNotes, WhatThePriceLeavesOutIsWarnedOfOnce) {
  const TempFolder folder;
  const std::string model = folder.Write("config.json", kGpt2Config);
  const std::vector<std::string> setting = {"--cluster", "cephalo-a", "--model", model};
  const auto with = [&](std::vector<std::string> command, const std::vector<std::string>& more) {
    command.insert(command.end(), setting.begin(), setting.end());
    command.insert(command.end(), more.begin(), more.end());
    return command;
  };
  const auto plan = with({"plan"}, {"--strategy", "even", "--global-batch", "32", "--seq-len", "512"});
  std::vector<std::string> as_json = plan;
  as_json.insert(as_json.end(), {"-o", "json"});
  const Ran written = MotleyAlone(as_json);
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(json::parse(written.out)["report"]["warnings"].size(), 1u);
  const std::string file = folder.Write("plan.json", written.out);
  for (const std::vector<std::string>& command :
       {plan, with({"estimate"}, {}), with({"simulate", file}, {}), std::vector<std::string>{"models", model}}) {
    const Ran ran = MotleyAlone(command);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.err,
                StartsWith(absl::StrCat("motley: warning: ", model, ": resid_pdrop 0.1, embd_pdrop 0.1, attn_pdrop 0.1:")));
    EXPECT_THAT(ran.err, EndsWith("; Motley trains without dropout\n"));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST(ModelNotes, AnEstimateSaysThemInJson) {
  const TempFolder folder;
  const std::string model = folder.Write("config.json", kGpt2Config);
  const Ran ran = MotleyAlone({"estimate", "--cluster", "cephalo-a", "--model", model, "-o", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["warnings"].size(), 1u);
}

TEST(ModelNotes, PublishedModelsArePlanned) {
  const TempFolder folder;
  for (const PublishedConfig& config : kPublishedConfigs) {
    const std::string model = folder.Write("config.json", config.text);
    const Ran ran = MotleyAlone({"plan", "--cluster", "cephalo-b", "--model", model, "--global-batch", "32", "--seq-len", "1024",
                                 "--dtype", "bf16", "--strategy", "cephalo"});
    EXPECT_EQ(ran.code, 0) << config.name << ": " << ran.err;
    EXPECT_THAT(ran.out, HasSubstr(" a step, ")) << config.name;
  }
}

TEST(ModelNotes, WhatIsWrongOfAConfigIsSaidAtOnce) {
  const TempFolder folder;
  const std::string model =
      folder.Write("config.json", R"({"model_type": "gpt2", "n_layer": 0, "n_embd": "wide", "n_head": 1.5})");
  const Ran ran = MotleyAlone({"estimate", "--cluster", "cephalo-a", "--model", model});
  EXPECT_EQ(ran.code, 65);
  for (const char* problem :
       {": n_embd must be an integer", ": n_layer must be at least 1, got 0", ": n_head must be an integer"}) {
    EXPECT_THAT(ran.err, HasSubstr(absl::StrCat(model, problem)));
  }
}

}  // namespace
}  // namespace motley::client
