#include "worker/daemon/dial_look.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "worker/daemon/spawn.h"

namespace motley::worker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Bound to a port of loopback, where it does not listen yet.
class TakenPort {
 public:
  TakenPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    socklen_t size = sizeof(address);
    getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    target = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  void Listen() { EXPECT_EQ(listen(fd_.get(), 8), 0); }
  std::string target;

 private:
  UniqueFd fd_;
};

std::vector<int> Try(const std::vector<std::string>& targets) {
  const SystemClock clock;
  const absl::Notification never;
  return TryToConnect(targets, clock, absl::Seconds(20), never);
}

TEST(DialLook, SaysOfEachTargetWhatTheSystemSays) {
  TakenPort open, closed;
  open.Listen();
  EXPECT_THAT(Try({open.target, closed.target, "unix:/no/such/socket", open.target}), ElementsAre(0, ECONNREFUSED, ENOENT, 0));
  EXPECT_THAT(Try({"unix:/" + std::string(200, 'a'), "a.name:1"}), ElementsAre(ENAMETOOLONG, EINVAL));
}

// A queue that is full loses packets as a firewall does.
TEST(DialLook, WhoDoesNotAnswerIsGivenUp) {
  UniqueFd full(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(full.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(getsockname(full.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_EQ(listen(full.get(), 0), 0);
  UniqueFd first(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(first.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  const SystemClock clock;
  absl::Notification cancelled;
  const std::vector<std::string> targets = {absl::StrCat("127.0.0.1:", ntohs(address.sin_port))};
  EXPECT_THAT(TryToConnect(targets, clock, absl::Milliseconds(50), cancelled), ElementsAre(ETIMEDOUT));
  cancelled.Notify();
  EXPECT_THAT(TryToConnect(targets, clock, absl::Seconds(600), cancelled), ElementsAre(ECANCELED));
}

TEST(DialLook, WhatItMeansIsSaidWithWhatHelps) {
  const auto why = [](const char* target, int error) { return WhyNotReached(target, error, absl::Seconds(3)); };
  EXPECT_THAT(why("10.0.0.1:7073", ETIMEDOUT), AllOf(HasSubstr("no answer for 3 s"), HasSubstr("a firewall"), HasSubstr("7073")));
  EXPECT_THAT(why("10.0.0.1:7073", ECONNREFUSED), AllOf(HasSubstr("Connection refused"), HasSubstr("workers.listen")));
  EXPECT_THAT(why("[fd00::1]:7073", EHOSTUNREACH), HasSubstr("No route to host: is the machine up, is that its address, and is "
                                                             "there a way to it (`ip route get fd00::1`)?"));
  EXPECT_THAT(why("unix:/run/motley/workers.sock", ENOENT), HasSubstr("does motley-coordinator run on this machine"));
  EXPECT_THAT(why("unix:/run/motley/workers.sock", EACCES), HasSubstr("the group of that socket"));
}

TEST(DialLook, NamesOnlyWhatPeopleDoNotKnowYet) {
  TakenPort open, closed;
  open.Listen();
  const SystemClock clock;
  DialLook look({open.target, closed.target}, clock);
  while (!look.done()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(look.SomeoneAnswers());
  EXPECT_THAT(look.TroublesBeside("hub:7073"), ElementsAre(testing::StartsWith(closed.target + ": Connection refused")));
  EXPECT_THAT(look.TroublesBeside(closed.target), ElementsAre(testing::StartsWith("Connection refused")));
}

}  // namespace
}  // namespace motley::worker
