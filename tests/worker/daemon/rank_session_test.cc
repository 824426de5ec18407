#include "worker/daemon/rank_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <tuple>
#include <type_traits>

#include "common/wire/rank.h"
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
        fds[1], [](engine::RankHost& host) { return std::make_unique<FakeEngine>(host); }, clock_, options);
    thread_ = std::thread([this] { end_ = session_->Serve(); });
  }
  ~RankSessionTest() override { End(); }

  void End() {
    shutdown(fd_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void Send(const RankCommand& command) {
    ASSERT_TRUE(WriteAll(fd_, EncodeFrame(wire::ToProto(command).SerializeAsString())).ok());
  }
  void Load(const RankAssignment& assignment) { Send(StartCommand{{assignment}}); }
  void Stop() { Send(StopCommand{JobId("job"), Epoch(1), true, ""}); }
  // The next message of this kind.
  template <typename Kind>
  Kind Next() {
    while (true) {
      auto frame = decoder_.Next();
      if (frame.ok() && frame->has_value()) {
        v1::FromRank proto;
        EXPECT_TRUE(proto.ParseFromString(**frame));
        const std::optional<RankMessage> message = wire::FromProto(proto);
        EXPECT_TRUE(message.has_value());
        if constexpr (std::is_same_v<Kind, ProgressReport>) {
          if (const auto* progress = std::get_if<ProgressReport>(&*message)) return *progress;
        } else if (const auto* report = std::get_if<WorkerReport>(&*message)) {
          if (const auto* wanted = std::get_if<Kind>(report)) return *wanted;
        }
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
  RankReport NextEvent() { return Next<RankReport>(); }

  const SystemClock clock_;
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
    const RankReport ready = NextEvent();
    EXPECT_EQ(ready.kind, RankEventKind::kReady);
    EXPECT_EQ(ready.epoch, Epoch(epoch));
    EXPECT_EQ(ready.device, DeviceId("n1/gpu0"));
    ASSERT_EQ(ready.transports.size(), 1u);
    EXPECT_EQ(ready.transports[0].group, 0);
    EXPECT_EQ(ready.transports[0].transport, Transport::kTcp);
    EXPECT_EQ(ready.transports[0].why_not_nccl, "no card");
    EXPECT_EQ(Next<StepReport>().stats.loss, 2.5);
    EXPECT_EQ(NextEvent().kind, RankEventKind::kFinished);
  }
  End();
  EXPECT_TRUE(end_.ok()) << end_;
  EXPECT_FALSE(orphaned_);
}

TEST_F(RankSessionTest, AStepHasWhatItsValidationGave) {
  Load(TestAssignment("train"));
  const StepStats stats = Next<StepReport>().stats;
  EXPECT_EQ(stats.validation_loss, 2.75);
  EXPECT_EQ(stats.validation_bits_per_byte, 1.5);
  EXPECT_EQ(NextEvent().kind, RankEventKind::kFinished);
}

TEST_F(RankSessionTest, AnAssignmentThatDoesNotParseEndsIt) {
  v1::ToRank message = wire::ToProto(RankCommand(StartCommand{{TestAssignment("train")}}));
  message.mutable_load()->set_program("nonsense");
  ASSERT_TRUE(WriteAll(fd_, EncodeFrame(message.SerializeAsString())).ok());
  thread_.join();
  EXPECT_THAT(std::string(end_.message()), HasSubstr("program"));
}

TEST_F(RankSessionTest, StopReachesTheEngine) {
  Load(TestAssignment("until-stopped"));
  Next<StepReport>();
  Stop();
  EXPECT_EQ(NextEvent().message, "stopped as asked");
}

TEST_F(RankSessionTest, ShowsWhenAStepsInstructionsRan) {
  const auto ask = [this](int64_t step) { Send(TraceCommand{JobId("job"), Epoch(1), 0, step}); };
  RankAssignment assignment = TestAssignment("train");
  assignment.config.training.steps = 20;
  Load(assignment);
  while (Next<StepReport>().stats.step < 20) continue;
  ask(20);
  const TraceReport newest = Next<TraceReport>();
  EXPECT_EQ(newest.error, "");
  EXPECT_EQ(newest.step, 20);
  EXPECT_EQ(newest.epoch, Epoch(1));
  EXPECT_EQ(newest.step_seconds, 0.5);
  ASSERT_EQ(newest.spans.size(), 1u);
  EXPECT_EQ(newest.spans[0].end, absl::Seconds(20));
  ask(2);
  EXPECT_THAT(Next<TraceReport>().error, HasSubstr("the newest: steps 5 to 20"));
}

TEST_F(RankSessionTest, AStepToComeIsShownWhenItIsDone) {
  Load(TestAssignment("wait-for-stop"));
  EXPECT_EQ(NextEvent().kind, RankEventKind::kReady);
  Send(TraceCommand{JobId("job"), Epoch(1), 0, 1});
  Stop();  // the engine makes its step, then it ends
  EXPECT_EQ(Next<TraceReport>().step, 1);
  EXPECT_EQ(NextEvent().kind, RankEventKind::kFinished);
}

TEST_F(RankSessionTest, StopEndsTheMeeting) {
  Load(TestAssignment("meet"));
  Next<KvGetReport>();
  EXPECT_EQ(Next<ProgressReport>().epoch, Epoch(1));
  Stop();
  EXPECT_EQ(NextEvent().kind, RankEventKind::kFinished);
}

TEST_F(RankSessionTest, ACoordinatorThatDoesNotAnswerIsNoFailureOfTheRank) {
  Load(TestAssignment("publish"));
  Next<PublishReport>();
  EXPECT_EQ(NextEvent().kind, RankEventKind::kPeerLost);
}

TEST_F(RankSessionTest, StepRecordsAreKeptWhenTheCoordinatorAllowsItAndBeforeTheLastWord) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/rank_session_records_", getpid());
  std::filesystem::create_directories(folder);
  for (const bool allowed : {true, false}) {
    RankAssignment assignment = TestAssignment("train", allowed ? 1 : 2);
    assignment.config.checkpoint.folder = folder;
    assignment.config.metrics.step_records = "csv";
    Load(assignment);
    const auto question = Next<PublishReport>();
    EXPECT_EQ(question.purpose, "keep step records");
    Send(PublishAnswerCommand{question.job, question.epoch, question.step, question.rank, allowed, "it is old",
                              question.question});
    EXPECT_EQ(NextEvent().kind, RankEventKind::kFinished);
    std::ifstream file(absl::StrCat(folder, "/steps/generation-0000000", assignment.epoch.value(), ".csv"));
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), allowed ? 4 : 0) << text;
  }
  std::filesystem::remove_all(folder);
}

TEST_F(RankSessionTest, TheFaultDecidesWhatIsReportedAndNotTheCode) {
  for (const auto& [behaviour, kind, fault] : {std::tuple{"peer", RankEventKind::kPeerLost, Fault::kPeer},
                                               {"disk", RankEventKind::kFailed, Fault::kStorage},
                                               {"damage", RankEventKind::kFailed, Fault::kDamage},
                                               {"fail", RankEventKind::kFailed, Fault::kOurs}}) {
    Load(TestAssignment(behaviour));
    EXPECT_EQ(NextEvent().kind, RankEventKind::kReady);
    const RankReport report = NextEvent();
    EXPECT_EQ(report.kind, kind) << behaviour;
    EXPECT_EQ(report.fault, fault) << behaviour;
    EXPECT_EQ(report.damaged_checkpoint, fault == Fault::kDamage ? "/c/step-00000040-gen-3" : "");
  }
}

TEST_F(RankSessionTest, SaysThatItLives) {
  Load(TestAssignment("meet"));
  Next<KvGetReport>();
  for (int i = 0; i < 3; ++i) Next<ProgressReport>();
}

TEST_F(RankSessionTest, AnOrphanWithABusyEngineIsTold) {
  Load(TestAssignment("meet"));
  Next<KvGetReport>();
  End();
  EXPECT_TRUE(orphaned_);
}

TEST_F(RankSessionTest, BytesThatAreNoMessageEndIt) {
  ASSERT_TRUE(WriteAll(fd_, std::string(8, '\xff')).ok());
  thread_.join();
  EXPECT_EQ(end_.code(), absl::StatusCode::kDataLoss);
}

TEST_F(RankSessionTest, MeasuresWhatIsAsked) {
  Send(ProfileCommand{JobId("job"), Epoch(5), {TestAssignment("measure", 5)}, {DeviceId("n1/gpu0")}, false, "probe"});
  const ProfileReport report = Next<ProfileReport>();
  EXPECT_EQ(report.epoch, Epoch(5));
  EXPECT_EQ(report.check_id, "probe");
  ASSERT_EQ(report.compute.size(), 1u);
  EXPECT_EQ(report.compute[0].context_bytes, 7);
  EXPECT_TRUE(report.collectives.points.empty());
}

}  // namespace
}  // namespace motley::worker
