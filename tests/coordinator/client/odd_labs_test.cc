// Labs at the edges of what can be planned, and requests that leave nothing of one: each command answers or says what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/coordinator/client/offline_fixture.h"

namespace motley::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class OddLabsTest : public OfflineTest {
 protected:
  // The fixture's files with another cluster.
  void Use(const std::string& toml) { folder_.Write("mixed.toml", toml); }
  std::vector<Ran> AskAll(const std::vector<std::string>& more) const {
    std::vector<std::string> explained = more;
    explained.push_back("--explain");
    return {Run(With("plan", more)), Run(With("estimate", more)), Run(With("plan", explained))};
  }
  void ExpectRefused(const std::vector<std::string>& more, int code, const std::string& why) const {
    for (const Ran& ran : AskAll(more)) {
      EXPECT_EQ(ran.code, code) << ran.out;
      EXPECT_EQ(ran.err, absl::StrCat("motley: ", why, "\n"));
      EXPECT_EQ(ran.out, "");
    }
  }
};

TEST_F(OddLabsTest, OneCard) {
  Use("name = \"small\"\n[[node]]\nname = \"a\"\ngpus = [\"RTX-4090\"]\n");
  const std::vector<Ran> answers = AskAll({"--budget-nodes", "1e4"});
  for (const Ran& ran : answers) EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(answers[0].out, HasSubstr("compute: the one device at its best rate)"));
  EXPECT_THAT(answers[1].out, HasSubstr("fewest cards that hold it: 1 of 1: RTX-4090 a/gpu0"));
  EXPECT_THAT(answers[2].out, HasSubstr("one more RTX-4090: "));
  for (const char* absent :
       {"links inside", "a network half as fast", "\n  without ", "best single machine", "split", "zero_bubble"})
    EXPECT_THAT(answers[2].out, Not(HasSubstr(absent)));
}

TEST_F(OddLabsTest, SixtyFourNodes) {
  Use("name = \"large\"\n[[node]]\nname = \"a\"\ncount = 64\ngpus = [\"RTX-4090\"]\nnic_gbit_per_second = 10\n");
  const std::vector<std::string> cheap = {"--strategy", "even", "--global-batch", "64", "--budget-nodes", "1e3"};
  std::vector<std::string> all = {"plan", "--cluster", cluster_, "--model", model_, "--seq-len", "128"};
  all.insert(all.end(), cheap.begin(), cheap.end());
  const Ran plan = Run(all);
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("  ranks 0-63 a1/gpu0,a2/gpu0,"));
  all.push_back("--explain");
  const Ran explained = Run(all);
  EXPECT_EQ(explained.code, 0) << explained.err;
  EXPECT_THAT(explained.out, HasSubstr("  without any one of a1 to a64 (64 alike): ")) << "asked once";
  all.pop_back();
  all[0] = "estimate";
  const Ran estimate = Run(all);
  EXPECT_EQ(estimate.code, 0) << estimate.err;
  EXPECT_THAT(estimate.out, HasSubstr(": fits\n"));
}

TEST_F(OddLabsTest, NodesWithoutANetworkFigure) {
  Use("name = \"islands\"\n[[node]]\nname = \"a\"\ncount = 3\ngpus = [\"RTX-4090\"]\n");
  for (const Ran& ran : AskAll({})) {
    EXPECT_EQ(ran.code, 65) << ran.out;
    EXPECT_THAT(ran.err, HasSubstr("mixed.toml:2: node.nic_gbit_per_second: no link between nodes 'a1' and 'a2'; give nic_gbit"));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << "once: " << ran.err;
  }
}

TEST_F(OddLabsTest, ExcludesThatLeaveNothing) {
  ExpectRefused({"--exclude", "n1,n2"}, 65, "every device is excluded; leave at least one");
  ExpectRefused({"--exclude", "n1", "--exclude", "n2/gpu0, n2/gpu1"}, 65, "every device is excluded; leave at least one");
  ExpectRefused({"--exclude", "n1", "--pin", "stage0=n1"}, 65, "pin 'stage0=n1' contradicts exclude: n1 is excluded");
  ExpectRefused({"--exclude", "n3"}, 66, "exclude 'n3': the cluster mixed has no such node or device; did you mean 'n1'?");
}

TEST_F(OddLabsTest, ACardIsNoPlace) {
  ExpectRefused({"--exclude", "p40"}, 66, "exclude 'p40': the cluster mixed has no such node or device; it is a card, of n2");
}

TEST_F(OddLabsTest, PinsThatLeaveNothing) {
  ExpectRefused({"--pin", "stage0=n1", "--pin", "stage2=n2"}, 65,
                "the pins name stage2 and leave no device for stage1: pin fewer devices, or one of them to it");
  ExpectRefused({"--pin", "stage4=n1"}, 65,
                "pin 'stage4=n1': there are at most as many stages as devices, 4; the first is stage0");
  ExpectRefused({"--pin", "stage0=n1", "--pin", "stage1=n1/gpu0"}, 65,
                "pins contradict each other: n1/gpu0 cannot be in stage0 and in stage1");
  const Ran free = Plan({"--pin", "stage0=n1", "--pin", "stage2=n2/gpu0"});
  EXPECT_EQ(free.code, 0) << "a device is free for stage1: " << free.err;
}

}  // namespace
}  // namespace motley::client
