// What an end of a hand-over takes from the other: each number of each message, altered on the way, is noticed and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/fault.h"
#include "worker/engine/transport/hand_over.h"
#include "worker/engine/transport/segment_message.h"

namespace motley::engine {
namespace {

constexpr int64_t kDataBytes = 4;  // one segment
constexpr int64_t kAckDataBytes = 16;

// An end of a hand-over's, and the other end of its connection.
struct SocketPair {
  static SocketPair Make() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    return {SegmentSocket(FileDescriptor(ends[0])), FileDescriptor(ends[1])};
  }
  SegmentSocket own;
  FileDescriptor other;
};

// Hands on whatever comes, after `alter`. False at the end of the stream.
bool Relay(int from, int to, const std::function<void(char*, ssize_t)>& alter) {
  std::array<char, 4096> buffer;
  const ssize_t count = ::recv(from, buffer.data(), buffer.size(), 0);
  if (count <= 0) return false;
  alter(buffer.data(), count);
  return ::send(to, buffer.data(), count, MSG_NOSIGNAL) == count;
}

struct Outcome {
  absl::Status sender, receiver;
};

// Between the two ends sits somebody who alters the header of the only segment, or the acknowledgement's number.
Outcome HandOverThrough(const std::function<void(SegmentHeader&)>& header, uint32_t acknowledged) {
  SocketPair at_sender = SocketPair::Make(), at_receiver = SocketPair::Make();
  const auto clock = LinkClock::Map(-1);
  const std::vector<DeviceId> devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0")};
  const auto path = [&](int rank, SegmentSocket& socket) {
    return HandOverPath{.peer = {devices[1 - rank].value(), &socket},
                        .pacer = LinkPacer(DeviceDescription(), devices, rank, {}, **clock),
                        .patience = absl::Seconds(30)};
  };
  Outcome outcome;
  std::thread sends([&] {
    const std::atomic<int64_t> no_ring = 0;
    HandOverSender sender(path(0, at_sender.own), no_ring);
    outcome.sender = sender.Send("data", kDataBytes, 0, nullptr).status();
    at_sender.own.Shutdown();
  });
  std::thread receives([&] {
    HandOverReceiver receiver(path(1, at_receiver.own));
    std::string data(kDataBytes, ' ');
    outcome.receiver = receiver.Receive(data.data(), kDataBytes, 0, nullptr).status();
    at_receiver.own.Shutdown();
  });
  const int from_sender = at_sender.other.get(), from_receiver = at_receiver.other.get();
  const auto nothing = [](char*, ssize_t) {};
  // Neither end goes on before it has the other's terms, so what comes next begins with the header.
  EXPECT_TRUE(Relay(from_sender, from_receiver, nothing));
  EXPECT_TRUE(Relay(from_receiver, from_sender, nothing));
  EXPECT_TRUE(Relay(from_sender, from_receiver, [&](char* bytes, ssize_t count) {
    ASSERT_GE(count, static_cast<ssize_t>(sizeof(SegmentHeader)));
    SegmentHeader altered;
    std::memcpy(&altered, bytes, sizeof(altered));
    header(altered);
    std::memcpy(bytes, &altered, sizeof(altered));
  }));
  std::thread onwards([&] {
    while (Relay(from_sender, from_receiver, nothing)) continue;
    ::shutdown(from_receiver, SHUT_WR);
  });
  while (Relay(from_receiver, from_sender, [&](char* bytes, ssize_t count) {
    EXPECT_EQ(count, kAckDataBytes);
    std::memcpy(bytes, &acknowledged, sizeof(acknowledged));
  })) {
    continue;
  }
  ::shutdown(from_sender, SHUT_WR);
  for (std::thread* thread : {&sends, &receives, &onwards}) thread->join();
  return outcome;
}

TEST(HandOverMessages, AreTakenAsTheyAre) {
  const Outcome outcome = HandOverThrough([](SegmentHeader&) {}, 1);
  EXPECT_EQ(outcome.sender, absl::OkStatus());
  EXPECT_EQ(outcome.receiver, absl::OkStatus());
}

TEST(HandOverMessages, AnotherHeaderIsNoticed) {
  const struct {
    std::function<void(SegmentHeader&)> alter;
    const char* sent;
  } kCases[] = {{[](SegmentHeader& h) { ++h.sequence; }, "segment 0 of 4 bytes of hand-over 2"},
                {[](SegmentHeader& h) { ++h.index; }, "segment 1 of 4 bytes of hand-over 1"},
                {[](SegmentHeader& h) { h.bytes = 0; }, "segment 0 of 0 bytes of hand-over 1"},
                {[](SegmentHeader& h) { ++h.bytes; }, "segment 0 of 5 bytes of hand-over 1"}};
  for (const auto& test : kCases) {
    const absl::Status status = HandOverThrough(test.alter, 1).receiver;
    EXPECT_EQ(FaultOf(status), Fault::kOurs) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(test.sent));
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("instead of segment 0 of 1 to 4 bytes of hand-over 1"));
  }
}

TEST(HandOverMessages, TheEndOfAnotherHandOverIsNoticed) {
  const absl::Status status = HandOverThrough([](SegmentHeader&) {}, 7).sender;
  EXPECT_EQ(FaultOf(status), Fault::kOurs) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("the end of hand-over 7"));
}

}  // namespace
}  // namespace motley::engine
