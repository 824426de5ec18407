#include "coordinator/state/witness.h"

#include <gmock/gmock.h>

namespace motley::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class WitnessTest : public testing::Test {
 protected:
  void Member(const std::string& name, std::vector<std::string> coordinators) {
    state_.members[NodeName(name)].coordinators = std::move(coordinators);
  }
  void Come(const std::string& name) { state_.nodes[NodeName(name)].connected = true; }
  ClusterState state_;
};

TEST_F(WitnessTest, WhereNoOtherMachineMayBeItNobodyIsWaitedFor) {
  EXPECT_EQ(WhyNoWitness(state_), "");
  Member("b", {"10.0.0.1:7073"});
  Member("c", {});
  EXPECT_EQ(WhyNoWitness(state_), "");
}

TEST_F(WitnessTest, AMemberHasToBeHere) {
  Member("b", {"10.0.0.1:7073", "10.0.0.2:7073"});
  Member("c", {"10.0.0.1:7073"});
  Come("a");  // by this machine's own socket
  EXPECT_THAT(WhyNoWitness(state_), AllOf(HasSubstr("10.0.0.1:7073, 10.0.0.2:7073"), HasSubstr("waits for one of b, c")));
  Come("c");
  EXPECT_EQ(WhyNoWitness(state_), "");
  state_.nodes.at(NodeName("c")).connected = false;
  EXPECT_NE(WhyNoWitness(state_), "");
}

}  // namespace
}  // namespace motley::coordinator
