#include "worker/files/keep_copies.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "common/checkpoint/held_checkpoints.h"
#include "tests/worker/files/giving_node.h"

namespace motley::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Writer = FilesGiver::Writer;

constexpr char kMark[] = "0123456789abcdef0123456789abcdef";

class KeepCopiesTest : public ::testing::Test {
 protected:
  KeepCopiesTest() {
    command_ = {Saved().job,   Epoch(5), Saved().uid, "copy-1", {Saved().name, ManifestDigest(Saved().text), kMark, {}},
                {"rank-0.bin"}};
  }
  absl::Status Keep(int64_t bytes_per_second = 0) {
    said_.clear();
    paused_ = absl::ZeroDuration();
    return KeepCopies(command_, {.local = local_.path(),
                                 .identity = identity_,
                                 .progress = [&](const FetchReport& report) { said_.push_back(report); },
                                 .stopped = [&] { return stopped_; },
                                 .pause = [&](absl::Duration pause) { paused_ += pause; },
                                 .bytes_per_second = [=] { return bytes_per_second; }});
  }
  int64_t ToBring() const { return said_.back().bytes; }
  std::string Folder() const { return Saved().FolderOn(local_.path(), Saved().name); }
  std::vector<std::string> There() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(Folder())) names.push_back(entry.path().filename());
    return names;
  }
  HeldCheckpoint Held() const {
    const auto held = LookForHeldCheckpoints(LocalCheckpoints(local_.path(), Saved().job, Saved().uid), Saved().uid);
    EXPECT_TRUE(held.ok() && held->checkpoints.size() == 1 && held->unpublished.empty()) << held.status();
    return held.ok() && !held->checkpoints.empty() ? held->checkpoints[0] : HeldCheckpoint();
  }

  const TempFolder local_;
  const FilesIdentity identity_ = NewFilesIdentity();
  CopyCommand command_;
  std::vector<FetchReport> said_;
  absl::Duration paused_;
  bool stopped_ = false;
};

TEST_F(KeepCopiesTest, AnothersFileComesBesideTheOwn) {
  const GivingNode a("a");
  Saved().PutOn(a.local(), {"rank-0.bin"});
  Saved().PutOn(local_.path(), {"rank-1.bin"});
  command_.source.holders = {a.Holder(identity_, {"rank-0.bin"})};
  ASSERT_EQ(Keep(), absl::OkStatus());
  EXPECT_EQ(VerifyCheckpoint(Folder(), Saved().manifest), absl::OkStatus()) << "a full folder is a checkpoint";
  EXPECT_THAT(There(), UnorderedElementsAre("manifest.json", "rank-0.bin", "rank-1.bin"));
  EXPECT_EQ(said_.front().copy_id, "copy-1");
  EXPECT_EQ(said_.back().bytes_here, Saved().manifest.files[0].bytes);
  ASSERT_EQ(Keep(), absl::OkStatus());
  EXPECT_EQ(said_.back().bytes, 0) << "it is here";
}

// A node that trains and did not when the checkpoint was saved.
TEST_F(KeepCopiesTest, WhoHasNothingOfItHasManifestAndMarkThen) {
  const GivingNode a("a");
  Saved().PutOn(a.local(), Saved().files);
  command_.source.holders = {a.Holder(identity_, Saved().files)};
  command_.files = Saved().files;
  ASSERT_EQ(Keep(), absl::OkStatus());
  const HeldCheckpoint held = Held();
  EXPECT_EQ(held.mark, kMark);
  EXPECT_EQ(held.manifest_digest, ManifestDigest(Saved().text));
  for (const HeldFile& file : held.files) EXPECT_TRUE(file.here) << file.name;
}

// Its rank was killed before it gave its name: that is ended here.
TEST_F(KeepCopiesTest, WhatWasNotPublishedIsPublished) {
  const GivingNode a("a");
  Saved().PutOn(a.local(), {"rank-0.bin"});
  Saved().PutOn(local_.path(), {"rank-1.bin"}, /*with_manifest=*/false, Saved().temporary_name());
  command_.source.holders = {a.Holder(identity_, {"rank-0.bin"})};
  ASSERT_EQ(Keep(), absl::OkStatus());
  EXPECT_EQ(VerifyCheckpoint(Folder(), Saved().manifest), absl::OkStatus());
  EXPECT_EQ(Held().mark, kMark);
}

TEST_F(KeepCopiesTest, ADamagedOneIsCopiedAnew) {
  const GivingNode a("a");
  Saved().PutOn(a.local(), {"rank-0.bin"});
  Saved().PutOn(local_.path(), Saved().files);
  std::string damaged = Saved().Bytes("rank-0.bin");
  damaged[7] ^= 1;
  std::ofstream(Folder() + "/rank-0.bin", std::ios::binary) << damaged;
  command_.source.holders = {a.Holder(identity_, {"rank-0.bin"})};
  ASSERT_EQ(Keep(), absl::OkStatus());
  EXPECT_EQ(VerifyCheckpoint(Folder(), Saved().manifest), absl::OkStatus());
}

// A copy that is not whole has no name.
TEST_F(KeepCopiesTest, ALiarsBytesAreNotKept) {
  const FilesGiver liar([](grpc::ServerContext&, const v1::ReadRequest& request, Writer& writer) {
    for (const int64_t block : request.blocks()) FilesGiver::Send(writer, block, "lies");
    return grpc::Status::OK;
  });
  Saved().PutOn(local_.path(), {"rank-1.bin"});
  command_.source.holders = {liar.Holder("a", {"rank-0.bin"})};
  const absl::Status kept = Keep();
  EXPECT_TRUE(absl::IsDataLoss(kept)) << kept;
  EXPECT_THAT(There(), UnorderedElementsAre("manifest.json", "rank-0.bin.part", "rank-1.bin"));
  EXPECT_THAT(said_.back().damaged_files, ElementsAre(DamagedFile{NodeName("a"), "rank-0.bin"}));
}

TEST_F(KeepCopiesTest, WhatCameIsNotBroughtAgain) {
  const std::string bytes = Saved().Bytes("rank-0.bin");
  const auto blocks = SavedCheckpoint::BlocksOf(Saved().manifest.files[0]);
  ASSERT_GT(blocks, 1);
  FilesGiver breaks([&](grpc::ServerContext&, const v1::ReadRequest&, Writer& writer) {
    FilesGiver::SendBlock(writer, 0, bytes);
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the cable is cut");
  });
  Saved().PutOn(local_.path(), {"rank-1.bin"});
  command_.source.holders = {breaks.Holder("a", {"rank-0.bin"})};
  EXPECT_TRUE(absl::IsUnavailable(Keep()));
  EXPECT_EQ(ToBring(), Saved().manifest.files[0].bytes);
  const GivingNode a("a");
  Saved().PutOn(a.local(), {"rank-0.bin"});
  command_.source.holders = {a.Holder(identity_, {"rank-0.bin"})};
  ASSERT_EQ(Keep(), absl::OkStatus());
  EXPECT_EQ(ToBring(), Saved().manifest.files[0].bytes - kCheckpointBlockBytes);
  EXPECT_EQ(VerifyCheckpoint(Folder(), Saved().manifest), absl::OkStatus());
  EXPECT_THAT(There(), UnorderedElementsAre("manifest.json", "rank-0.bin", "rank-1.bin"));
}

TEST_F(KeepCopiesTest, ItsRateIsBounded) {
  const GivingNode a("a");
  Saved().PutOn(a.local(), {"rank-0.bin"});
  Saved().PutOn(local_.path(), {"rank-1.bin"});
  command_.source.holders = {a.Holder(identity_, {"rank-0.bin"})};
  const int64_t bytes = Saved().manifest.files[0].bytes;
  ASSERT_EQ(Keep(/*bytes_per_second=*/bytes / 1000), absl::OkStatus());
  // Nobody sleeps here: each pause is as long as all before it would have been together.
  const double half_of_parts = static_cast<double>(bytes) / (128 << 10) / 2;
  EXPECT_GT(paused_, absl::Seconds(1000 * half_of_parts));
  EXPECT_LT(paused_, absl::Seconds(1000 * half_of_parts * 1.2));
  ASSERT_EQ(Keep(), absl::OkStatus());
  EXPECT_EQ(paused_, absl::ZeroDuration());
}

TEST_F(KeepCopiesTest, AnotherCheckpointOfThatNameIsLeftAlone) {
  const GivingNode a("a");
  Saved().PutOn(a.local(), Saved().files);
  CheckpointManifest other = Saved().manifest;
  other.seed = 7;
  fs::create_directories(Folder());
  std::ofstream(Folder() + "/manifest.json") << ManifestToJson(other);
  command_.source.holders = {a.Holder(identity_, Saved().files)};
  const absl::Status kept = Keep();
  EXPECT_TRUE(absl::IsFailedPrecondition(kept)) << kept;
  EXPECT_THAT(There(), ElementsAre("manifest.json"));
}

TEST_F(KeepCopiesTest, NamesThatNoneHasAreRefused) {
  command_.source.name = "../step-00000040-gen-3";
  EXPECT_TRUE(absl::IsInvalidArgument(Keep()));
  EXPECT_TRUE(absl::IsInvalidArgument(DropCheckpoints({JobId(".."), Epoch(5), Saved().uid, {}}, local_.path())));
  EXPECT_TRUE(absl::IsInvalidArgument(DropCheckpoints({Saved().job, Epoch(5), JobUid("../x"), {}}, local_.path())));
}

TEST_F(KeepCopiesTest, WhatIsNamedIsDeleted) {
  Saved().PutOn(local_.path(), Saved().files);
  const DropCommand drop{Saved().job,
                         Epoch(5),
                         Saved().uid,
                         {{Epoch(SavedCheckpoint::kEpoch), SavedCheckpoint::kStep, ManifestDigest(Saved().text)}}};
  ASSERT_EQ(DropCheckpoints(drop, local_.path()), absl::OkStatus());
  EXPECT_TRUE(fs::is_empty(LocalCheckpoints(local_.path(), Saved().job, Saved().uid)));
}

}  // namespace
}  // namespace motley::worker
