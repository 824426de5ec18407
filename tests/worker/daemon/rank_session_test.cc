#include "worker/daemon/rank_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/worker/daemon/fake_engine.h"
#include "tests/worker/daemon/test_assignment.h"
#include "worker/daemon/frame.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

// The worker's end of the socket, and a session that serves the other on a thread.
class RankSessionTest : public ::testing::Test {
 protected:
  RankSessionTest() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    fd_ = fds[0];
    timeval patience = {.tv_sec = 20};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    RankSession::Options options;
    options.progress_interval = absl::Milliseconds(20);
    options.publish_timeout = absl::Milliseconds(300);
    options.on_orphaned = [this] { orphaned_ = true; };
    session_ = std::make_unique<RankSession>(
        fds[1], [](engine::RankHost& host) { return std::make_unique<FakeEngine>(host); }, options);
    thread_ = std::thread([this] { end_ = session_->Serve(); });
  }
  ~RankSessionTest() override { End(); }

  void End() {
    shutdown(fd_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void Send(const v1::ToRank& message) { ASSERT_TRUE(WriteAll(fd_, EncodeFrame(message.SerializeAsString())).ok()); }
  void Load(const v1::RankAssignment& assignment) {
    v1::ToRank message;
    *message.mutable_load() = assignment;
    Send(message);
  }
  void Stop() {
    v1::ToRank message;
    message.mutable_stop()->set_save(true);
    Send(message);
  }
  v1::FromRank Next(v1::FromRank::MessageCase wanted) {
    while (true) {
      auto frame = decoder_.Next();
      if (frame.ok() && frame->has_value()) {
        v1::FromRank message;
        EXPECT_TRUE(message.ParseFromString(**frame));
        if (message.message_case() == wanted) return message;
        continue;
      }
      char buffer[4096];
      const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
      if (n <= 0) {
        ADD_FAILURE() << "the message did not come";
        return {};
      }
      decoder_.Append(std::string_view(buffer, static_cast<size_t>(n)));
    }
  }
  v1::RankEvent NextEvent() { return Next(v1::FromRank::kEvent).event(); }

  int fd_ = -1;
  FrameDecoder decoder_;
  std::atomic<bool> orphaned_{false};
  std::unique_ptr<RankSession> session_;
  absl::Status end_;
  std::thread thread_;
};

TEST_F(RankSessionTest, TakesASecondAssignment) {
  for (const int64_t epoch : {1, 2}) {
    Load(TestAssignment("train", epoch));
    const v1::RankEvent ready = NextEvent();
    EXPECT_EQ(ready.kind(), v1::RankEvent::KIND_READY);
    EXPECT_EQ(ready.epoch(), epoch);
    EXPECT_EQ(ready.device_id(), "n1/gpu0");
    EXPECT_EQ(Next(v1::FromRank::kStep).step().record().loss(), 2.5);
    EXPECT_EQ(NextEvent().kind(), v1::RankEvent::KIND_FINISHED);
  }
  End();
  EXPECT_TRUE(end_.ok()) << end_;
  EXPECT_FALSE(orphaned_);
}

TEST_F(RankSessionTest, RefusesAnAssignmentThatDoesNotParse) {
  v1::RankAssignment assignment = TestAssignment("train");
  assignment.set_program("nonsense");
  Load(assignment);
  const v1::RankEvent event = NextEvent();
  EXPECT_EQ(event.kind(), v1::RankEvent::KIND_FAILED);
  EXPECT_THAT(event.message(), HasSubstr("program"));
}

TEST_F(RankSessionTest, StopReachesTheEngine) {
  Load(TestAssignment("until-stopped"));
  Next(v1::FromRank::kStep);
  Stop();
  EXPECT_EQ(NextEvent().message(), "stopped as asked");
}

TEST_F(RankSessionTest, StopEndsTheMeeting) {
  Load(TestAssignment("meet"));
  Next(v1::FromRank::kKvGet);
  EXPECT_EQ(Next(v1::FromRank::kProgress).progress().epoch(), 1);
  Stop();
  EXPECT_EQ(NextEvent().kind(), v1::RankEvent::KIND_FINISHED);
}

TEST_F(RankSessionTest, ACoordinatorThatDoesNotAnswerIsNoFailureOfTheRank) {
  Load(TestAssignment("publish"));
  Next(v1::FromRank::kPublishRequest);
  EXPECT_EQ(NextEvent().kind(), v1::RankEvent::KIND_PEER_LOST);
}

TEST_F(RankSessionTest, SaysThatItLives) {
  Load(TestAssignment("meet"));
  Next(v1::FromRank::kKvGet);
  for (int i = 0; i < 3; ++i) Next(v1::FromRank::kProgress);
}

TEST_F(RankSessionTest, AnOrphanWithABusyEngineIsTold) {
  Load(TestAssignment("meet"));
  Next(v1::FromRank::kKvGet);
  End();
  EXPECT_TRUE(orphaned_);
}

TEST_F(RankSessionTest, BytesThatAreNoMessageEndIt) {
  ASSERT_TRUE(WriteAll(fd_, std::string(8, '\xff')).ok());
  thread_.join();
  EXPECT_EQ(end_.code(), absl::StatusCode::kDataLoss);
}

TEST_F(RankSessionTest, MeasuresWhatIsAsked) {
  v1::ToRank message;
  v1::ProfileRequest* request = message.mutable_profile();
  request->set_job_id("job");
  request->set_epoch(5);
  *request->add_ranks() = TestAssignment("measure", 5);
  request->set_compute(true);
  Send(message);
  const v1::ProfileResult result = Next(v1::FromRank::kProfileResult).profile_result();
  EXPECT_EQ(result.epoch(), 5);
  ASSERT_EQ(result.compute_size(), 1);
  EXPECT_EQ(result.compute(0).context_bytes(), 7);
  EXPECT_FALSE(result.has_collectives());
}

}  // namespace
}  // namespace motley::worker
