#include "common/job/job_input.h"

#include <gtest/gtest.h>

#include <string>

namespace motley {
namespace {

const std::string kId(64, 'a');

TEST(JobInputTest, APathNamesIdAndName) {
  const JobInput input{kId, "tokens.txt"};
  EXPECT_EQ(PathOf(input), "input:" + kId + "/tokens.txt");
  EXPECT_EQ(ParseInput(PathOf(input)), input);
  for (const std::string& path :
       {std::string("/data/tokens.txt"), "input:" + kId, "input:" + kId + "/", "input:" + kId + "/a/b", "input:" + kId + "/..",
        "input:" + std::string(63, 'a') + "/a", "input:" + std::string(64, 'A') + "/a", "input:" + std::string(64, 'g') + "/a",
        "input:" + kId + "/a\nb", "Input:" + kId + "/a"}) {
    EXPECT_EQ(ParseInput(path), std::nullopt) << path;
  }
}

TEST(JobInputTest, HereIsBeforeAPathOfTheMachineThatSubmits) {
  EXPECT_EQ(HerePath("here:/home/me/x"), "/home/me/x");
  EXPECT_EQ(HerePath("here:"), "");
  EXPECT_EQ(HerePath("/here:x"), std::nullopt);
  EXPECT_EQ(HerePath(PathHere("a b")), "a b");
}

TEST(JobInputTest, AJobHasEachOnce) {
  JobConfig config;
  config.data.path = PathOf({kId, "a"});
  EXPECT_EQ(InputsOf(config).size(), 1u);
  config.data.validation_path = config.data.path;
  EXPECT_EQ(InputsOf(config).size(), 1u);
  config.data.validation_path = PathOf({std::string(64, 'b'), "a"});
  EXPECT_EQ(InputsOf(config).size(), 2u);
  config.data.path = "/data";
  EXPECT_EQ(InputsOf(config), std::vector<JobInput>({{std::string(64, 'b'), "a"}}));
}

}  // namespace
}  // namespace motley
