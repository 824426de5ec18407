// Bursts over a real listener: who gets one, what it gives, and that nobody is disturbed.
#include "worker/daemon/burst.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "worker/daemon/reach.h"
#include "worker/daemon/reach_listener.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class BurstTest : public ::testing::Test {
 protected:
  BurstTest() {
    auto listener = ReachListener::Start("127.0.0.1", NodeName("a"), clock_);
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }
  static std::string Line(char nonce) { return BurstLine("secret", std::string(kBurstNonceDigits, nonce)) + "\n"; }
  ReachAnswer Burst(const std::string& secret) {
    const ReachCheckCommand check{"e", {{NodeName("a"), "127.0.0.1", listener_->port()}}, secret, true};
    return CheckReach(check, "127.0.0.1", clock_, absl::Seconds(20), cancelled_).answers[0];
  }
  std::string Reach() {
    return CheckReach({"p", {{NodeName("a"), "127.0.0.1", listener_->port()}}}, "127.0.0.1", clock_, absl::Seconds(20),
                      cancelled_)
        .answers[0]
        .error;
  }
  // A peer of the test's own, greeted.
  UniqueFd Connect() {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{
        .sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(listener_->port())), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(ReadLine(fd), "motley-node a");
    return fd;
  }
  static void Say(const UniqueFd& fd, const std::string& text) {
    EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // Empty: the connection ended, or nothing came in 20 s.
  static std::string ReadLine(const UniqueFd& fd) {
    std::string line;
    pollfd ready{fd.get(), POLLIN, 0};
    for (char c = 0; poll(&ready, 1, 20000) > 0 && recv(fd.get(), &c, 1, 0) == 1 && c != '\n';) line += c;
    return line;
  }

  const SystemClock clock_;
  absl::Notification cancelled_;
  std::unique_ptr<ReachListener> listener_;
};

TEST_F(BurstTest, TheSecretGivesARate) {
  listener_->AllowBursts("secret");
  for (int i = 0; i < 3; ++i) {
    const ReachAnswer answer = Burst("secret");
    EXPECT_EQ(answer.error, "");
    EXPECT_GT(answer.bytes_per_second, 0);
    EXPECT_GT(answer.connect_seconds, 0);
  }
}

TEST_F(BurstTest, WithoutTheSecretThereIsNone) {
  EXPECT_NE(Burst("secret").error, "") << "no examination is under way";
  EXPECT_NE(Burst("").error, "");
  listener_->AllowBursts("secret");
  for (const char* wrong : {"", "Secret", "secret2", "secre"}) {
    const ReachAnswer answer = Burst(wrong);
    EXPECT_NE(answer.error, "") << wrong;
    EXPECT_EQ(answer.bytes_per_second, 0);
  }
  listener_->AllowBursts("another");
  EXPECT_NE(Burst("secret").error, "") << "that examination is over";
  EXPECT_EQ(Burst("another").error, "");
}

TEST_F(BurstTest, ASecretDoesNotLastForEver) {
  FakeClock clock;
  auto listener = ReachListener::Start("127.0.0.1", NodeName("a"), clock);
  ASSERT_TRUE(listener.ok()) << listener.status();
  listener_ = *std::move(listener);
  listener_->AllowBursts("secret");
  clock.Advance(absl::Seconds(61));
  EXPECT_NE(Burst("secret").error, "");
  listener_.reset();
}

TEST_F(BurstTest, StrangersGetNothingAndDelayNobody) {
  listener_->AllowBursts("secret");
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 150; ++i) strangers.push_back(Connect());
  for (int i = 100; i < 150; ++i) (void)!send(strangers[i].get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
  EXPECT_EQ(Burst("secret").error, "");
  EXPECT_EQ(Reach(), "");
  for (const UniqueFd& stranger : strangers) EXPECT_EQ(ReadLine(stranger), "") << "closed without a word";
}

// Of the start of a job: a node that cannot judge, say because it takes somebody's burst, is not called unreachable.
TEST_F(BurstTest, LargePacketsAreTriedAndNothingIsMeasured) {
  listener_->AllowBursts("secret");
  ReachCheckCommand check{"e", {{NodeName("a"), "127.0.0.1", listener_->port()}}, "secret"};
  check.large = true;
  const auto answer = [&] { return CheckReach(check, "127.0.0.1", clock_, absl::Seconds(20), cancelled_).answers[0]; };
  EXPECT_EQ(answer().error, "");
  EXPECT_EQ(answer().bytes_per_second, 0);
  check.secret = "another";
  EXPECT_EQ(answer().error, "");
  const UniqueFd first = Connect();
  Say(first, Line('1'));
  check.secret = "secret";
  EXPECT_EQ(answer().error, "") << "another burst is being taken";
}

// As behind a router with a smaller MTU: connections are made, and nothing of the burst is ever answered.
TEST_F(BurstTest, ThatNoneArriveIsSaid) {
  const UniqueFd silent(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(silent.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(silent.get(), 1), 0);
  ASSERT_EQ(getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  const absl::Status status = TryLargePackets(fd.get(), "secret", clock_, absl::Milliseconds(50), cancelled_);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("large packets"));
}

TEST_F(BurstTest, OneAtATime) {
  listener_->AllowBursts("secret");
  const UniqueFd first = Connect();
  Say(first, Line('1'));
  // The first one is being taken until it says something, or for a second.
  EXPECT_THAT(Burst("secret").error, HasSubstr("took another burst"));
  EXPECT_EQ(Reach(), "") << "plain answers do not wait";
}

TEST_F(BurstTest, WhatWasHeardOnceCannotBeSaidAgain) {
  listener_->AllowBursts("secret");
  const UniqueFd heard = Connect();
  Say(heard, Line('1') + std::string(1000, 'x'));
  EXPECT_THAT(ReadLine(heard), StartsWith("motley-took "));
  const UniqueFd again = Connect();
  Say(again, Line('1') + std::string(1000, 'x'));
  EXPECT_EQ(ReadLine(again), "") << "closed without a word";
  EXPECT_EQ(Line('2').find("secret"), std::string::npos);
}

TEST_F(BurstTest, ManyAtOnceAreAllAnswered) {
  listener_->AllowBursts("secret");
  std::vector<std::thread> senders;
  std::vector<ReachAnswer> answers(6);
  for (ReachAnswer& answer : answers) senders.emplace_back([this, &answer] { answer = Burst("secret"); });
  for (std::thread& sender : senders) sender.join();
  int measured = 0;
  for (const ReachAnswer& answer : answers) {
    measured += answer.bytes_per_second > 0;
    EXPECT_TRUE(answer.error.empty() || answer.error.find("took another burst") != std::string::npos) << answer.error;
  }
  EXPECT_GE(measured, 1);
}

TEST_F(BurstTest, APeerThatStopsInTheMiddleIsToldWhatArrived) {
  listener_->AllowBursts("secret");
  const UniqueFd peer = Connect();
  Say(peer, Line('1'));
  for (int i = 0; i < 3; ++i) Say(peer, std::string(100000, 'x'));
  const std::string line = ReadLine(peer);  // and not one byte more is sent
  EXPECT_THAT(line, StartsWith("motley-took ")) << "after a quarter of a second";
  EXPECT_EQ(ReadLine(peer), "");
  EXPECT_EQ(Burst("secret").error, "") << "the next one has its turn";
}

TEST_F(BurstTest, APeerThatSaysNothingOrGoesEndsInTime) {
  listener_->AllowBursts("secret");
  const UniqueFd silent = Connect(), begun = Connect();
  {
    const UniqueFd gone = Connect();
    Say(gone, Line('1').substr(0, 16));
  }
  Say(begun, Line('1'));
  EXPECT_EQ(ReadLine(silent), "") << "no secret for a second";
  EXPECT_EQ(ReadLine(begun), "") << "no byte for a second";
  EXPECT_EQ(Burst("secret").error, "");
}

TEST_F(BurstTest, ACancelledSenderEndsAtOnce) {
  listener_->AllowBursts("secret");
  cancelled_.Notify();
  EXPECT_TRUE(
      CheckReach({"e", {{NodeName("a"), "127.0.0.1", listener_->port()}}, "secret", true}, "", clock_, absl::Hours(1), cancelled_)
          .answers.empty());
}

TEST(ParseTook, WhatIsNoRateIsNamed) {
  EXPECT_DOUBLE_EQ(*ParseTook("motley-took 1000 2000"), 5e8);
  for (const char* line : {"motley-took 0 5", "motley-took 5 0", "motley-took -5 -5", "motley-took 5", "motley-took a b",
                           "motley-took 5 5 5", "motley-busy", "", "HTTP/1.1 400", "motley-took 99999999999999999999 1"}) {
    EXPECT_EQ(ParseTook(line).status().code(), absl::StatusCode::kUnavailable) << line;
  }
}

}  // namespace
}  // namespace motley::worker
