#include "coordinator/client/echoed_arguments.h"

#include <gtest/gtest.h>

#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

const std::string kLong(130'000, 'x');
const std::string kCut = std::string(200, 'x') + "... (130000 bytes)";

TEST(EchoedArgumentsTest, ALongArgumentIsCutWhereverItStands) {
  EXPECT_EQ(WithShortArguments("cannot read '/home/" + kLong + "': too long: " + kLong, {"submit", kLong}),
            "cannot read '/home/" + kCut + "': too long: " + kCut);
  for (const std::string& argument : {"--out=" + kLong, "training.steps=" + kLong, "-o" + kLong}) {
    EXPECT_EQ(WithShortArguments("what is '" + kLong + "'?", {argument}), "what is '" + kCut + "'?") << argument.substr(0, 20);
  }
  EXPECT_EQ(WithShortArguments("no key " + kLong, {kLong + "=1"}), "no key " + kCut);
  EXPECT_EQ(WithShortArguments("no job a\\n" + kLong, {"a\n" + kLong}),
            "no job a\\n" + std::string(198, 'x') + "... (130002 bytes)")
      << "others clean what they repeat";
}

TEST(EchoedArgumentsTest, WhatIsShortStaysAsItIs) {
  const std::string most(200, 'y');
  EXPECT_EQ(WithShortArguments("no job " + most, {most}), "no job " + most);
  EXPECT_EQ(WithShortArguments("no job a", {}), "no job a");
}

TEST(EchoedArgumentsTest, NoCommandRepeatsAllOfIt) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_RUNNING);
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{{kLong},
                                                                                         {"status", kLong},
                                                                                         {"submit", kLong},
                                                                                         {"config", "check", kLong},
                                                                                         {"export", "j", "--out", kLong},
                                                                                         {"list", "--limit", kLong},
                                                                                         {"wait", "j", "--timeout", kLong},
                                                                                         {"-o" + kLong, "list"},
                                                                                         {"list", "--" + kLong},
                                                                                         {"status", "j", kLong}}) {
    const Ran ran = Motley(fake, arguments);
    EXPECT_NE(ran.code, 0);
    EXPECT_LT(ran.err.size(), 2000u) << arguments[0].substr(0, 20);
    EXPECT_FALSE(ran.err.empty());
  }
}

}  // namespace
}  // namespace motley::client
