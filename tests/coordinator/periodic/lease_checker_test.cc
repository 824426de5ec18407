#include "coordinator/periodic/lease_checker.h"

#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

using LeaseChecker = CoreTest;

TEST_F(LeaseChecker, ASilentNodeIsLost) {
  AddNode("n1");
  CheckLeases(*core_);
  for (int i = 0; i < 41; ++i) {
    clock_.Advance(absl::Milliseconds(250));
    CheckLeases(*core_);
  }
  EXPECT_FALSE(core_->state.nodes.at(NodeName("n1")).connected);
}

TEST_F(LeaseChecker, TheSilenceOfACoordinatorThatStoodStillIsItsOwn) {
  AddNode("n1");
  CheckLeases(*core_);
  clock_.Advance(absl::Seconds(30));
  CheckLeases(*core_);
  EXPECT_TRUE(core_->state.nodes.at(NodeName("n1")).connected);
  for (int i = 0; i < 41; ++i) {
    clock_.Advance(absl::Milliseconds(250));
    CheckLeases(*core_);
  }
  EXPECT_FALSE(core_->state.nodes.at(NodeName("n1")).connected) << "the lease began anew, and ends";
}

TEST_F(LeaseChecker, AMessageThatWaitsForTheLoopIsNoSilence) {
  Link& link = AddNode("n1");
  link.unread = true;
  CheckLeases(*core_);
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(absl::Milliseconds(250));
    CheckLeases(*core_);
  }
  EXPECT_TRUE(core_->state.nodes.at(NodeName("n1")).connected);
}

}  // namespace
}  // namespace motley::coordinator
