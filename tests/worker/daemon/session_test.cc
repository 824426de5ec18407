#include "worker/daemon/session.h"

#include <gmock/gmock.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "absl/time/clock.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

// What a coordinator says to one session: hears everything, welcomes or refuses.
class FakeCoordinator : public v1::WorkerService::Service {
 public:
  grpc::Status Session(grpc::ServerContext*, grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>* stream) override {
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
    stream->Write(welcome);
    v1::CoordinatorMessage stop;
    stop.mutable_stop_epoch()->set_reason("to the worker");
    stream->Write(stop);
    while (stream->Read(&message)) {
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

  bool WaitUntil(const std::function<bool(FakeCoordinator&)>& condition) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return condition(*this); });
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

  std::unique_ptr<Session> Dial() {
    SessionConfig config;
    config.coordinator = Address();
    config.hello.set_node("n1");
    config.hello.set_incarnation(42);
    config.first_pause = absl::Milliseconds(10);
    config.longest_pause = absl::Milliseconds(100);
    Session::Handler handler;
    handler.on_message = [this](const v1::CoordinatorMessage& message) {
      coordinator_.Change([&] { received_.push_back(message); });
    };
    handler.on_connected = [this] { coordinator_.Change([&] { ++connected_; }); };
    handler.on_disconnected = [this](const std::string&) { coordinator_.Change([&] { ++disconnected_; }); };
    handler.on_refused = [this](absl::Status status) { coordinator_.Change([&] { refused_ = status; }); };
    return std::make_unique<Session>(config, handler, outbox_);
  }

  FakeCoordinator coordinator_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  Outbox outbox_;
  std::vector<v1::CoordinatorMessage> received_;
  std::atomic<int> connected_{0}, disconnected_{0};
  absl::Status refused_;
};

v1::WorkerMessage Event(int rank) {
  v1::WorkerMessage message;
  message.mutable_rank_event()->set_rank(rank);
  return message;
}

TEST_F(SessionTest, SaysHelloBeatsRelaysAndSaysGoodbye) {
  auto session = Dial();
  outbox_.Push(Event(7));
  EXPECT_TRUE(coordinator_.WaitUntil([](FakeCoordinator& c) {
    return c.Count(v1::WorkerMessage::kHeartbeat) >= 3 && c.Count(v1::WorkerMessage::kRankEvent) == 1;
  }));
  EXPECT_TRUE(coordinator_.WaitUntil([&](FakeCoordinator& c) { return received_.size() == 1; }));
  EXPECT_EQ(coordinator_.heard_[0].hello().incarnation(), 42);
  EXPECT_EQ(received_[0].stop_epoch().reason(), "to the worker");
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
  EXPECT_EQ(coordinator_.Count(v1::WorkerMessage::kHello), 2);
}

TEST_F(SessionTest, WaitsForACoordinatorThatIsNotThereYet) {
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
  auto session = Dial();
  Listen(Address());
  EXPECT_TRUE(coordinator_.WaitUntil([&](FakeCoordinator&) { return connected_ == 1; }));
}

TEST_F(SessionTest, RefusalsEndIt) {
  for (const auto& [code, wanted] : {std::pair(grpc::StatusCode::FAILED_PRECONDITION, absl::StatusCode::kFailedPrecondition),
                                     std::pair(grpc::StatusCode::ALREADY_EXISTS, absl::StatusCode::kAlreadyExists)}) {
    refused_ = absl::OkStatus();
    coordinator_.refusal_ = grpc::Status(code, "version '9'");
    auto session = Dial();
    EXPECT_TRUE(coordinator_.WaitUntil([&](FakeCoordinator&) { return !refused_.ok(); }));
    EXPECT_EQ(refused_.code(), wanted);
    EXPECT_THAT(std::string(refused_.message()), HasSubstr("version '9'"));
  }
  EXPECT_EQ(connected_, 0);
}

TEST_F(SessionTest, EndsWhileNobodyAnswers) {
  server_->Shutdown(std::chrono::system_clock::now());
  const absl::Time begin = absl::Now();
  Dial().reset();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
}

}  // namespace
}  // namespace motley::worker
