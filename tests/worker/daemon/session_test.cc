#include "worker/daemon/session.h"

#include <gmock/gmock.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <sysexits.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "common/wire/session.h"
#include "tests/common/base/patience.h"
#include "worker/daemon/flags.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

// What a coordinator says to one session: hears everything, welcomes or refuses.
class FakeCoordinator : public v1::WorkerService::Service {
 public:
  grpc::Status Session(grpc::ServerContext*,
                       grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>* stream) override {
    v1::WorkerMessage message;
    if (!stream->Read(&message)) return grpc::Status::OK;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      heard_.push_back(message);
      changed_.notify_all();
      if (refusal_) return *refusal_;
    }
    v1::CoordinatorMessage welcome;
    welcome.mutable_welcome()->set_lease_ms(300);
    welcome.mutable_welcome()->mutable_store_mark()->set_commits(17);
    welcome.mutable_welcome()->set_key_id("key");
    stream->Write(welcome);
    stream->Write(first_message_);
    while (stream->Read(&message)) {
      if (answers_ && message.has_heartbeat()) stream->Write(wire::ToProto(CoordinatorCommand(HeartbeatAnswer{})));
      std::lock_guard<std::mutex> lock(mutex_);
      heard_.push_back(message);
      changed_.notify_all();
      if (break_after_ > 0 && --break_after_ == 0) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "restarting");
    }
    std::lock_guard<std::mutex> lock(mutex_);
    ++goodbyes_;
    changed_.notify_all();
    return grpc::Status::OK;
  }

  bool WaitUntil(const std::function<bool(FakeCoordinator&)>& condition,
                 std::chrono::milliseconds patience = absl::ToChronoMilliseconds(Patience(absl::Seconds(20)))) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return condition(*this); });
  }
  // What a condition looks at changes here alone.
  void Change(const std::function<void()>& change) {
    std::lock_guard<std::mutex> lock(mutex_);
    change();
    changed_.notify_all();
  }
  int Count(v1::WorkerMessage::MessageCase kind) const {
    return static_cast<int>(std::count_if(heard_.begin(), heard_.end(), [&](const auto& m) { return m.message_case() == kind; }));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::WorkerMessage> heard_;
  std::optional<grpc::Status> refusal_;
  int break_after_ = 0, goodbyes_ = 0;
  v1::CoordinatorMessage first_message_ =
      wire::ToProto(CoordinatorCommand(StopCommand{JobId("job"), Epoch(1), false, "to the worker"}));
  std::atomic<bool> answers_{true};  // heartbeats
};

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() { Listen("127.0.0.1:0"); }

  void Listen(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&coordinator_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  std::string Address() const { return "127.0.0.1:" + std::to_string(port_); }

  std::unique_ptr<Session> Dial() { return Dial(system_clock_); }
  std::unique_ptr<Session> Dial(const Clock& clock) {
    SessionConfig config;
    config.coordinators = {named_.empty() ? Address() : named_};
    config.first_pause = absl::Milliseconds(10);
    config.longest_pause = absl::Milliseconds(100);
    config.credentials = credentials_;
    Session::Handler handler;
    handler.hello = [this] {
      NodeDescription node;
      node.name = NodeName("n1");
      node.incarnation = 42;
      node.newest_epochs = {{JobId("job"), Epoch(++dials_), "token", "key"}};
      return node;
    };
    handler.on_command = [this](const CoordinatorCommand& command) {
      coordinator_.Change([&] { received_.push_back(command); });
    };
    handler.on_connected = [this](const StoreMark& mark, const std::string& key_id, const std::string& address,
                                  const ChannelOpener&) {
      coordinator_.Change([&] {
        ++connected_;
        mark_ = mark;
        key_id_ = key_id;
        address_ = address;
      });
    };
    handler.on_disconnected = [this](const std::string&) { coordinator_.Change([&] { ++disconnected_; }); };
    handler.on_refused = [this](absl::Status status) { coordinator_.Change([&] { refused_ = status; }); };
    return std::make_unique<Session>(config, handler, clock, outbox_);
  }

  FakeCoordinator coordinator_;
  int port_ = 0;
  std::string named_;  // the coordinator's address, by another name
  std::unique_ptr<grpc::Server> server_;
  Outbox outbox_;
  const SystemClock system_clock_;
  int dials_ = 0;  // session's thread
  std::vector<CoordinatorCommand> received_;
  StoreMark mark_;
  std::string key_id_, address_;
  std::atomic<int> connected_{0}, disconnected_{0};
  absl::Status refused_;
  decltype(SessionConfig::credentials) credentials_;
};

WorkerReport Event(int rank) { return RankReport{JobId("job"), Epoch(1), rank}; }

TEST_F(SessionTest, SaysHelloBeatsRelaysAndSaysGoodbye) {
  auto session = Dial();
  outbox_.Push(Event(7));
  EXPECT_TRUE(coordinator_.WaitUntil([](FakeCoordinator& c) {
    return c.Count(v1::WorkerMessage::kHeartbeat) >= 3 && c.Count(v1::WorkerMessage::kRankEvent) == 1;
  }));
  EXPECT_TRUE(coordinator_.WaitUntil([&](FakeCoordinator& c) { return received_.size() >= 3; }));
  EXPECT_EQ(coordinator_.heard_[0].hello().incarnation(), 42);
  EXPECT_EQ(std::get<StopCommand>(received_[0]).reason, "to the worker");
  EXPECT_TRUE(std::holds_alternative<HeartbeatAnswer>(received_[1]));
  EXPECT_EQ(mark_.commits, 17);
  EXPECT_EQ(key_id_, "key");
  session.reset();
  EXPECT_TRUE(coordinator_.WaitUntil([](FakeCoordinator& c) { return c.goodbyes_ == 1; }));
}

TEST_F(SessionTest, ComesBackAfterABrokenStreamWithWhatWaited) {
  coordinator_.break_after_ = 1;
  auto session = Dial();
  EXPECT_TRUE(coordinator_.WaitUntil([&](FakeCoordinator& c) { return disconnected_ == 1; }));
  outbox_.Push(Event(1));
  EXPECT_TRUE(coordinator_.WaitUntil([](FakeCoordinator& c) { return c.Count(v1::WorkerMessage::kRankEvent) == 1; }));
  EXPECT_EQ(connected_, 2);
  std::vector<int64_t> epochs;
  for (const v1::WorkerMessage& message : coordinator_.heard_) {
    if (message.has_hello()) epochs.push_back(message.hello().newest_epochs(0).epoch());
  }
  EXPECT_THAT(epochs, testing::ElementsAre(1, 2)) << "each hello is new";
}

TEST_F(SessionTest, WaitsForACoordinatorThatIsNotThereYet) {
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
  auto session = Dial();
  Listen(Address());
  EXPECT_TRUE(coordinator_.WaitUntil([&](FakeCoordinator&) { return connected_ == 1; }));
}

TEST_F(SessionTest, ANameIsLookedUpAndAllThatItStandsForIsDialed) {
  named_ = "localhost:" + std::to_string(port_);  // ::1 comes first where there is IPv6, and nobody listens there
  auto session = Dial();
  EXPECT_TRUE(coordinator_.WaitUntil([&](FakeCoordinator&) { return connected_ == 1; }));
  EXPECT_EQ(address_, named_) << "said as it is configured";
}

TEST_F(SessionTest, AProxyOfTheEnvironmentIsNotAsked) {
  setenv("http_proxy", "http://127.0.0.1:9", 1);
  auto session = Dial();
  EXPECT_TRUE(coordinator_.WaitUntil([&](FakeCoordinator&) { return connected_ == 1; }));
  unsetenv("http_proxy");
}

TEST_F(SessionTest, RefusalsEndIt) {
  for (const auto& [code, wanted] : {std::pair(grpc::StatusCode::FAILED_PRECONDITION, absl::StatusCode::kFailedPrecondition),
                                     std::pair(grpc::StatusCode::UNIMPLEMENTED, absl::StatusCode::kUnimplemented),
                                     std::pair(grpc::StatusCode::ALREADY_EXISTS, absl::StatusCode::kAlreadyExists)}) {
    refused_ = absl::OkStatus();
    coordinator_.refusal_ = grpc::Status(code, "version '9'");
    auto session = Dial();
    EXPECT_TRUE(coordinator_.WaitUntil([&](FakeCoordinator&) { return !refused_.ok(); }));
    EXPECT_EQ(refused_.code(), wanted);
    EXPECT_THAT(std::string(refused_.message()), HasSubstr("the coordinator at " + Address() + " refused this worker: "));
    EXPECT_THAT(std::string(refused_.message()), HasSubstr("version '9'"));
  }
  EXPECT_EQ(connected_, 0);
  EXPECT_EQ(ExitCode(absl::FailedPreconditionError("")), EX_CONFIG);
  EXPECT_EQ(ExitCode(absl::UnavailableError("")), EX_UNAVAILABLE) << "the unit starts it again: clocks get set, cards come up";
  EXPECT_EQ(ExitCode(absl::UnimplementedError("")), EX_TEMPFAIL) << "the coordinator may be upgraded a moment later";
}

TEST_F(SessionTest, OwnFilesThatCannotBeReadAreNobodysRefusal) {
  credentials_ = [](const std::shared_ptr<ShownCertificate>&) {
    return absl::FailedPreconditionError("cannot read /identity/node.key: No such file or directory");
  };
  auto session = Dial();
  EXPECT_TRUE(coordinator_.WaitUntil([&](FakeCoordinator&) { return !refused_.ok(); }));
  EXPECT_EQ(refused_.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused_.message(), "this worker cannot ask the coordinator at " + Address() +
                                    " to let it in: cannot read /identity/node.key: No such file or directory");
}

TEST_F(SessionTest, WhoWasWelcomeBeforeIsToBeStartedAgain) {
  auto session = Dial();
  ASSERT_TRUE(coordinator_.WaitUntil([&](FakeCoordinator&) { return connected_ == 1; }));
  coordinator_.Change([&] {
    coordinator_.refusal_ = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "hello holds a number");
    coordinator_.break_after_ = 1;
  });
  EXPECT_TRUE(coordinator_.WaitUntil([&](FakeCoordinator&) { return !refused_.ok(); }));
  EXPECT_EQ(refused_.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(refused_.message()), HasSubstr("hello holds a number"));
  EXPECT_EQ(ExitCode(refused_), EX_TEMPFAIL) << "systemd starts it again; not after 78";
}

TEST_F(SessionTest, ACoordinatorThatSaysNothingForALeaseIsGivenUpAndDialedAnew) {
  FakeClock clock;
  coordinator_.answers_ = false;
  auto session = Dial(clock);
  ASSERT_TRUE(coordinator_.WaitUntil(
      [&](FakeCoordinator& c) { return c.Count(v1::WorkerMessage::kHeartbeat) == 1 && received_.size() == 1; }));
  clock.MoveWall(-absl::Hours(1));
  EXPECT_EQ(disconnected_, 0);
  clock.Advance(absl::Milliseconds(299));
  EXPECT_TRUE(coordinator_.WaitUntil([](FakeCoordinator& c) { return c.Count(v1::WorkerMessage::kHeartbeat) == 2; }))
      << "whatever the wall clock says";
  EXPECT_EQ(disconnected_, 0);
  clock.Advance(absl::Milliseconds(2));
  EXPECT_TRUE(coordinator_.WaitUntil([&](FakeCoordinator&) { return disconnected_ == 1; }));
  coordinator_.answers_ = true;
  const auto connected_again = [&](FakeCoordinator&) { return connected_ == 2; };
  for (int i = 0; i < 1000 && !coordinator_.WaitUntil(connected_again, std::chrono::milliseconds(20)); ++i) {
    clock.Advance(absl::Milliseconds(20));  // the pause before the next attempt begins when it begins
  }
  EXPECT_EQ(connected_, 2);
}

TEST_F(SessionTest, AnAssignmentThatDoesNotParseIsAnswered) {
  RankReport failed;
  v1::RankAssignment* rank = coordinator_.first_message_.mutable_start_epoch()->add_ranks();
  rank->set_job_id("job");
  rank->set_epoch(4);
  rank->set_rank(7);
  rank->mutable_device()->set_id("n1/gpu0");
  auto session = Dial();
  ASSERT_TRUE(coordinator_.WaitUntil([](FakeCoordinator& c) { return c.Count(v1::WorkerMessage::kRankEvent) == 1; }));
  for (const v1::WorkerMessage& message : coordinator_.heard_) {
    if (message.has_rank_event()) failed = std::get<RankReport>(*wire::FromProto(message));
  }
  EXPECT_EQ(failed.kind, RankEventKind::kFailed);
  EXPECT_EQ(failed.epoch, Epoch(4));
  EXPECT_EQ(failed.device, DeviceId("n1/gpu0"));
  EXPECT_THAT(failed.message, HasSubstr("rank must be in"));
}

TEST_F(SessionTest, EndsWhileNobodyAnswers) {
  server_->Shutdown(std::chrono::system_clock::now());
  Dial().reset();  // without an end it would be named as a test that does not end
}

}  // namespace
}  // namespace motley::worker
