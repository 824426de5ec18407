#include "worker/daemon/reach.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "tests/common/base/counting_clock.h"
#include "tests/common/base/no_descriptors.h"
#include "tests/common/base/patience.h"
#include "worker/daemon/reach_listener.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

// A socket that listens and never accepts: its backlog answers for it, nobody says a word.
class SilentListener {
 public:
  SilentListener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(fd_.get(), 10), 0);
    socklen_t size = sizeof(address);
    getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }
  int port = 0;

 private:
  UniqueFd fd_;
};

class ReachTest : public ::testing::Test {
 protected:
  ReachReport Check(std::vector<ReachTarget> targets) {
    return CheckReach({"probe", std::move(targets)}, "127.0.0.9", clock_, absl::Milliseconds(300), cancelled_);
  }

  const SystemClock clock_;
  absl::Notification cancelled_;
};

TEST_F(ReachTest, ReachesNodesThatListen) {
  auto a = ReachListener::Start("127.0.0.1", NodeName("a"), clock_);
  auto b = ReachListener::Start("127.0.0.1", NodeName("b"), clock_);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  for (int round = 0; round < 50; ++round) {
    const ReachReport report = Check({{NodeName("a"), "127.0.0.1", (*a)->port()}, {NodeName("b"), "127.0.0.1", (*b)->port()}});
    EXPECT_EQ(report.check_id, "probe");
    ASSERT_EQ(report.answers.size(), 2u);
    EXPECT_EQ(report.answers[0].node, NodeName("a"));
    EXPECT_EQ(report.answers[0].error + report.answers[1].error, "");
    EXPECT_GT(report.answers[0].connect_seconds, 0);
    EXPECT_EQ(report.answers[0].bytes_per_second, 0) << "nobody asked for a burst";
  }
}

TEST_F(ReachTest, NamesWhatIsNotReachedAndWhy) {
  auto listener = ReachListener::Start("127.0.0.1", NodeName("a"), clock_);
  ASSERT_TRUE(listener.ok()) << listener.status();
  SilentListener silent;
  int closed_port = 0;
  {
    SilentListener gone;
    closed_port = gone.port;
  }
  const ReachReport report = Check({{NodeName("other"), "127.0.0.1", (*listener)->port()},
                                    {NodeName("silent"), "127.0.0.1", silent.port},
                                    {NodeName("closed"), "127.0.0.1", closed_port},
                                    {NodeName("name"), "example.invalid", 1},
                                    {NodeName("a"), "127.0.0.1", (*listener)->port()}});
  ASSERT_EQ(report.answers.size(), 5u);
  EXPECT_THAT(report.answers[0].error, HasSubstr("node other is not reached at 127.0.0.1"));
  EXPECT_THAT(report.answers[0].error, HasSubstr("another answered: 'motley-node a'"));
  EXPECT_THAT(report.answers[1].error, HasSubstr("nobody said a word"));
  EXPECT_THAT(report.answers[2].error, HasSubstr("refused"));
  EXPECT_EQ(report.answers[2].connect_seconds, 0);
  EXPECT_THAT(report.answers[3].error, HasSubstr("not a numeric address"));
  EXPECT_EQ(report.answers[4].error, "");
}

TEST_F(ReachTest, StrangersThatKeepTheirConnectionsDelayNobody) {
  auto listener = ReachListener::Start("127.0.0.1", NodeName("a"), clock_);
  ASSERT_TRUE(listener.ok()) << listener.status();
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 200; ++i) {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{.sin_family = AF_INET,
                        .sin_port = htons(static_cast<uint16_t>((*listener)->port())),
                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    ASSERT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    strangers.push_back(std::move(fd));
  }
  EXPECT_EQ(Check({{NodeName("a"), "127.0.0.1", (*listener)->port()}}).answers[0].error, "");
}

// The trouble is its own: another node answers as ever.
TEST_F(ReachTest, WhoHasNoDescriptorAccusesNobody) {
  auto a = ReachListener::Start("127.0.0.1", NodeName("a"), clock_);
  ASSERT_TRUE(a.ok()) << a.status();
  const std::vector<ReachTarget> targets(50, {NodeName("a"), "127.0.0.1", (*a)->port()});
  {
    const NoDescriptors none;
    EXPECT_TRUE(Check(targets).answers.empty());
  }
  EXPECT_EQ(Check(targets).answers.size(), targets.size());
}

TEST_F(ReachTest, WhoGetsADescriptorInTimeGoesOn) {
  auto a = ReachListener::Start("127.0.0.1", NodeName("a"), clock_);
  ASSERT_TRUE(a.ok()) << a.status();
  std::optional<NoDescriptors> none(std::in_place);
  CountingClock clock;
  clock.calls_at = 6;  // after several tries
  clock.at = [&] { none.reset(); };
  const ReachReport report = CheckReach({"probe", {{NodeName("a"), "127.0.0.1", (*a)->port()}}}, "127.0.0.9", clock,
                                        Patience(absl::Seconds(20)), cancelled_);
  EXPECT_FALSE(none);
  ASSERT_EQ(report.answers.size(), 1u);
  EXPECT_EQ(report.answers[0].error, "");
}

TEST_F(ReachTest, AnAddressOfAnotherMachineCannotBeListenedOn) {
  const absl::Status status = ReachListener::Start("192.0.2.1", NodeName("a"), clock_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << "a card may have it later";
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("worker.data_address 192.0.2.1: Cannot assign requested address; no card"));
}

TEST_F(ReachTest, TheCheckerAnswersThroughTheOutboxAndEndsAtOnce) {
  auto listener = ReachListener::Start("127.0.0.1", NodeName("a"), clock_);
  ASSERT_TRUE(listener.ok()) << listener.status();
  Outbox outbox;
  SilentListener silent;
  {
    ReachChecker checker("127.0.0.1", clock_, outbox);
    checker.Check({"probe-1", {{NodeName("a"), "127.0.0.1", (*listener)->port()}}});
    outbox.Wait(Patience(absl::Seconds(20)), /*for_reports=*/true);
    const auto report = outbox.TryPop();
    ASSERT_TRUE(report && std::holds_alternative<ReachReport>(*report));
    EXPECT_EQ(std::get<ReachReport>(*report).check_id, "probe-1");
    checker.Check({"probe-2", {{NodeName("silent"), "127.0.0.1", silent.port}}});
  }
  EXPECT_EQ(outbox.size(), 0u) << "its end does not wait for the silent one";
}

}  // namespace
}  // namespace motley::worker
