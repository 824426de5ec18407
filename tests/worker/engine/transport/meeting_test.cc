#include "worker/engine/transport/meeting.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "common/base/fault.h"
#include "tests/worker/engine/transport/strangers.h"
#include "worker/engine/transport/meeting_words.h"

namespace motley::engine {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

Meeting Open(int rank) {
  absl::StatusOr<Meeting> meeting = Meeting::Open(rank, DeviceId("n" + std::to_string(rank) + "/gpu0"), "127.0.0.1");
  EXPECT_TRUE(meeting.ok()) << meeting.status();
  return *std::move(meeting);
}

constexpr Channel kChannel = 5;

MeetingPeer PeerAt(int rank, const MeetingPoint& point, Channel channel = kChannel) {
  return {rank, channel, DeviceId("n" + std::to_string(rank) + "/gpu0"), point};
}

// As rank 0 says it to rank 1.
std::string HelloOf(const std::string& callers_secret, const std::string& callees_secret, Channel channel) {
  return Hello({callers_secret, callees_secret, 0, 1, channel}, std::string(kNonceBytes, 'n'));
}

bool Carries(const FileDescriptor& from, const FileDescriptor& to, const std::string& text) {
  if (send(from.get(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) return false;
  std::string got;
  while (got.size() < text.size()) {
    char buffer[64];
    const ssize_t n = recv(to.get(), buffer, sizeof(buffer), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) return false;
    got.append(buffer, n);
  }
  return got == text;
}

std::string AddressOf(int (*name)(int, sockaddr*, socklen_t*), const FileDescriptor& fd) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  EXPECT_EQ(name(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
  return text;
}

// Both ranks of a pair meet, each on its own thread.
struct Both {
  absl::StatusOr<Met> caller = absl::UnknownError("not run"), callee = absl::UnknownError("not run");
};
Both MeetBoth(Meeting& caller, Meeting& callee, absl::Duration limit = kLong) {
  Both both;
  std::thread other([&] { both.callee = callee.Meet({PeerAt(0, caller.point())}, limit, nullptr); });
  both.caller = caller.Meet({PeerAt(1, callee.point())}, limit, nullptr);
  other.join();
  return both;
}

void ExpectTheyTalk(const Both& both) {
  ASSERT_TRUE(both.caller.ok()) << both.caller.status();
  ASSERT_TRUE(both.callee.ok()) << both.callee.status();
  EXPECT_TRUE(Carries(both.caller->sockets.at({1, kChannel}), both.callee->sockets.at({0, kChannel}), "there"));
  EXPECT_TRUE(Carries(both.callee->sockets.at({0, kChannel}), both.caller->sockets.at({1, kChannel}), "and back"));
  const MessageKeys &callers = both.caller->keys.at({1, kChannel}), &callees = both.callee->keys.at({0, kChannel});
  EXPECT_EQ(callers.sending, callees.receiving);
  EXPECT_EQ(callers.receiving, callees.sending);
  EXPECT_NE(callers.sending, callers.receiving);
}

TEST(Meeting, TwoRanksGetAConnectionOfTheirOwn) {
  Meeting caller = Open(0), callee = Open(1);
  EXPECT_NE(caller.point().secret, callee.point().secret);
  const Both both = MeetBoth(caller, callee);
  ExpectTheyTalk(both);
  EXPECT_EQ(both.caller->turned_away + both.callee->turned_away, 0);
}

// With two addresses in one subnet the kernel would choose.
TEST(Meeting, WhatLeavesLeavesFromTheDataAddress) {
  absl::StatusOr<Meeting> caller = Meeting::Open(0, DeviceId("n0/gpu0"), "127.0.0.9");
  ASSERT_TRUE(caller.ok()) << caller.status();
  Meeting callee = Open(1);
  const Both both = MeetBoth(*caller, callee);
  ExpectTheyTalk(both);
  EXPECT_EQ(AddressOf(getsockname, both.caller->sockets.at({1, kChannel})), "127.0.0.9");
  EXPECT_EQ(AddressOf(getpeername, both.callee->sockets.at({0, kChannel})), "127.0.0.9");
  EXPECT_TRUE(both.caller->notes.empty());
}

TEST(Meeting, WhoeverConnectsFirstIsNotTakenForThePeer) {
  Meeting caller = Open(0), callee = Open(1);
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(ConnectAsStranger(caller.point().port, i % 2 == 0 ? "" : std::string(64, 'x')));
    strangers.push_back(ConnectAsStranger(callee.point().port, i % 2 == 0 ? "" : "GET / HTTP/1.1\r\nHost: motley\r\n\r\n"));
  }
  ExpectTheyTalk(MeetBoth(caller, callee));
}

TEST(Meeting, MoreStrangersThanItListensToDoNotKeepThePeerOut) {
  Meeting caller = Open(0), callee = Open(1);
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 200; ++i) strangers.push_back(ConnectAsStranger(callee.point().port));
  const Both both = MeetBoth(caller, callee);
  ExpectTheyTalk(both);
  EXPECT_GE(both.callee->turned_away, 200 - 64);
}

TEST(Meeting, ARankWithAnotherSecretIsTurnedAway) {
  Meeting callee = Open(1);
  const FileDescriptor wrong = ConnectAsStranger(callee.point().port, HelloOf("", std::string(kSecretBytes, 's'), kChannel));
  std::atomic<bool> stopped = false;
  std::thread meeting(
      [&] { EXPECT_TRUE(absl::IsCancelled(callee.Meet({PeerAt(0, {})}, kLong, [&] { return stopped.load(); }).status())); });
  EXPECT_TRUE(WasTurnedAway(wrong.get()));
  stopped = true;
  meeting.join();
}

TEST(Meeting, AChannelThatNobodyWaitsForIsTurnedAway) {
  Meeting callee = Open(1);
  const FileDescriptor wrong = ConnectAsStranger(callee.point().port, HelloOf("", callee.point().secret, kChannel + 1));
  std::atomic<bool> stopped = false;
  std::thread meeting(
      [&] { EXPECT_TRUE(absl::IsCancelled(callee.Meet({PeerAt(0, {})}, kLong, [&] { return stopped.load(); }).status())); });
  EXPECT_TRUE(WasTurnedAway(wrong.get()));
  stopped = true;
  meeting.join();
}

TEST(Meeting, APairMeetsOnceForEachChannel) {
  Meeting caller = Open(0), callee = Open(1);
  absl::StatusOr<Met> called, calling;
  std::thread other([&] {
    // In another order than the caller's.
    called = callee.Meet({PeerAt(0, caller.point(), 7), PeerAt(0, caller.point(), 5)}, kLong, nullptr);
  });
  calling = caller.Meet({PeerAt(1, callee.point(), 5), PeerAt(1, callee.point(), 7)}, kLong, nullptr);
  other.join();
  ASSERT_TRUE(called.ok() && calling.ok()) << called.status() << calling.status();
  for (const Channel channel : {5, 7}) {
    EXPECT_TRUE(Carries(calling->sockets.at({1, channel}), called->sockets.at({0, channel}), std::to_string(channel)));
  }
}

TEST(Meeting, APeerThatGaveUpAndCallsAgainIsMet) {
  Meeting caller = Open(0), callee = Open(1);
  {
    // What a first call that timed out leaves behind: a right Hello and a closed connection.
    const FileDescriptor given_up =
        ConnectAsStranger(callee.point().port, HelloOf(caller.point().secret, callee.point().secret, kChannel));
    ASSERT_GE(given_up.get(), 0);
  }
  ExpectTheyTalk(MeetBoth(caller, callee));
}

// A port that is bound but does not listen refuses; once it listens, the next call comes through.
TEST(Meeting, ACallThatIsRefusedIsMadeAgain) {
  Meeting caller = Open(0);
  const FileDescriptor late(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(late.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(getsockname(late.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  std::thread answers;
  int turns = 0;
  const auto listens_after_some_turns = [&] {
    if (++turns != 4) return false;
    EXPECT_EQ(listen(late.get(), 16), 0);
    answers = std::thread([&] {
      const FileDescriptor call(accept(late.get(), nullptr, nullptr));
      std::string hello(kHelloBytes, '\0');
      EXPECT_EQ(recv(call.get(), hello.data(), hello.size(), MSG_WAITALL), static_cast<ssize_t>(hello.size()));
      const MeetingPair pair = {caller.point().secret, "secret", 0, 1, kChannel};
      EXPECT_TRUE(IsHello(pair, hello));
      const std::string welcome = Welcome(pair, hello, std::string(kNonceBytes, 'w'));
      (void)!send(call.get(), welcome.data(), welcome.size(), MSG_NOSIGNAL);
      // Until the caller hangs up: closed before it confirmed, the call would be lost again.
      char said[64];
      while (recv(call.get(), said, sizeof(said), 0) > 0) {
      }
    });
    return false;
  };
  {
    const auto met = caller.Meet({PeerAt(1, {"127.0.0.1", ntohs(address.sin_port), "secret"})}, kLong, listens_after_some_turns);
    EXPECT_TRUE(met.ok()) << met.status();
  }
  shutdown(late.get(), SHUT_RDWR);  // nobody waits for a call that did not come
  ASSERT_TRUE(answers.joinable());
  answers.join();
}

TEST(Meeting, AnImpostorOnThePeersPortIsNotBelieved) {
  Meeting caller = Open(0);
  const FileDescriptor impostor(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(impostor.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(impostor.get(), 16), 0);
  ASSERT_EQ(getsockname(impostor.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  std::thread answers([&] {
    const FileDescriptor call(accept(impostor.get(), nullptr, nullptr));
    const std::string welcome(kWelcomeBytes, 'w');
    (void)!send(call.get(), welcome.data(), welcome.size(), MSG_NOSIGNAL);
    char byte[64];
    while (recv(call.get(), byte, sizeof(byte), 0) > 0) {
    }
  });
  const auto met = caller.Meet({PeerAt(1, {"127.0.0.1", ntohs(address.sin_port), "secret"})}, absl::Milliseconds(300), nullptr);
  answers.join();
  EXPECT_EQ(met.status().code(), absl::StatusCode::kUnavailable) << met.status();
}

TEST(Meeting, WhoWasNotMetIsNamedAndNobodyElse) {
  Meeting left = Open(0), middle = Open(1);
  const int free_port = Open(2).point().port;  // closed again
  std::thread healthy([&] { EXPECT_TRUE(left.Meet({PeerAt(1, middle.point())}, kLong, nullptr).ok()); });
  const auto met = middle.Meet({PeerAt(0, left.point()), PeerAt(2, {"127.0.0.1", free_port, std::string(kSecretBytes, 's')})},
                               absl::Milliseconds(500), nullptr);
  healthy.join();
  const std::string message(met.status().message());
  EXPECT_EQ(met.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(FaultOf(met.status()), Fault::kPeer);
  EXPECT_EQ(message.find("n1/gpu0 at 127.0.0.1:" + std::to_string(middle.point().port) + " did not meet"), 0u) << message;
  EXPECT_NE(message.find("n2/gpu0 at 127.0.0.1:" + std::to_string(free_port)), std::string::npos) << message;
  EXPECT_NE(message.find("Connection refused"), std::string::npos) << message;
  EXPECT_EQ(message.find("n0/gpu0"), std::string::npos) << message;
}

TEST(Meeting, AStopEndsTheWaiting) {
  Meeting callee = Open(1);
  int asked = 0;
  const auto met = callee.Meet({PeerAt(0, {})}, kLong, [&] { return ++asked > 2; });
  EXPECT_TRUE(absl::IsCancelled(met.status())) << met.status();
}

TEST(Meeting, AnAddressThatIsNoAddressIsNamed) {
  const absl::Status status = Meeting::Open(0, DeviceId("a/gpu0"), "localhost").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("'localhost'"), std::string::npos) << status;
}

}  // namespace
}  // namespace motley::engine
