#include "common/session/rendezvous_key.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(RendezvousKey, SaysWhoMaySetIt) {
  EXPECT_EQ(RendezvousKey("train/7/", "peer", 3), "train/7/peer/3");
  EXPECT_EQ(OwnerOfKey(RendezvousKey("train/7/", "peer", 3)), 3);
  EXPECT_EQ(OwnerOfKey(RendezvousKey("profile/7/", "nccl", 0, "hand-over-0-5")), 0);
  for (const char* none : {"", "train", "train/7/peer", "train/7/peer/", "train/7/peer/x", "train/7/peer/-1", "train/peer/1x"}) {
    EXPECT_EQ(OwnerOfKey(none), std::nullopt) << none;
  }
}

}  // namespace
}  // namespace motley
