#include "common/checkpoint/resume_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "common/base/fault.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/needed_blocks.h"
#include "tests/common/checkpoint/local_fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

struct stat StatOf(const std::string& path) {
  struct stat found = {};
  EXPECT_EQ(::lstat(path.c_str(), &found), 0) << path;
  return found;
}

std::string BlockOf(const std::string& file, int64_t block) {
  return TempFolder::Read(file).substr(static_cast<size_t>(block * kCheckpointBlockBytes), kCheckpointBlockBytes);
}

absl::StatusOr<std::vector<size_t>> BeginWith(const std::string& folder, const CheckpointManifest& manifest,
                                              const std::vector<std::string>& own) {
  return BeginResumeFolder(folder, manifest, ManifestToJson(manifest), own);
}

// One checkpoint of step 40 on two disks, and a folder to go on from it.
class ResumeFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    auto saved = disks_.Save(40, LocalEpoch(), LargerModel());
    ASSERT_TRUE(saved.ok()) << saved.status();
    manifest_ = *std::move(saved);
    ASSERT_EQ(manifest_.files[0].blocks.size(), 2u);
    ASSERT_EQ(manifest_.files[1].blocks.size(), 2u);
  }
  std::string FolderOn(int rank) const { return disks_.Of(rank) / NameOf(40); }
  std::string FileOn(int rank) const { return FolderOn(rank) + "/" + manifest_.files[static_cast<size_t>(rank)].name; }

  TwoDisks disks_;
  TempFolder resume_root_;
  const std::string resume_ = resume_root_ / "jobs/demo/resume";
  CheckpointManifest manifest_;
};

TEST_F(ResumeFolderTest, OwnFilesAreLinksAndTheOthersAreLeft) {
  const auto others = BeginWith(resume_, manifest_, {resume_root_ / "absent", FolderOn(0)});
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_EQ(*others, std::vector<size_t>{1});
  EXPECT_EQ(NamesIn(resume_), (std::set<std::string>{"manifest.json", "rank-0.bin"}));
  EXPECT_EQ(TempFolder::Read(resume_ + "/manifest.json"), ManifestToJson(manifest_));
  EXPECT_EQ(StatOf(resume_ + "/rank-0.bin").st_ino, StatOf(FileOn(0)).st_ino);
  fs::remove_all(FolderOn(0));
  EXPECT_EQ(StatOf(resume_ + "/rank-0.bin").st_size, manifest_.files[0].bytes) << "it stays when the checkpoint is pruned";
}

TEST_F(ResumeFolderTest, TheFirstFolderThatHasItWithItsSize) {
  const std::string copies = resume_root_ / "copies", cut = resume_root_ / "cut";
  for (const std::string& folder : {copies, cut}) {
    fs::create_directories(folder);
    for (int rank = 0; rank < 2; ++rank) fs::copy(FileOn(rank), folder);
  }
  fs::resize_file(cut + "/rank-0.bin", 99);
  const auto others = BeginWith(resume_, manifest_, {cut, copies, FolderOn(0), FolderOn(1)});
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_TRUE(others->empty());
  EXPECT_EQ(StatOf(resume_ + "/rank-0.bin").st_ino, StatOf(copies + "/rank-0.bin").st_ino);
  EXPECT_EQ(StatOf(resume_ + "/rank-1.bin").st_ino, StatOf(cut + "/rank-1.bin").st_ino);
  auto reader = CheckpointReader::Open(resume_);
  EXPECT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(VerifyCheckpoint(resume_, manifest_).ok());
}

// Who may write there must not lead the node to a file of somebody else.
TEST_F(ResumeFolderTest, LinksAndFoldersAreNotFiles) {
  const std::string links = resume_root_ / "links", to_folder = resume_root_ / "to_folder";
  fs::create_directories(links + "/rank-1.bin");
  fs::create_symlink(FileOn(0), links + "/rank-0.bin");
  fs::create_directory_symlink(FolderOn(0), to_folder);
  const auto others = BeginWith(resume_, manifest_, {links, to_folder});
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_EQ(*others, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(NamesIn(resume_), std::set<std::string>{"manifest.json"});
}

TEST_F(ResumeFolderTest, IsMadeAnewWhateverIsThere) {
  const std::string elsewhere = resume_root_ / "elsewhere";
  const auto begin_anew = [&] {
    const auto others = BeginWith(resume_, manifest_, {});
    EXPECT_TRUE(others.ok()) << others.status();
    EXPECT_EQ(NamesIn(resume_), std::set<std::string>{"manifest.json"});
    EXPECT_TRUE(fs::is_directory(fs::symlink_status(resume_)));
  };
  resume_root_.Write("jobs/demo/resume/rank-9.bin", "of another start");
  resume_root_.Write("jobs/demo/resume/more/file", "x");
  begin_anew();
  fs::remove_all(resume_);
  resume_root_.Write("jobs/demo/resume", "a file");
  begin_anew();
  fs::remove_all(resume_);
  resume_root_.Write("elsewhere/kept", "x");
  fs::create_directory_symlink(elsewhere, resume_);
  begin_anew();
  EXPECT_EQ(NamesIn(elsewhere), std::set<std::string>{"kept"});
}

TEST_F(ResumeFolderTest, NamesThatLeadElsewhereAreDamage) {
  ASSERT_TRUE(BeginWith(resume_, manifest_, {}).ok());
  for (const std::string& name : {std::string("../x"), std::string("/tmp/x"), std::string(".."), std::string("."), std::string(),
                                  std::string("manifest.json"), std::string("a\0b", 3)}) {
    CheckpointManifest other = manifest_;
    other.files[1].name = name;
    EXPECT_EQ(BeginWith(resume_root_ / "other", other, {FolderOn(0)}).status().code(), absl::StatusCode::kDataLoss) << name;
    EXPECT_FALSE(fs::exists(resume_root_ / "other"));
    EXPECT_EQ(ResumeFile::Make(resume_, other.files[1]).status().code(), absl::StatusCode::kDataLoss) << name;
  }
  EXPECT_EQ(NamesIn(resume_), std::set<std::string>{"manifest.json"});
}

TEST_F(ResumeFolderTest, AFileIsAHoleUntilItsBlocksCome) {
  ASSERT_TRUE(BeginWith(resume_, manifest_, {}).ok());
  const std::string path = resume_ + "/rank-0.bin";
  auto file = ResumeFile::Make(resume_, manifest_.files[0]);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(StatOf(path).st_size, manifest_.files[0].bytes);
  EXPECT_LT(StatOf(path).st_blocks * 512, kCheckpointBlockBytes / 2) << "sparse";
  ASSERT_TRUE(file->Put(1, BlockOf(FileOn(0), 1)).ok());
  EXPECT_EQ(StatOf(path).st_size, manifest_.files[0].bytes);
  EXPECT_TRUE(BlockOf(path, 0) == std::string(kCheckpointBlockBytes, '\0'));
  EXPECT_TRUE(BlockOf(path, 1) == BlockOf(FileOn(0), 1));
  EXPECT_LT(StatOf(path).st_blocks * 512, kCheckpointBlockBytes) << "the other one is a hole";
  ASSERT_TRUE(file->Put(0, BlockOf(FileOn(0), 0)).ok());
  EXPECT_TRUE(file->Finish().ok());
  EXPECT_TRUE(TempFolder::Read(path) == TempFolder::Read(FileOn(0)));
}

TEST_F(ResumeFolderTest, AWrongBlockIsDamageAndLeavesTheHole) {
  ASSERT_TRUE(BeginWith(resume_, manifest_, {}).ok());
  auto file = ResumeFile::Make(resume_, manifest_.files[0]);
  ASSERT_TRUE(file.ok());
  const std::string first = BlockOf(FileOn(0), 0), last = BlockOf(FileOn(0), 1);
  std::string altered = first;
  altered.back() = static_cast<char>(altered.back() ^ 1);
  const std::pair<int64_t, std::string> wrong[] = {{0, altered}, {0, first.substr(1)}, {0, first + "x"}, {0, ""},
                                                   {0, last},    {1, first},           {1, last + "x"},  {2, last},
                                                   {2, ""},      {-1, first},          {1LL << 50, ""}};
  for (const auto& [block, bytes] : wrong) {
    const absl::Status status = file->Put(block, bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << block << ", " << bytes.size() << ": " << status;
    EXPECT_NE(Message(status).find("rank-0.bin"), std::string::npos);
  }
  EXPECT_EQ(StatOf(resume_ + "/rank-0.bin").st_size, manifest_.files[0].bytes);
  EXPECT_TRUE(TempFolder::Read(resume_ + "/rank-0.bin") == std::string(static_cast<size_t>(manifest_.files[0].bytes), '\0'));
  EXPECT_TRUE(file->Put(0, first).ok()) << "the right one of another holder";
  EXPECT_TRUE(BlockOf(resume_ + "/rank-0.bin", 0) == first);
}

// It was linked, and turned out to be damaged.
TEST_F(ResumeFolderTest, WhatHasTheNameGoesAndIsNotWritten) {
  ASSERT_TRUE(BeginWith(resume_, manifest_, {FolderOn(0)}).ok());
  const std::string before = TempFolder::Read(FileOn(0));
  auto file = ResumeFile::Make(resume_, manifest_.files[0]);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_NE(StatOf(resume_ + "/rank-0.bin").st_ino, StatOf(FileOn(0)).st_ino);
  EXPECT_TRUE(TempFolder::Read(FileOn(0)) == before) << "of the checkpoint";
  fs::create_symlink(FileOn(1), resume_ + "/rank-1.bin");
  ASSERT_TRUE(ResumeFile::Make(resume_, manifest_.files[1]).ok());
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(resume_ + "/rank-1.bin")));
  EXPECT_FALSE(BlockOf(FileOn(1), 0) == std::string(kCheckpointBlockBytes, '\0'));
}

TEST_F(ResumeFolderTest, WhatCannotBeWrittenNowSaysSo) {
  resume_root_.Write("file", "x");
  EXPECT_FALSE(BeginWith(resume_root_ / "file/resume", manifest_, {}).ok());
  EXPECT_FALSE(ResumeFile::Make(resume_root_ / "absent", manifest_.files[0]).ok());
}

// The block of the file that holds an element.
std::pair<size_t, int64_t> PlaceOf(const CheckpointManifest& manifest, int unit, StateTensor tensor, int64_t element) {
  for (size_t f = 0; f < manifest.files.size(); ++f) {
    for (const CheckpointPiece& piece : manifest.files[f].pieces) {
      if (piece.unit != unit || piece.tensor != tensor || element < piece.begin || element >= piece.end) continue;
      return {f, (piece.file_offset + (element - piece.begin) * SizeOfBytes(manifest.dtype)) / kCheckpointBlockBytes};
    }
  }
  ADD_FAILURE() << "element " << element << " is nowhere";
  return {0, 0};
}

// What rank 0 owns reads as it was written, and of all else what happens to lie in the same blocks.
void ReadsWhatIsOwned(CheckpointReader& reader, const Ownership& ownership, const std::vector<std::vector<int64_t>>& needed,
                      int* refused) {
  const std::vector<UnitSpec> units = ParameterLayout(reader.manifest().model);
  for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
    for (int t = 0; t < kNumStateTensors; ++t) {
      const auto tensor = static_cast<StateTensor>(t);
      for (const OwnedRange& range : ownership.Of(unit)) {
        if (range.rank != 0) continue;
        std::vector<float> values(static_cast<size_t>(range.size()));
        const absl::Status read = reader.Read(unit, tensor, range.begin, range.end, values.data());
        ASSERT_TRUE(read.ok()) << read;
        for (int64_t i = range.begin; i < range.end; ++i) {
          ASSERT_EQ(values[static_cast<size_t>(i - range.begin)], ExpectedValue(unit, tensor, i));
        }
      }
      const int64_t n = units[static_cast<size_t>(unit)].num_elements;
      for (int64_t element = 0; element < n; element += n / 5 + 1) {
        const auto [file, block] = PlaceOf(reader.manifest(), unit, tensor, element);
        const bool there = std::count(needed[file].begin(), needed[file].end(), block) > 0;
        float value = 0;
        const absl::Status read = reader.Read(unit, tensor, element, element + 1, &value);
        EXPECT_EQ(read.code(), there ? absl::StatusCode::kOk : absl::StatusCode::kDataLoss) << read;
        EXPECT_EQ(FaultOf(read) == Fault::kDamage, !there);
        *refused += !there;
      }
    }
  }
}

TEST_F(ResumeFolderTest, ReadersGetExactlyWhatTheirRanksOwn) {
  const std::vector<UnitSpec> units = ParameterLayout(manifest_.model);
  const int64_t n = units[0].num_elements;
  // Of the first unit: nothing, the begin, the end, a piece over the border of the two files. Of the others the middle.
  const OwnedRanges of_first[] = {{{1, 0, n}},
                                  {{0, 0, 100}, {1, 100, n}},
                                  {{1, 0, n - 100}, {0, n - 100, n}},
                                  {{1, 0, n / 2}, {0, n / 2, n - n / 4}, {1, n - n / 4, n}}};
  int refused = 0;
  for (const OwnedRanges& first : of_first) {
    SCOPED_TRACE(testing::Message() << "case " << &first - of_first);
    Ownership ownership;
    for (const UnitSpec& unit : units) {
      const int64_t third = unit.num_elements / 3;
      ownership.Add(&unit == units.data() ? first
                                          : OwnedRanges{{1, 0, third}, {0, third, 2 * third}, {1, 2 * third, unit.num_elements}});
    }
    const auto needed = NeededBlocks(manifest_, ownership, {0});
    const auto others = BeginWith(resume_, manifest_, {});
    ASSERT_TRUE(others.ok()) << others.status();
    EXPECT_EQ(others->size(), 2u);
    for (const size_t f : *others) {
      auto file = ResumeFile::Make(resume_, manifest_.files[f]);
      ASSERT_TRUE(file.ok()) << file.status();
      for (const int64_t block : needed[f]) ASSERT_TRUE(file->Put(block, BlockOf(FileOn(static_cast<int>(f)), block)).ok());
      ASSERT_TRUE(file->Finish().ok());
    }
    auto reader = CheckpointReader::Open(resume_);
    ASSERT_TRUE(reader.ok()) << reader.status();
    ReadsWhatIsOwned(*reader, ownership, needed, &refused);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(refused, 10) << "nothing was left out";
}

}  // namespace
}  // namespace motley
