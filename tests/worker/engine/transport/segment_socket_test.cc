// Why a connection ended: each who asks hears the system's first word.
#include "worker/engine/transport/segment_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/peer_ended.h"
#include "worker/engine/transport/segment_message.h"

namespace motley::engine {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

// A TCP connection over loopback.
class SegmentSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        call(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(::bind(listener.get(), any, bytes), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    ASSERT_EQ(::getsockname(listener.get(), any, &bytes), 0);
    ASSERT_EQ(::connect(call.get(), any, bytes), 0);
    other_ = FileDescriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    socket_.emplace(std::move(call));
  }
  void OtherCloses() { other_ = FileDescriptor(); }
  // What a network that breaks does, too: an error instead of an end.
  void OtherResets() {
    const linger none{.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(::setsockopt(other_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
    OtherCloses();
  }
  absl::Status Receive() {
    char byte = 0;
    return socket_->Receive({Part(&byte, 1)}, kPatience);
  }
  absl::Status Send() { return socket_->Send({Part("x", 1)}, kPatience); }

  FileDescriptor other_;
  std::optional<SegmentSocket> socket_;
};

TEST_F(SegmentSocketTest, OneThatLivesIsHealthy) {
  EXPECT_EQ(socket_->Health(), absl::OkStatus());
  EXPECT_EQ(Send(), absl::OkStatus());
}

TEST_F(SegmentSocketTest, AnOrdinaryEndIsOneForEachWhoAsks) {
  OtherCloses();
  EXPECT_EQ(Receive().message(), kPeerEnded);
  EXPECT_EQ(socket_->Health().message(), kPeerEnded);
  EXPECT_EQ(Receive().message(), kPeerEnded);
}

TEST_F(SegmentSocketTest, WhatIsLeftToReadIsNoEndYet) {
  ASSERT_EQ(::send(other_.get(), "x", 1, 0), 1);
  OtherCloses();
  EXPECT_EQ(socket_->Health(), absl::OkStatus());
  EXPECT_EQ(Receive(), absl::OkStatus());
  EXPECT_EQ(socket_->Health().message(), kPeerEnded);
}

TEST_F(SegmentSocketTest, TheHealthSaysWhichErrorItWas) {
  OtherResets();
  const std::string reset = std::strerror(ECONNRESET);
  EXPECT_EQ(socket_->Health().message(), reset);
  EXPECT_EQ(Receive().message(), reset);
  EXPECT_EQ(socket_->Health().message(), reset);
}

TEST_F(SegmentSocketTest, TheReceiverAndTheSenderSayTheSameError) {
  OtherResets();
  const std::string reset = std::strerror(ECONNRESET);
  EXPECT_EQ(Receive().message(), reset);
  EXPECT_EQ(Receive().message(), reset) << "the system has told it already";
  EXPECT_EQ(Send().message(), reset) << "the system says: broken pipe";
}

TEST_F(SegmentSocketTest, ShutdownEndsCallsOfBothEnds) {
  socket_->Shutdown();
  EXPECT_FALSE(Receive().ok());
  char byte = 0;
  EXPECT_EQ(::recv(other_.get(), &byte, 1, 0), 0);
}

// Two ends, of which each may have codes.
class CodedSocketTest : public testing::Test {
 protected:
  static std::optional<MessageCodes> Codes(char sending, char receiving) {
    auto sends = Gmac::Create(std::string(Gmac::kKeyBytes, sending)),
         receives = Gmac::Create(std::string(Gmac::kKeyBytes, receiving));
    EXPECT_TRUE(sends.ok() && receives.ok());
    return MessageCodes{*std::move(sends), *std::move(receives), {"b/gpu0", "a/gpu0"}};
  }
  void Connect(std::optional<MessageCodes> ours, std::optional<MessageCodes> theirs) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    own_.emplace(FileDescriptor(ends[0]), std::move(ours));
    other_.emplace(FileDescriptor(ends[1]), std::move(theirs));
  }
  absl::Status Say(const std::string& head, const std::string& body) {
    return other_->Send({Part(head.data(), head.size()), Part(body.data(), body.size())}, kPatience);
  }
  absl::Status Hear(size_t bytes) {
    heard_.assign(bytes, ' ');
    return own_->Receive({Part(heard_.data(), heard_.size())}, kPatience);
  }
  static void ExpectAltered(const absl::Status& status, int message) {
    EXPECT_EQ(status.message(),
              absl::StrCat("what b/gpu0 sent to a/gpu0 was altered on the way: message ", message, " does not have its code"));
  }

  std::optional<SegmentSocket> own_, other_;
  std::string heard_;
};

TEST_F(CodedSocketTest, PartsThatAreSentTogetherAreReceivedOneByOne) {
  Connect(Codes('x', 'y'), Codes('y', 'x'));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Say("head", "and body"), absl::OkStatus());
    ASSERT_EQ(Hear(4), absl::OkStatus());
    EXPECT_EQ(heard_, "head");
    ASSERT_EQ(Hear(8), absl::OkStatus());
    EXPECT_EQ(heard_, "and body");
  }
}

TEST_F(CodedSocketTest, AfterAMessageThatIsWrongNoneIsTaken) {
  Connect(Codes('x', 'y'), Codes('y', 'x'));
  ASSERT_EQ(Say("head", "and body"), absl::OkStatus());
  ExpectAltered(Hear(3), 1);
  ASSERT_EQ(Say("head", "and body"), absl::OkStatus());
  ExpectAltered(Hear(4), 1);
}

TEST_F(CodedSocketTest, AnEndWithoutCodesOrWithOtherKeysIsNotBelieved) {
  const std::string much(1000, 'm');
  Connect(Codes('x', 'y'), std::nullopt);
  ASSERT_EQ(Say("head", much), absl::OkStatus());
  ExpectAltered(Hear(4), 1);
  Connect(Codes('x', 'y'), Codes('z', 'x'));
  ASSERT_EQ(Say("head", much), absl::OkStatus());
  ExpectAltered(Hear(4), 1);
  Connect(Codes('x', 'y'), Codes('x', 'y'));  // what this end sends itself, come back
  ASSERT_EQ(Say("head", much), absl::OkStatus());
  ExpectAltered(Hear(4), 1);
}

}  // namespace
}  // namespace motley::engine
