// A device's own link with a hand-over through a slow NIC and a collective inside the node at once.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/worker/engine/transport/ranks.h"

namespace motley::engine {
namespace {

constexpr double kLinkRate = 7.5e6, kSlowNic = 0.375e6, kFastNic = 3e6;
constexpr int64_t kSummed = 12288, kHandedOver = 49152, kSums = 30;  // elements, bytes; a hand-over takes 131 ms, a sum 7

// Ranks 0 and 1 of a node sum again and again, while rank 2 of another one, whose NIC is faster, hands over to rank 0, `times`
// times. How long all sums take.
absl::Duration SumsBeside(int times) {
  const int fd = memfd_create("links", 0);
  absl::Duration sums;  // rank 0's
  FakeKv kv;
  OnRanks(3, [&](int rank) {
    FakeHost host(kv);
    auto links = LinkClock::Map(rank < 2 ? fd : -1);
    CommunicatorOptions options;
    options.rank = rank;
    options.device.link_bytes_per_second = kLinkRate;
    options.device.node_link_bytes_per_second = rank < 2 ? kSlowNic : kFastNic;
    options.devices = {DeviceId("a/gpu0"), DeviceId("a/gpu1"), DeviceId("b/gpu0")};
    options.data_addresses = {"127.0.0.1", "127.0.0.1", "127.0.0.1"};
    options.groups = {{0, 1}};
    EverybodyHandsOver(options);
    auto connected = ConnectCommunicator(options, host, **links);
    ASSERT_TRUE(connected.ok()) << connected.status();
    Communicator& communicator = **connected;
    const absl::Duration start = CommonStart(communicator);
    std::thread hand_overs([&] {
      std::string data(kHandedOver, 'x');
      for (int i = 0; i < times && rank != 1; ++i) {
        EXPECT_EQ(rank == 0 ? communicator.Receive(2, data.data(), kHandedOver) : communicator.Send(0, data.data(), kHandedOver),
                  absl::OkStatus());
      }
    });
    TransferPacer& pacer = communicator.collective_pacer();
    std::vector<float> array(kSummed, 1);
    absl::Duration end = start;
    for (int64_t i = 0; i < kSums && rank < 2; ++i) {
      pacer.Begin(end);
      EXPECT_EQ(communicator.AllReduce(0, array.data(), DType::kFloat32, kSummed), absl::OkStatus());
      pacer.End(std::nullopt);
      end = pacer.end();
    }
    if (rank == 0) sums = end - start;
    hand_overs.join();
  });
  close(fd);
  return sums;
}

// By the schedule, so that a busy host makes no difference: the hand-over needs a twentieth of the link, and is on it for longer.
TEST(SharedLink, ASumInsideTheNodeDoesNotWaitForAHandOverThatTheNicHoldsUp) {
  const absl::Duration alone = SumsBeside(0), beside = SumsBeside(2);
  EXPECT_LE(beside, 1.3 * alone);
}

}  // namespace
}  // namespace motley::engine
