#include "common/program/hand_over_peers.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(HandOverPeers, AreThoseOfBothPrograms) {
  Program training, evaluation;
  SendActivation to;
  to.peer = 3;
  ReceiveGradient from;
  from.peer = 3;
  training.instructions = {{to, {}}, {from, {}}, {to, {}}};
  SendGradient back;
  back.peer = 1;
  ReceiveActivation more;
  more.peer = 4;
  evaluation.instructions = {{back, {}}, {more, {}}, {OptimizerStep(), {}}};
  const HandOverPeers peers = HandOverPeersOf(training, evaluation);
  EXPECT_EQ(peers.sends_to, (std::set<int>{1, 3}));
  EXPECT_EQ(peers.receives_from, (std::set<int>{3, 4}));
}

}  // namespace
}  // namespace motley
