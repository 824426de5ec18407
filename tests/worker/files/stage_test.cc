#include "worker/files/stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "tests/worker/files/giving_node.h"

namespace motley::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Writer = FilesGiver::Writer;

class StageTest : public ::testing::Test {
 protected:
  StageTest() {
    command_.source = {Saved().name, ManifestDigest(Saved().text), "", {}};
    GoOnWith({0, 1}, Saved().ownership);
  }
  void GoOnWith(const std::vector<int>& ranks, const Ownership& ownership) {
    command_.ranks.clear();
    for (const int rank : ranks) {
      RankAssignment& made = command_.ranks.emplace_back();
      made.job = Saved().job;
      made.job_uid = Saved().uid;
      made.epoch = Epoch(5);
      made.rank = rank;
      made.ownership = ownership;
    }
  }
  absl::Status StageIt() {
    said_.clear();
    return Stage(command_, {.local = local_.path(),
                            .identity = identity_,
                            .progress = [&](const FetchReport& report) { said_.push_back(report); },
                            .stopped = [&] { return stopped_.load(); },
                            .pause = [&](absl::Duration) { ++pauses_; }});
  }
  std::string Resume() const { return ResumeFolder(local_.path(), Saved().job, Saved().uid, Saved().name); }
  // Of what was brought, before the first block and when all was here.
  std::vector<int64_t> FirstAndLast() const {
    if (said_.empty()) return {};
    // Before that it may have looked at what is here for a while.
    const auto knows = [](const FetchReport& report) { return report.bytes > 0; };
    const auto found = std::find_if(said_.begin(), said_.end(), knows);
    const FetchReport& first = found == said_.end() ? said_.front() : *found;
    return {first.bytes, first.bytes_here, said_.back().bytes, said_.back().bytes_here};
  }
  void ExpectWhole() const { EXPECT_EQ(VerifyCheckpoint(Resume(), Saved().manifest), absl::OkStatus()); }
  CheckpointHolder Own(std::vector<std::string> files) const { return {NodeName("own"), "", "", {}, true, std::move(files)}; }
  // How one answers that has this file.
  static FilesGiver::Answer Giving(const std::string& file) {
    return [bytes = Saved().Bytes(file)](grpc::ServerContext&, const v1::ReadRequest& request, Writer& writer) {
      for (const int64_t block : request.blocks()) FilesGiver::SendBlock(writer, block, bytes);
      return grpc::Status::OK;
    };
  }
  static int64_t BytesOf(int file) { return Saved().manifest.files[static_cast<size_t>(file)].bytes; }

  const TempFolder local_;
  const FilesIdentity identity_ = NewFilesIdentity();
  StartCommand command_;
  std::vector<FetchReport> said_;
  std::atomic<bool> stopped_{false};
  int pauses_ = 0;
};

TEST_F(StageTest, WhatIsAllHereMovesNoByte) {
  Saved().PutOn(local_.path(), Saved().files);
  command_.source.holders = {Own(Saved().files)};
  ASSERT_EQ(StageIt(), absl::OkStatus());
  EXPECT_THAT(FirstAndLast(), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(said_.front().job, Saved().job);
  EXPECT_EQ(said_.front().epoch, Epoch(5));
  ExpectWhole();
}

TEST_F(StageTest, WhatIsOnOtherNodesComesFromEach) {
  const GivingNode a("a"), b("b");
  Saved().PutOn(a.local(), {"rank-0.bin"});
  Saved().PutOn(b.local(), {"rank-1.bin"});
  command_.source.holders = {a.Holder(identity_, {"rank-0.bin"}), b.Holder(identity_, {"rank-1.bin"})};
  ASSERT_EQ(StageIt(), absl::OkStatus());
  const int64_t bytes = BytesOf(0) + BytesOf(1);
  EXPECT_THAT(FirstAndLast(), ElementsAre(bytes, 0, bytes, bytes));
  ExpectWhole();
}

TEST_F(StageTest, OnlyWhatIsNotHereComes) {
  const GivingNode b("b");
  Saved().PutOn(local_.path(), {"rank-0.bin"});
  Saved().PutOn(b.local(), {"rank-1.bin"});
  command_.source.holders = {Own({"rank-0.bin"}), b.Holder(identity_, {"rank-1.bin"})};
  ASSERT_EQ(StageIt(), absl::OkStatus());
  EXPECT_THAT(FirstAndLast(), ElementsAre(BytesOf(1), 0, BytesOf(1), BytesOf(1)));
  ExpectWhole();
}

// Its rank was killed when it had written its file: the others have the manifest.
TEST_F(StageTest, AFileThatWasNotGivenItsNameIsOwn) {
  const GivingNode b("b");
  Saved().PutOn(local_.path(), {"rank-0.bin"}, /*with_manifest=*/false, Saved().temporary_name());
  Saved().PutOn(b.local(), {"rank-1.bin"});
  command_.source.holders = {b.Holder(identity_, {"rank-1.bin"})};
  ASSERT_EQ(StageIt(), absl::OkStatus());
  EXPECT_THAT(FirstAndLast(), ElementsAre(BytesOf(1), 0, BytesOf(1), BytesOf(1)));
  ExpectWhole();
}

TEST_F(StageTest, OnlyBlocksThatItsRanksReadCome) {
  const GivingNode a("a");
  Saved().PutOn(a.local(), Saved().files);
  command_.source.holders = {a.Holder(identity_, Saved().files)};
  GoOnWith({1}, Saved().ownership);
  ASSERT_EQ(StageIt(), absl::OkStatus());
  EXPECT_THAT(FirstAndLast(), ElementsAre(BytesOf(1), 0, BytesOf(1), BytesOf(1)));
  EXPECT_EQ(VerifyStructure(Resume(), Saved().manifest), absl::OkStatus());
  CheckpointReader reader = CheckpointReader::Open(Resume()).value();
  const int64_t half = Saved().ownership.NumElements(0) / 2;
  std::vector<float> values(static_cast<size_t>(half));
  EXPECT_EQ(reader.Read(0, StateTensor::kExpAvg, half, 2 * half, values.data()), absl::OkStatus());
  EXPECT_TRUE(absl::IsDataLoss(reader.Read(0, StateTensor::kExpAvg, 0, half, values.data()))) << "a hole is no zeros";
}

// Two stores may have given one name: which checkpoint is meant, the manifest's digest says.
TEST_F(StageTest, AnotherCheckpointOfThatNameIsPassedBy) {
  const GivingNode a("a"), b("b");
  CheckpointManifest other = Saved().manifest;
  other.seed = 7;
  const std::string text = ManifestToJson(other);
  for (const std::string& local : {local_.path(), a.local()}) {
    Saved().PutOn(local, {});
    const std::string folder = Saved().FolderOn(local, Saved().name);
    std::ofstream(folder + "/manifest.json") << text;
    std::ofstream(folder + "/rank-0.bin") << std::string(static_cast<size_t>(BytesOf(0)), 'x');
  }
  command_.source.holders = {a.Holder(identity_, {})};
  const absl::Status refused = StageIt();
  EXPECT_TRUE(absl::IsNotFound(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("manifest.json of step-00000040-gen-3 could not be brought: this node: "),
                    HasSubstr("; node a: manifest.json of step-00000040-gen-3 is another one than the job goes on from")));
  Saved().PutOn(b.local(), Saved().files);
  command_.source.holders.push_back(b.Holder(identity_, Saved().files));
  ASSERT_EQ(StageIt(), absl::OkStatus());
  ExpectWhole();
}

TEST_F(StageTest, AManifestOfAnotherStepOrJobIsRefused) {
  const GivingNode a("a");
  const auto refused = [&](const std::function<void(CheckpointManifest&)>& change, const std::string& why) {
    CheckpointManifest other = Saved().manifest;
    change(other);
    const std::string text = ManifestToJson(other), folder = Saved().FolderOn(a.local(), Saved().name);
    fs::create_directories(folder);
    std::ofstream(folder + "/manifest.json") << text;
    command_.source.manifest_digest = ManifestDigest(text);
    command_.source.holders = {a.Holder(identity_, Saved().files)};
    const absl::Status status = StageIt();
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_FALSE(fs::exists(Resume()));
    return status.code();
  };
  constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;
  EXPECT_EQ(refused([](auto& manifest) { manifest.step = 60; }, "is of step 60 and generation 3"), kRefused);
  EXPECT_EQ(refused([](auto& manifest) { manifest.epoch = 4; }, "is of step 40 and generation 4"), kRefused);
  EXPECT_EQ(refused([](auto& manifest) { manifest.job_uid = JobUid(std::string(32, 'b')); }, "with the uid 'bbbb"), kRefused);
  EXPECT_EQ(refused([](auto& manifest) { manifest.format_version = kSharedCheckpointFormat; }, "has format 3"), kRefused);
  EXPECT_EQ(refused([](auto& manifest) { manifest.files[0].name = "../rank-0.bin"; }, "'../rank-0.bin' is no rank's file"),
            absl::StatusCode::kDataLoss);
}

TEST_F(StageTest, WhatIsDamagedAtOneHolderComesFromTheNextAndNothingTwice) {
  const GivingNode a("a");
  Saved().PutOn(local_.path(), {"rank-0.bin"});
  Saved().PutOn(a.local(), {"rank-1.bin"});
  std::string damaged = Saved().Bytes("rank-1.bin");
  damaged[damaged.size() - 1] ^= 1;
  std::ofstream(Saved().FolderOn(a.local(), Saved().name) + "/rank-1.bin", std::ios::binary) << damaged;
  const FilesGiver b(Giving("rank-1.bin"));
  command_.source.holders = {Own({"rank-0.bin"}), a.Holder(identity_, {"rank-1.bin"}), b.Holder("b", {"rank-1.bin"})};
  ASSERT_EQ(StageIt(), absl::OkStatus());
  ExpectWhole();
  const int64_t blocks = SavedCheckpoint::BlocksOf(Saved().manifest.files[1]);
  ASSERT_GT(blocks, 1);
  ASSERT_EQ(b.asked().size(), 1u);
  EXPECT_THAT(b.asked().front().blocks(), ElementsAre(blocks - 1));
  EXPECT_THAT(said_.back().damaged_files, ElementsAre(DamagedFile{NodeName("a"), "rank-1.bin"})) << "it is told";
  EXPECT_THAT(FirstAndLast(), ElementsAre(BytesOf(1), 0, BytesOf(1), BytesOf(1)));
}

// A rank has found damage in it: which of the blocks it is, and where they are whole, is found here.
TEST_F(StageTest, OwnFilesThatAreDamagedAreMendedFromCopies) {
  const GivingNode a("a");
  Saved().PutOn(local_.path(), Saved().files);
  std::string damaged = Saved().Bytes("rank-1.bin");
  damaged[5] ^= 1;
  const std::string own = Saved().FolderOn(local_.path(), Saved().name) + "/rank-1.bin";
  std::ofstream(own, std::ios::binary) << damaged;
  ASSERT_EQ(StageIt(), absl::OkStatus());
  EXPECT_TRUE(absl::IsDataLoss(VerifyCheckpoint(Resume(), Saved().manifest))) << "ranks read it, and say so";
  command_.source.verify = true;
  const absl::Status nowhere = StageIt();
  EXPECT_TRUE(absl::IsDataLoss(nowhere)) << nowhere;
  EXPECT_THAT(said_.back().damaged_files, ElementsAre(DamagedFile{NodeName(), "rank-1.bin"}));
  Saved().PutOn(a.local(), Saved().files);
  command_.source.holders = {a.Holder(identity_, Saved().files)};
  ASSERT_EQ(StageIt(), absl::OkStatus());
  ExpectWhole();
  EXPECT_THAT(FirstAndLast(), ElementsAre(kCheckpointBlockBytes, 0, kCheckpointBlockBytes, kCheckpointBlockBytes));
  EXPECT_THAT(said_.back().damaged_files, ElementsAre(DamagedFile{NodeName(), "rank-1.bin"}));
  EXPECT_EQ(TempFolder::Read(own), damaged) << "what is its only copy may be needed";
}

TEST_F(StageTest, WhoBringsNothingIsNamed) {
  Saved().PutOn(local_.path(), {"rank-0.bin"});
  const GivingNode a("a");
  FilesGiver b(Giving("rank-1.bin")), c([](grpc::ServerContext&, const v1::ReadRequest& request, Writer& writer) {
    FilesGiver::Send(writer, request.blocks(0), "wrong bytes");
    return grpc::Status::OK;
  });
  EXPECT_TRUE(absl::IsNotFound(StageIt()));
  EXPECT_THAT(std::string(StageIt().message()), HasSubstr("rank-1.bin of step-00000040-gen-3 could not be brought: no node"));
  command_.source.holders = {a.Holder(identity_, {"rank-1.bin"}), c.Holder("c", {"rank-1.bin"})};
  const absl::Status damaged = StageIt();
  EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
  EXPECT_THAT(std::string(damaged.message()),
              AllOf(HasSubstr("rank-1.bin of step-00000040-gen-3 could not be brought: node a: rank-1.bin of "
                              "step-00000040-gen-3 is not here; node c: "),
                    HasSubstr("rank-1.bin")));
  b.Stop();
  command_.source.holders.push_back(b.Holder("b", {"rank-1.bin"}));
  const absl::Status away = StageIt();
  EXPECT_TRUE(absl::IsUnavailable(away)) << away;
  EXPECT_THAT(std::string(away.message()), HasSubstr("; node b: does not answer: "));
}

TEST_F(StageTest, WhoHasManyReadersIsAskedAgain) {
  Saved().PutOn(local_.path(), {"rank-0.bin"});
  const auto give = Giving("rank-1.bin");
  std::atomic<int> busy{2};
  const FilesGiver b([&](grpc::ServerContext& context, const v1::ReadRequest& request, Writer& writer) {
    if (busy-- > 0) return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "4 others read from it now");
    return give(context, request, writer);
  });
  command_.source.holders = {b.Holder("b", {"rank-1.bin"})};
  ASSERT_EQ(StageIt(), absl::OkStatus());
  EXPECT_EQ(pauses_, 2);
  ExpectWhole();
  busy = 1 << 20;
  const absl::Status status = StageIt();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("node b: 4 others read from it now"));
}

TEST_F(StageTest, IsStopped) {
  Saved().PutOn(local_.path(), {"rank-0.bin"});
  const auto give = Giving("rank-1.bin");
  const FilesGiver b([&](grpc::ServerContext& context, const v1::ReadRequest& request, Writer& writer) {
    stopped_ = true;
    return give(context, request, writer);
  });
  command_.source.holders = {b.Holder("b", {"rank-1.bin"}), b.Holder("c", {"rank-1.bin"})};
  EXPECT_TRUE(absl::IsCancelled(StageIt()));
  EXPECT_EQ(b.asked().size(), 1u);
}

// Its links would keep what the job has deleted.
TEST_F(StageTest, WhatAnEarlierStartWentOnFromGoes) {
  Saved().PutOn(local_.path(), Saved().files);
  const std::string earlier = ResumeFolder(local_.path(), Saved().job, Saved().uid, "step-00000020-gen-2");
  fs::create_directories(earlier);
  ASSERT_EQ(StageIt(), absl::OkStatus());
  EXPECT_FALSE(fs::exists(earlier));
  ASSERT_EQ(StageIt(), absl::OkStatus()) << "the same again";
  ExpectWhole();
}

TEST_F(StageTest, NamesThatNoneHasAreRefused) {
  const StartCommand good = command_;
  const auto refused = [&](const std::function<void(StartCommand&)>& change) {
    command_ = good;
    change(command_);
    return absl::IsInvalidArgument(StageIt());
  };
  EXPECT_TRUE(refused([](auto& command) { command.ranks.clear(); }));
  EXPECT_TRUE(refused([](auto& command) { command.source.name = "../step-00000040-gen-3"; }));
  EXPECT_TRUE(refused([](auto& command) { command.source.name = ""; }));
  EXPECT_TRUE(refused([](auto& command) { command.ranks[1].job = JobId("other"); }));
  EXPECT_TRUE(refused([](auto& command) { command.ranks.resize(1), command.ranks[0].job = JobId("../job"); }));
  EXPECT_TRUE(refused([](auto& command) { command.ranks.resize(1), command.ranks[0].job_uid = JobUid(".."); }));
  EXPECT_THAT(said_, IsEmpty());
}

}  // namespace
}  // namespace motley::worker
