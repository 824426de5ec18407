// What `motley plan --profiles` says of entries that decide nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/common/base/temp_folder.h"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Entry(const std::string& model, const std::string& card) {
  return absl::StrCat(R"({"model": ")", model, R"(", "card": ")", card,
                      R"(", "seq_len": 512, "dtype": "float32", "samples": [1, 2], "forward_seconds": [0.01, 0.02],)",
                      R"( "backward_seconds": [0.02, 0.04]})");
}

TEST(ProfileWarnings, EntriesThatCanDecideNothingAreNamedWithTheNearest) {
  const TempFolder folder;
  const auto plan = [&](const std::string& entries) {
    const std::string profile = folder.Write("p.json", absl::StrCat(R"({"motley_profile": 1, "layers": [)", entries, "]}"));
    return MotleyAlone({"plan", "--cluster", "cephalo-a", "--model", "gpt2-124m", "--global-batch", "16", "--seq-len", "512",
                        "--strategy", "even", "--profiles", profile});
  };
  const std::string good = Entry("gpt2-124m", "L4") + ",";
  const Ran card = plan(good + Entry("gpt2-124m", "L44"));
  EXPECT_EQ(card.code, 0) << card.err;
  EXPECT_THAT(card.err,
              HasSubstr("(gpt2-124m/L44/512/float32) decides nothing: card 'L44' is neither the cluster's nor in the device "
                        "table; did you mean 'L4'?"));
  const Ran model = plan(good + Entry("gtp2-124m", "L4") + "," + Entry("gtp2-124m", "P40"));
  EXPECT_THAT(model.err, HasSubstr("and 1 more decide nothing: model 'gtp2-124m' is not known; did you mean 'gpt2-124m'?"));
  const Ran other = plan(good + Entry("llama-7b", "H100"));
  EXPECT_THAT(other.err, Not(HasSubstr("nothing:"))) << "another model and card of the tables can be compared";
}

}  // namespace
}  // namespace motley::client
