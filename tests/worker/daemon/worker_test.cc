#include "worker/daemon/worker.h"

#include <gmock/gmock.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "common/base/landlock.h"
#include "common/wire/session.h"
#include "tests/common/base/patience.h"
#include "tests/worker/daemon/fake_cards.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

TEST(Worker, RemembersTheHighestMarkOfAStore) {
  const StoreMark known{"a", 10};
  EXPECT_EQ(Remembered(known, {"a", 11}), (StoreMark{"a", 11}));
  EXPECT_EQ(Remembered(known, {"a", 9}), known);
  EXPECT_EQ(Remembered(known, {"", 99}), known) << "none was told";
  EXPECT_EQ(Remembered(known, {"b", 1}), (StoreMark{"b", 1})) << "another store";
}

// Greets a worker, tells it of an epoch and a mark and breaks the stream, until a hello says that it knows.
class Greeter : public v1::WorkerService::Service {
 public:
  Greeter() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Greeter() override { server_->Shutdown(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::Status Session(grpc::ServerContext*,
                       grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>* stream) override {
    v1::WorkerMessage message;
    if (!stream->Read(&message)) return grpc::Status::OK;
    const NodeDescription said = *wire::FromProto(message.hello());
    v1::CoordinatorMessage welcome;
    welcome.mutable_welcome()->set_lease_ms(30'000);
    *welcome.mutable_welcome()->mutable_store_mark() = wire::ToProto(StoreMark{"store", 5, "five"});
    welcome.mutable_welcome()->set_key_id("key");
    stream->Write(welcome);
    if (!said.newest_epochs.empty()) {
      hello.set_value(said);
      while (stream->Read(&message)) {
      }
      return grpc::Status::OK;
    }
    stream->Write(wire::ToProto(CoordinatorCommand(StopCommand{JobId("job"), Epoch(7), false, "over", "seven"})));
    stream->Write(wire::ToProto(CoordinatorCommand(HeartbeatAnswer{{"store", 6, "six"}})));
    while (stream->Read(&message) && !message.has_heartbeat()) {
    }
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "restarting");
  }

  std::promise<NodeDescription> hello;

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(Worker, EachHelloTellsWhatWasSeenAndWherePeersMayTry) {
  Greeter greeter;
  WorkerConfig config;
  config.name = "n1";
  config.coordinators = {greeter.address()};
  config.metrics.clear();
  const SystemClock clock;
  auto worker = Worker::Start(config, clock, {});
  ASSERT_TRUE(worker.ok()) << worker.status();
  std::future<NodeDescription> second = greeter.hello.get_future();
  ASSERT_EQ(second.wait_for(absl::ToChronoSeconds(Patience(absl::Seconds(20)))), std::future_status::ready);
  const NodeDescription hello = second.get();
  EXPECT_EQ(hello.name, NodeName("n1"));
  EXPECT_EQ(hello.store_mark, (StoreMark{"store", 6, "six"}));
  EXPECT_EQ(hello.newest_epochs, (std::vector<SeenEpoch>{{JobId("job"), Epoch(7), "seven", "key"}}));
  absl::Notification never;
  const ReachReport reach =
      CheckReach({"probe", {{hello.name, "127.0.0.1", hello.reach_port}}}, "", clock, absl::Seconds(3), never);
  EXPECT_EQ(reach.answers[0].error, "");
  worker->reset();
}

TEST(Worker, AHelloHasTheNodesCards) {
  FakeCards fake;
  const TempFolder locks;
  setenv("MOTLEY_RUN_FOLDER", locks.path().c_str(), 1);
  fake.Add();
  fake.Add()["mode"] = 2;
  fake.Write();
  Greeter greeter;
  WorkerConfig config;
  config.name = "n1";
  config.coordinators = {greeter.address()};
  config.rank_binary = "/proc/self/exe";
  const SystemClock clock;
  auto worker = Worker::Start(config, clock, {});
  unsetenv("MOTLEY_RUN_FOLDER");
  ASSERT_TRUE(worker.ok()) << worker.status();
  std::future<NodeDescription> second = greeter.hello.get_future();
  ASSERT_EQ(second.wait_for(absl::ToChronoSeconds(Patience(absl::Seconds(20)))), std::future_status::ready);
  const NodeDescription hello = second.get();
  ASSERT_EQ(hello.devices.size(), 1u);
  EXPECT_EQ(hello.devices[0].id, DeviceId("n1/gpu0"));
  EXPECT_EQ(hello.devices[0].kind, DeviceKind::kCuda);
  EXPECT_EQ(hello.devices[0].card.uuid, "GPU-0abc0");
  ASSERT_EQ(hello.unused_cards.size(), 1u);
  EXPECT_THAT(hello.unused_cards[0].reason, HasSubstr("compute mode is prohibited"));
  EXPECT_GT(hello.host_memory_bytes, 0);
  EXPECT_EQ(hello.files_not_held.empty(), LandlockVersion().ok()) << hello.files_not_held;
  EXPECT_EQ(CardClaim::Take(locks.path(), "GPU-0abc0").status().code(), absl::StatusCode::kAlreadyExists);
  worker->reset();
  EXPECT_TRUE(CardClaim::Take(locks.path(), "GPU-0abc0").ok());
}

TEST(Worker, ADataAddressOfAnotherMachineIsRefused) {
  WorkerConfig config;
  config.name = "n1";
  config.data_address = "192.0.2.1";
  config.metrics.clear();
  const SystemClock clock;
  const absl::Status status = Worker::Start(config, clock, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("192.0.2.1"));
}

}  // namespace
}  // namespace motley::worker
