// A carry from the coordinator's word to the disk: a coordinator that asks, and this test program as the process that gives.
#include "worker/daemon/carrier.h"

#include <gmock/gmock.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/checkpoint/block_parts.h"
#include "common/inputs/input_list.h"
#include "common/rpc/channel.h"
#include "proto/motley/v1/worker.grpc.pb.h"
#include "tests/common/base/patience.h"
#include "tests/worker/files/saved_checkpoint.h"
#include "worker/files/input_folder.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

// Reads once from whoever comes.
class AskingCoordinator : public v1::WorkerService::Service {
 public:
  struct Heard {
    std::string carry_id;
    std::map<int64_t, std::string> blocks;
    std::optional<v1::CarryEnd> end;
    absl::Status parts;
  };

  AskingCoordinator() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~AskingCoordinator() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  grpc::Status Carry(grpc::ServerContext*, grpc::ServerReaderWriter<v1::CarryMessage, v1::CarryMessage>* stream) override {
    Heard heard;
    v1::CarryMessage message;
    stream->Read(&message);
    heard.carry_id = message.carry_id();
    for (const std::vector<int64_t>& asked : reads) {
      BlockParts parts(asked, kCheckpointBlockBytes, [&](int64_t block, std::string_view bytes) {
        heard.blocks[block] = std::string(bytes);
        return absl::OkStatus();
      });
      v1::CarryMessage read;
      read.mutable_read()->mutable_blocks()->Add(asked.begin(), asked.end());
      stream->Write(read);
      while (stream->Read(&message) && message.has_part()) {
        heard.parts.Update(parts.Add(message.part().block(), message.part().bytes()));
      }
      heard.parts.Update(parts.Finish());
      if (!message.answered()) break;
    }
    if (message.has_end()) heard.end = message.end();
    absl::MutexLock lock(&mutex_);
    heard_ = heard;
    return grpc::Status::OK;
  }
  std::optional<Heard> heard() {
    absl::MutexLock lock(&mutex_);
    const auto has = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return heard_.has_value(); };
    mutex_.AwaitWithTimeout(absl::Condition(&has), Patience(absl::Seconds(30)));
    return std::exchange(heard_, std::nullopt);
  }

  std::vector<std::vector<int64_t>> reads = {{0}};

 private:
  absl::Mutex mutex_;
  std::optional<Heard> heard_ ABSL_GUARDED_BY(mutex_);
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class CarrierTest : public ::testing::Test {
 protected:
  CarrierTest() {
    carrier_.SetOpener(
        [this]() -> absl::StatusOr<std::shared_ptr<grpc::Channel>> { return OpenChannel(coordinator_.address()); });
  }
  AskingCoordinator::Heard Carried(const std::string& file, const std::string& checkpoint) {
    carrier_.Carry({saved_.job, Epoch(3), saved_.uid, "carry-1", checkpoint, file});
    const auto heard = coordinator_.heard();
    EXPECT_TRUE(heard.has_value());
    return heard.value_or(AskingCoordinator::Heard());
  }
  AskingCoordinator::Heard Carried(const std::string& file) { return Carried(file, saved_.name); }

  const SavedCheckpoint saved_;
  const TempFolder local_;
  AskingCoordinator coordinator_;
  Carrier carrier_{{.local = local_.path()}};
};

TEST_F(CarrierTest, GivesWhatIsRead) {
  saved_.PutOn(local_.path(), {"rank-0.bin"});
  coordinator_.reads = {{1}, {0}};
  const AskingCoordinator::Heard heard = Carried("rank-0.bin");
  EXPECT_EQ(heard.carry_id, "carry-1");
  EXPECT_TRUE(heard.parts.ok()) << heard.parts;
  const std::string bytes = saved_.Bytes("rank-0.bin");
  constexpr size_t kBlock = static_cast<size_t>(kCheckpointBlockBytes);
  ASSERT_EQ(heard.blocks.size(), 2u);
  for (const auto& [block, text] : heard.blocks) {
    EXPECT_TRUE(text == bytes.substr(static_cast<size_t>(block) * kBlock, kBlock)) << block;
  }
  coordinator_.reads = {{0}};
  EXPECT_EQ(Carried("").blocks.at(0), saved_.text) << "the manifest";
}

TEST_F(CarrierTest, SaysWhyItGivesNothing) {
  saved_.PutOn(local_.path(), {"rank-0.bin"});
  const auto refused = [&](const std::string& file, const std::string& checkpoint) {
    const AskingCoordinator::Heard heard = Carried(file, checkpoint);
    EXPECT_TRUE(heard.end.has_value()) << file;
    return heard.end.value_or(v1::CarryEnd());
  };
  EXPECT_EQ(refused("rank-1.bin", saved_.name).code(), static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_THAT(refused("rank-1.bin", saved_.name).error(), HasSubstr("rank-1.bin of step-00000040-gen-3 is not here"));
  EXPECT_EQ(refused("../manifest.json", saved_.name).code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(refused("rank-0.bin", "../x").code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
  coordinator_.reads = {{9}};
  EXPECT_EQ(refused("rank-0.bin", saved_.name).code(), static_cast<int>(absl::StatusCode::kOutOfRange));
}

// By reading from whoever has it; then it is whole on this disk.
TEST_F(CarrierTest, TakesAnInput) {
  const TempFolder laptop;
  const std::string text(static_cast<size_t>(kCheckpointBlockBytes) + 7, 't');
  laptop.Write("words/a.txt", text);
  laptop.Write("words/b.txt", "b");
  const InputList list = ListInput(laptop / "words", [](int64_t, int64_t) { return true; }).value();
  const JobInput input = InputOf(list);
  class Giving : public v1::WorkerService::Service {
   public:
    grpc::Status Carry(grpc::ServerContext*, grpc::ServerReaderWriter<v1::CarryMessage, v1::CarryMessage>* stream) override {
      v1::CarryMessage message;
      stream->Read(&message);
      while (stream->Read(&message) && message.has_read()) {
        const v1::CarryRead read = message.read();
        for (const int64_t block : read.blocks()) {
          const std::string& all = files.at(read.file());
          const size_t size = read.file().empty() ? all.size() : static_cast<size_t>(kCheckpointBlockBytes);
          message.mutable_part()->set_block(block);
          message.mutable_part()->set_bytes(all.substr(static_cast<size_t>(block) * size, size));
          stream->Write(message);
        }
        message.set_answered(true);
        stream->Write(message);
      }
      end = message.end();
      ended.Notify();
      return grpc::Status::OK;
    }
    std::map<std::string, std::string> files;
    v1::CarryEnd end;
    absl::Notification ended;
  } giving;
  giving.files = {{"", InputListToJson(list)}, {"words/a.txt", text}, {"words/b.txt", "b"}};
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(&giving);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Carrier carrier({.local = local_.path()});
  carrier.SetOpener([port]() -> absl::StatusOr<std::shared_ptr<grpc::Channel>> {
    grpc::ChannelArguments arguments = DirectArguments();
    arguments.SetMaxReceiveMessageSize(-1);
    return OpenChannel(absl::StrCat("127.0.0.1:", port), arguments);
  });
  CarryCommand command{saved_.job, Epoch(3), saved_.uid, "carry-4"};
  command.input = input.id;
  command.kept_inputs = {std::string(64, '1'), std::string(64, '2')};
  carrier.Carry(command);
  ASSERT_TRUE(giving.ended.WaitForNotificationWithTimeout(Patience(absl::Seconds(30))));
  EXPECT_EQ(giving.end.code(), 0) << giving.end.error();
  EXPECT_TRUE(TempFolder::Read(LocalPathOf(local_.path(), input) + "/a.txt") == text);
  EXPECT_EQ(TempFolder::Read(LocalPathOf(local_.path(), input) + "/b.txt"), "b");
  server->Shutdown();
}

TEST_F(CarrierTest, SaysThatItsProgramCannotBeRun) {
  Carrier carrier({.program = local_ / "none", .local = local_.path()});
  carrier.SetOpener([this]() -> absl::StatusOr<std::shared_ptr<grpc::Channel>> { return OpenChannel(coordinator_.address()); });
  carrier.Carry({saved_.job, Epoch(3), saved_.uid, "carry-2", saved_.name, ""});
  const auto heard = coordinator_.heard();
  ASSERT_TRUE(heard && heard->end);
  EXPECT_EQ(heard->end->code(), static_cast<int>(absl::StatusCode::kUnavailable)) << heard->end->error();
}

// A coordinator that never ends it, as of a person who does not read.
TEST_F(CarrierTest, ItsEndBreaksOffWhatIsUnderWay) {
  class Silent : public v1::WorkerService::Service {
   public:
    grpc::Status Carry(grpc::ServerContext*, grpc::ServerReaderWriter<v1::CarryMessage, v1::CarryMessage>* stream) override {
      v1::CarryMessage message;
      stream->Read(&message);
      came.Notify();
      while (stream->Read(&message)) {
      }
      return grpc::Status::OK;
    }
    absl::Notification came;
  } silent;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&silent);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  saved_.PutOn(local_.path(), {"rank-0.bin"});
  {
    Carrier carrier({.local = local_.path()});
    carrier.SetOpener(
        [port]() -> absl::StatusOr<std::shared_ptr<grpc::Channel>> { return OpenChannel(absl::StrCat("127.0.0.1:", port)); });
    carrier.Carry({saved_.job, Epoch(3), saved_.uid, "carry-3", saved_.name, ""});
    silent.came.WaitForNotification();
  }
  server->Shutdown();
}

}  // namespace
}  // namespace motley::worker
