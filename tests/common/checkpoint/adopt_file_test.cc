#include "common/checkpoint/adopt_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

TEST(AdoptFileTest, HoldsWords) {
  TempFolder root;
  auto words = ReadAdopt(root.path());
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_FALSE(words->has_value()) << "there is none";
  root.Write("adopt", "0f3c\r\n  old\t0f3c\n");
  EXPECT_EQ(ReadAdopt(root.path())->value(), (std::set<std::string>{"0f3c", "old"}));
  root.Write("adopt", "\n");
  words = ReadAdopt(root.path());
  EXPECT_TRUE(words.ok() && words->has_value() && (*words)->empty()) << "it says nothing";
}

// As an editor or a shell of another system writes them.
TEST(AdoptFileTest, AByteOrderMarkIsNoPartOfAWord) {
  TempFolder root;
  const std::string mark = "\xEF\xBB\xBF", little = "\xFF\xFE", big = "\xFE\xFF";
  root.Write("adopt", mark + "0f3c\r\n");
  EXPECT_EQ(ReadAdopt(root.path())->value(), (std::set<std::string>{"0f3c"}));
  root.Write("adopt", little + std::string("u\0v\0\r\0\n\0", 8));
  EXPECT_EQ(ReadAdopt(root.path())->value(), (std::set<std::string>{"uv"}));
  root.Write("adopt", big + std::string("\0u\0v", 4));
  EXPECT_EQ(ReadAdopt(root.path())->value(), (std::set<std::string>{"uv"}));
  root.Write("adopt", mark);
  EXPECT_TRUE(ReadAdopt(root.path())->value().empty()) << "it says nothing";
}

TEST(AdoptFileTest, TheLineThatWritesItIsForAShell) {
  EXPECT_EQ(AdoptLine("0f3c old", "/my runs/a"), "echo 0f3c old >'/my runs/a/adopt'");
  EXPECT_EQ(AdoptLine("$(id)", "/it's"), "echo '$(id)' >'/it'\\''s/adopt'") << "a manifest may name any job";
}

TEST(AdoptFileTest, WhatIsUsedUpIsPutAside) {
  TempFolder root;
  const CheckpointFence fence = NewestEpoch(3, kOneUid);
  EXPECT_TRUE(PutAdoptAside(root.path(), fence).ok()) << "there is none";
  EXPECT_TRUE(PutAdoptAside(root / "absent", fence).ok());
  root.Write("adopt", "0f3c\n");
  ASSERT_TRUE(PutAdoptAside(root.path(), fence).ok());
  EXPECT_FALSE(fs::exists(root / "adopt"));
  const std::string aside = root / ("adopt.done-" + kOneUid.value());
  EXPECT_EQ(TempFolder::Read(aside), "0f3c\n");
  root.Write("adopt", "1a2b\n");
  ASSERT_TRUE(PutAdoptAside(root.path(), fence).ok());
  EXPECT_EQ(TempFolder::Read(aside), "1a2b\n") << "the last one";
  root.Write("adopt", "2b3c\n");
  fs::remove(aside);
  fs::create_directory(aside);
  EXPECT_NE(Message(PutAdoptAside(root.path(), fence)).find("cannot rename adopt to " + aside), std::string::npos);
  EXPECT_TRUE(fs::exists(root / "adopt"));
}

// One job saves in the folder above those of others, of which one is called "adopt".
TEST(AdoptFileTest, AFolderIsAnotherJobs) {
  TempFolder root;
  const CheckpointFence fence = NewestEpoch(3, kOneUid);
  const std::string manifest = root.Write("adopt/step-00000040-gen-3/manifest.json", "theirs");
  EXPECT_TRUE(PutAdoptAside(root.path(), fence).ok());
  EXPECT_EQ(TempFolder::Read(manifest), "theirs");
  EXPECT_FALSE(fs::exists(root / ("adopt.done-" + kOneUid.value())));
}

TEST(AdoptFileTest, ALinkOrAPipeIsPutAsideItself) {
  TempFolder root;
  const CheckpointFence fence = NewestEpoch(3, kOneUid);
  const std::string adopt = root / "adopt", aside = root / ("adopt.done-" + kOneUid.value());
  fs::create_symlink(root / "nothing", adopt);
  ASSERT_TRUE(PutAdoptAside(root.path(), fence).ok());
  EXPECT_TRUE(fs::is_symlink(aside)) << "where it leads does not matter";
  ASSERT_EQ(::mkfifo(adopt.c_str(), 0600), 0);
  ASSERT_TRUE(PutAdoptAside(root.path(), fence).ok());
  EXPECT_TRUE(fs::is_fifo(aside));
}

// By a rank that was stopped meanwhile: the file is for another job of the id by now.
TEST(AdoptFileTest, AnOlderGenerationLeavesItAlone) {
  TempFolder root;
  root.Write("adopt", "0f3c\n");
  CheckpointFence fence = NewestEpoch(3, kOneUid);
  fence.confirm = [](const std::string&) { return absl::FailedPreconditionError("stale"); };
  EXPECT_TRUE(absl::IsFailedPrecondition(PutAdoptAside(root.path(), fence)));
  EXPECT_TRUE(fs::exists(root / "adopt"));
}

}  // namespace
}  // namespace motley
