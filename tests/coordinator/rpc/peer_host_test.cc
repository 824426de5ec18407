#include "coordinator/rpc/peer_host.h"

#include <gtest/gtest.h>

namespace motley::coordinator {
namespace {

TEST(HostOfPeer, IsTheAddressWithoutThePort) {
  EXPECT_EQ(HostOfPeer("ipv4:10.0.0.5:4711"), "10.0.0.5");
  EXPECT_EQ(HostOfPeer("ipv6:[fd00::5]:4711"), "fd00::5");
  EXPECT_EQ(HostOfPeer("ipv6:%5B::1%5D:4711"), "::1");
  EXPECT_EQ(HostOfPeer("ipv6:[::ffff:10.0.0.5]:4711"), "10.0.0.5");
  for (const char* none : {"", "unix:/run/motley/coordinator.sock", "unix:", "fd:7", "ipv4:10.0.0.5"}) {
    EXPECT_EQ(HostOfPeer(none), "") << none;
  }
}

}  // namespace
}  // namespace motley::coordinator
