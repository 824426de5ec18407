#include "worker/engine/transport/link_clock.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>

#include "worker/engine/transport/link_pacer.h"

namespace motley::engine {
namespace {

TEST(LinkClock, TransfersQueueAndDirectionsAreApart) {
  auto clock = LinkClock::Map(-1);
  ASSERT_TRUE(clock.ok());
  EXPECT_EQ((*clock)->Reserve(1, Direction::kEgress, 100, 1000).end_ns, 1100);
  EXPECT_EQ((*clock)->Reserve(1, Direction::kEgress, 100, 1000).end_ns, 1200);
  EXPECT_EQ((*clock)->Reserve(1, Direction::kIngress, 100, 1000).end_ns, 1100);
  EXPECT_EQ((*clock)->Reserve(1, Direction::kEgress, 100, 5000).end_ns, 5100);
}

TEST(LinkClock, IsSharedThroughTheDescriptor) {
  const int fd = memfd_create("link-clock-test", 0);
  ASSERT_GE(fd, 0);
  auto one = LinkClock::Map(fd), other = LinkClock::Map(fd);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ((*one)->Reserve(LinkClock::kNic, Direction::kEgress, 100, 1000).end_ns, 1100);
  EXPECT_EQ((*other)->Reserve(LinkClock::kNic, Direction::kEgress, 100, 1000).end_ns, 1200);
  close(fd);
}

TEST(LinkClock, BadDescriptorIsAnError) { EXPECT_EQ(LinkClock::Map(99999).status().code(), absl::StatusCode::kInternal); }

DeviceDescription Device(double link, double nic) {
  DeviceDescription device;
  device.link_bytes_per_second = link;
  device.node_link_bytes_per_second = nic;
  return device;
}

TEST(LinkPacer, AnUncontendedPathCostsItsSlowestLinkOnce) {
  auto clock = LinkClock::Map(-1);
  const std::vector<DeviceId> devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0")};
  LinkPacer sender(Device(1e9, 1e8), devices, 0, {1, std::nullopt}, **clock);
  const LinkClock::Slot sent = sender.ReserveOut(1'000'000, 50'000'000);
  EXPECT_EQ(sent.end_ns, 60'000'000);  // 10 ms on the NIC; the device's own link is faster and overlaps
  auto other = LinkClock::Map(-1);
  LinkPacer receiver(Device(1e9, 1e8), devices, 1, {std::nullopt, 0}, **other);
  EXPECT_EQ(receiver.ReserveIn(1'000'000, sent).end_ns, 60'000'000);
}

TEST(LinkPacer, NeighboursOnOneNodeDoNotUseTheNic) {
  auto clock = LinkClock::Map(-1);
  LinkPacer pacer(Device(0, 1e6), {DeviceId("a/gpu0"), DeviceId("a/gpu1")}, 0, {1, 1}, **clock);
  EXPECT_FALSE(pacer.paced_out());
  EXPECT_FALSE(pacer.paced_in());
}

TEST(LinkPacer, RanksOfOneNodeShareItsNic) {
  auto clock = LinkClock::Map(-1);
  const std::vector<DeviceId> devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0"), DeviceId("a/gpu1"), DeviceId("c/gpu0")};
  LinkPacer first(Device(0, 1e8), devices, 0, {1, 3}, **clock), second(Device(0, 1e8), devices, 2, {3, 1}, **clock);
  EXPECT_EQ(first.ReserveOut(1'000'000, 0).end_ns, 10'000'000);
  EXPECT_EQ(second.ReserveOut(1'000'000, 0).end_ns, 20'000'000);
}

TEST(LinkPacer, EachPathCrossesItsOwnLinks) {
  const std::vector<DeviceId> devices = {DeviceId("a/gpu0"), DeviceId("a/gpu1"), DeviceId("b/gpu0")};
  auto clock = LinkClock::Map(-1);
  const DeviceDescription device = Device(1e9, 1e8);
  LinkPacer near(device, devices, 0, {1, std::nullopt}, **clock), far(device, devices, 0, {2, std::nullopt}, **clock);
  EXPECT_EQ(near.ReserveOut(1'000'000, 0).end_ns, 1'000'000);
  EXPECT_FALSE(near.paced_in());
  EXPECT_EQ(far.ReserveOut(1'000'000, 0).end_ns, 11'000'000);  // 1 ms behind `near` on the device's own link
  LinkPacer mixed(device, devices, 0, {1, 2}, **clock);        // a ring: out to the neighbour, in from another node
  EXPECT_EQ(mixed.ReserveOut(1'000'000, 20'000'000).end_ns, 21'000'000);
  EXPECT_EQ(mixed.ReserveIn(1'000'000, {20'000'000, 20'000'000}).end_ns, 30'000'000);
}

TEST(LinkPacer, WithoutAPathThereIsNoLatency) {
  auto clock = LinkClock::Map(-1);
  DeviceDescription device = Device(0, 0);
  device.link_latency = absl::Milliseconds(1);
  const std::vector<DeviceId> devices = {DeviceId("a/gpu0"), DeviceId("a/gpu1")};
  EXPECT_TRUE(LinkPacer(device, devices, 0, {1, std::nullopt}, **clock).paced_out());
  EXPECT_FALSE(LinkPacer(device, devices, 0, {std::nullopt, 1}, **clock).paced_out());
}

}  // namespace
}  // namespace motley::engine
