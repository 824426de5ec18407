// What an export brings from the nodes' disks, by a coordinator that plays the nodes, too.
#include "coordinator/client/carried_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "common/base/fault.h"
#include "common/checkpoint/needed_blocks.h"
#include "common/checkpoint/resume_folder.h"
#include "tests/coordinator/client/fake_motley.h"
#include "tests/worker/files/saved_checkpoint.h"

namespace motley::client {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using worker::SavedCheckpoint;

const SavedCheckpoint& Saved() {
  static const auto& saved = *new SavedCheckpoint(8192);  // large enough that some blocks have no parameter
  return saved;
}

// Nodes that have files of the saved checkpoint.
class CarryingMotley : public FakeMotley {
 public:
  struct Node {
    std::set<std::string> files;                                       // "": the manifest
    std::function<std::string(int64_t block, std::string part)> give;  // what it makes of a part
    std::function<bool()> lives = [] { return true; };                 // asked before each part
  };
  using Stream = grpc::ServerReaderWriter<v1::CarryMessage, v1::CarryMessage>;

  grpc::Status Carry(grpc::ServerContext*, Stream* stream) override {
    v1::CarryMessage message;
    if (!stream->Read(&message) || !message.has_begin()) return {grpc::StatusCode::INVALID_ARGUMENT, "no begin"};
    const v1::CarryBegin begin = message.begin();
    if (on_begin) {
      if (const grpc::Status refused = on_begin(begin); !refused.ok()) return refused;
    }
    const std::set<std::string> not_from(begin.not_from().begin(), begin.not_from().end());
    const auto node = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& each) {
      return each.second.files.contains(begin.file()) && !not_from.contains(each.first);
    });
    if (node == nodes_.end()) return {grpc::StatusCode::NOT_FOUND, "no other node that is here has " + begin.file()};
    message.mutable_begun()->set_checkpoint(Saved().name);
    message.mutable_begun()->set_manifest_sha256(digest);
    message.mutable_begun()->set_node(node->first);
    message.mutable_begun()->set_mark(std::string(32, 'f'));
    stream->Write(message);
    const std::string bytes = begin.file().empty() ? manifest : Saved().Bytes(begin.file());
    while (stream->Read(&message) && message.has_read()) {
      const std::vector<int64_t> blocks(message.read().blocks().begin(), message.read().blocks().end());
      for (const int64_t block : blocks) {
        if (!Give(*stream, node->second, block, bytes, begin.file())) return {grpc::StatusCode::UNAVAILABLE, "it is gone"};
      }
      message.set_answered(true);
      stream->Write(message);
    }
    return grpc::Status::OK;
  }

  std::map<std::string, Node> nodes_;
  std::function<grpc::Status(const v1::CarryBegin&)> on_begin;
  std::string manifest = Saved().text, digest = ManifestDigest(manifest);
  std::map<std::pair<std::string, int64_t>, int> given;  // of ranks' files: how often each block went out whole

 private:
  bool Give(Stream& stream, const Node& node, int64_t block, const std::string& bytes, const std::string& file) {
    const size_t size = file.empty() ? bytes.size() : static_cast<size_t>(kCheckpointBlockBytes), begin = block * size;
    constexpr size_t kPart = size_t{128} << 10;
    for (size_t at = begin; at < std::min(bytes.size(), begin + size); at += kPart) {
      if (!node.lives()) return false;
      v1::CarryMessage message;
      message.mutable_part()->set_block(block);
      std::string part = bytes.substr(at, std::min({kPart, begin + size - at, bytes.size() - at}));
      message.mutable_part()->set_bytes(node.give ? node.give(block, part) : part);
      stream.Write(message);
    }
    if (!file.empty()) ++given[{file, block}];
    return true;
  }
};

class CarriedCheckpointTest : public ::testing::Test {
 protected:
  CarriedCheckpointTest() {
    for (const char* node : {"a", "b"}) fake_.nodes_[node].files = {"", "rank-0.bin", "rank-1.bin"};
  }
  absl::StatusOr<FoundCheckpoint> Carry(CarriedBlocks which, absl::Duration patience = absl::ZeroDuration()) {
    auto connection = Connection::Open(fake_.address(), {});
    if (!connection.ok()) return connection.status();
    FileCarrier carrier(*connection, {.pause = [](absl::Duration) {}, .patience = patience});
    return CarryCheckpoint(carrier, Saved().job, Saved().uid, into(), which, [&](const CarriedBytes& bytes) { told_ = bytes; });
  }
  std::string into() const { return root_ / "into"; }
  void ExpectWhole() const {
    for (const std::string& file : Saved().files) {
      EXPECT_TRUE(TempFolder::Read(into() + "/" + Saved().name + "/" + file) == Saved().Bytes(file)) << file;
    }
  }
  int GivenInAll() const {
    int all = 0;
    for (const auto& [block, times] : fake_.given) all += times;
    return all;
  }
  static int BlocksIn(const std::vector<std::vector<int64_t>>& blocks) {
    int count = 0;
    for (const auto& of_file : blocks) count += static_cast<int>(of_file.size());
    return count;
  }
  static int AllBlocksOfBoth() {
    int all = 0;
    for (const CheckpointFile& file : Saved().manifest.files) all += static_cast<int>(file.blocks.size());
    return all;
  }

  const TempFolder root_;
  CarryingMotley fake_;
  CarriedBytes told_;
};

TEST_F(CarriedCheckpointTest, BringsWhatAnExportReadsAndNoMore) {
  const auto found = Carry(CarriedBlocks::kParameters);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->manifest.step, SavedCheckpoint::kStep);
  EXPECT_EQ(GivenInAll(), BlocksIn(ParameterBlocks(Saved().manifest)));
  EXPECT_LT(GivenInAll(), AllBlocksOfBoth());
  EXPECT_GT(told_.all, 0);
  ASSERT_TRUE(ExportHuggingFace(found->folder, root_ / "out", {}, kMostShardBytes, VerifiedWhen::kAsRead).ok());
  ASSERT_TRUE(Carry(CarriedBlocks::kAll).ok());
  ExpectWhole();
  EXPECT_EQ(GivenInAll(), AllBlocksOfBoth()) << "what was here is not brought again";
  ASSERT_TRUE(ExportHuggingFace(found->folder, root_ / "whole").ok());
  EXPECT_TRUE(TempFolder::Read(root_ / "out/model.safetensors") == TempFolder::Read(root_ / "whole/model.safetensors"));
  EXPECT_FALSE(ExportHuggingFace(into() + "/none", root_ / "x", {}, kMostShardBytes, VerifiedWhen::kAsRead).ok());
}

// What is not here is found where it is read.
TEST_F(CarriedCheckpointTest, AHoleIsNoModel) {
  const auto found = Carry(CarriedBlocks::kParameters);
  ASSERT_TRUE(found.ok());
  fs::resize_file(found->folder + "/rank-1.bin", 0);
  fs::resize_file(found->folder + "/rank-1.bin", Saved().Bytes("rank-1.bin").size());
  const absl::Status exported = ExportHuggingFace(found->folder, root_ / "out", {}, kMostShardBytes, VerifiedWhen::kAsRead);
  EXPECT_TRUE(absl::IsDataLoss(exported)) << exported;
  EXPECT_FALSE(fs::exists(root_ / "out/model.safetensors"));
}

// At any moment: the other one goes on, and what came is not asked for again.
TEST_F(CarriedCheckpointTest, HoldersAreKilledMeanwhile) {
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i) {
    fake_.given.clear();
    std::atomic<int> left = static_cast<int>(random() % 120);
    fake_.nodes_["a"].lives = [&left] { return left-- > 0; };
    fs::remove_all(into());
    const auto found = Carry(CarriedBlocks::kAll);
    ASSERT_TRUE(found.ok()) << i << ": " << found.status();
    ExpectWhole();
    EXPECT_EQ(GivenInAll(), AllBlocksOfBoth()) << i;
  }
}

TEST_F(CarriedCheckpointTest, WhoGivesOtherBytesIsNotAskedAgain) {
  const auto lies = [](int64_t, std::string part) {
    part[part.size() / 2] ^= 1;
    return part;
  };
  fake_.nodes_["a"].give = lies;
  const auto found = Carry(CarriedBlocks::kAll);
  ASSERT_TRUE(found.ok()) << found.status();
  ExpectWhole();
  fs::remove_all(into());
  fake_.nodes_["b"].give = [&](int64_t block, std::string part) { return block == 1 ? lies(block, part) : part; };
  const absl::Status both = Carry(CarriedBlocks::kAll).status();
  EXPECT_TRUE(absl::IsDataLoss(both)) << both;
  EXPECT_THAT(std::string(both.message()), HasSubstr("node a: "));
  EXPECT_THAT(std::string(both.message()), HasSubstr("node b: "));
}

TEST_F(CarriedCheckpointTest, AnotherManifestIsRefused) {
  CheckpointManifest other = Saved().manifest;
  other.job_uid = JobUid(std::string(32, 'b'));
  fake_.manifest = ManifestToJson(other);
  fake_.digest = ManifestDigest(fake_.manifest);
  EXPECT_TRUE(absl::IsDataLoss(Carry(CarriedBlocks::kAll).status())) << "another job's";
  EXPECT_THAT(std::string(Carry(CarriedBlocks::kAll).status().message()), HasSubstr("is the manifest of another checkpoint"));
  fake_.manifest = Saved().text;
  fake_.digest = std::string(64, '0');
  EXPECT_TRUE(absl::IsDataLoss(Carry(CarriedBlocks::kAll).status())) << "not what the coordinator means";
  fake_.manifest = "{";
  EXPECT_TRUE(absl::IsDataLoss(Carry(CarriedBlocks::kAll).status()));
  EXPECT_FALSE(fs::exists(into() + "/" + Saved().name));
}

// The coordinator goes away in the middle; the same command goes on when it is back.
TEST_F(CarriedCheckpointTest, ASecondTryGoesOn) {
  std::atomic<int> left = 40;
  for (const char* node : {"a", "b"}) fake_.nodes_[node].lives = [&left] { return left-- > 0; };
  ASSERT_FALSE(Carry(CarriedBlocks::kAll).ok());
  const int before = GivenInAll();
  EXPECT_GT(before, 0);
  for (const char* node : {"a", "b"}) fake_.nodes_[node].lives = [] { return true; };
  ASSERT_TRUE(Carry(CarriedBlocks::kAll).ok());
  ExpectWhole();
  EXPECT_EQ(GivenInAll(), AllBlocksOfBoth());
  EXPECT_EQ(TempFolder::Read(into() + "/" + Saved().name + "/mark"), std::string(32, 'f') + "\n");
}

TEST_F(CarriedCheckpointTest, TooManyCarriesAreWaitedFor) {
  int refusals = 3;
  fake_.on_begin = [&](const v1::CarryBegin&) {
    return refusals-- > 0 ? grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "8 carries are under way") : grpc::Status::OK;
  };
  EXPECT_TRUE(Carry(CarriedBlocks::kAll, absl::InfiniteDuration()).ok());
  refusals = 1;
  EXPECT_TRUE(absl::IsResourceExhausted(Carry(CarriedBlocks::kAll).status())) << "without patience";
}

// Of a job that saves and drops: what it began with goes, and it begins again.
TEST_F(CarriedCheckpointTest, WhatWasDroppedIsBegunAgain) {
  int drops = 2;
  std::vector<std::string> asked;
  fake_.on_begin = [&](const v1::CarryBegin& begin) {
    asked.push_back(begin.checkpoint());
    return begin.file() == "rank-1.bin" && drops-- > 0 ? grpc::Status(grpc::StatusCode::NOT_FOUND, "no node has it any more")
                                                       : grpc::Status::OK;
  };
  ASSERT_TRUE(Carry(CarriedBlocks::kAll).ok());
  ExpectWhole();
  EXPECT_EQ(std::count(asked.begin(), asked.end(), ""), 3) << "the newest was asked for";
  drops = 1000;
  fs::remove_all(into());
  EXPECT_TRUE(absl::IsNotFound(Carry(CarriedBlocks::kAll).status())) << "it is not tried for ever";
}

TEST_F(CarriedCheckpointTest, WhatCannotBeWrittenIsThisDisks) {
  root_.Write("into", "in the way");
  const absl::Status status = Carry(CarriedBlocks::kAll).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(into()));
}

// By the command line.
class ExportFromNodes : public CarriedCheckpointTest {
 protected:
  ExportFromNodes() {
    v1::Job& job = fake_.AddJob(Saved().job.value(), v1::JOB_STATE_SUCCEEDED);
    job.set_uid(Saved().uid.value());
    job.set_newest_checkpoint(Saved().name);
    job.mutable_spec()->mutable_checkpoint()->set_storage("local");
  }
};

TEST_F(ExportFromNodes, WritesTheModelAndLeavesNothingElse) {
  const std::string out = root_ / "model";
  const Ran ran = Motley(fake_, {"export", "job", "--out", out});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("step 40 of job job is in " + out));
  EXPECT_TRUE(fs::exists(out + "/model.safetensors"));
  EXPECT_FALSE(fs::exists(out + "/.carried"));
  const int given = GivenInAll();
  const Ran again = Motley(fake_, {"export", "job", "--out", out});
  EXPECT_EQ(again.code, 73) << again.err;
  EXPECT_EQ(GivenInAll(), given) << "nothing is brought for a folder that has a model";
}

TEST_F(ExportFromNodes, RawIsAllOfIt) {
  const std::string out = root_ / "raw";
  const Ran ran = Motley(fake_, {"export", "job", "--raw", "--out", out});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr(out + "/" + Saved().name));
  EXPECT_TRUE(TempFolder::Read(out + "/" + Saved().name + "/rank-1.bin") == Saved().Bytes("rank-1.bin"));
  EXPECT_EQ(MotleyAlone({"export", "--checkpoint", out, "--out", root_ / "model"}).code, 0);
  EXPECT_EQ(Motley(fake_, {"export", "job", "--raw", "--out", out}).code, 73) << "it is there already";
  EXPECT_EQ(MotleyAlone({"export", "--checkpoint", out, "--raw", "--out", root_ / "x"}).code, 64);
  fake_.jobs["job"].mutable_spec()->mutable_checkpoint()->set_storage("shared");
  fake_.jobs["job"].set_newest_checkpoint("/c/job/" + Saved().name);
  EXPECT_EQ(Motley(fake_, {"export", "job", "--raw", "--out", root_ / "x"}).code, 64);
}

TEST_F(ExportFromNodes, SaysWhatIsWrong) {
  fake_.on_begin = [](const v1::CarryBegin&) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no checkpoint of job job is whole on the nodes that are here");
  };
  const Ran none = Motley(fake_, {"export", "job", "--out", root_ / "none"});
  EXPECT_EQ(none.code, 66);
  EXPECT_THAT(none.err, HasSubstr("is whole on the nodes that are here"));
  FakeMotley older;
  older.jobs = fake_.jobs;
  EXPECT_EQ(Motley(older, {"export", "job", "--out", root_ / "none"}).code, 78);
}

}  // namespace
}  // namespace motley::client
