// What a node keeps of itself on its disk: who may read it, and what is said of what is missing.
#include "worker/daemon/identity_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "tests/common/base/temp_folder.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

class IdentityFolderTest : public testing::Test {
 protected:
  static unsigned ModeOf(const std::string& path) {
    struct stat found = {};
    EXPECT_EQ(stat(path.c_str(), &found), 0) << path;
    return found.st_mode & 07777u;
  }
  static auto FilesIn(const std::string& path) {
    return std::distance(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator());
  }
  std::string KeptHash() const {
    const auto key = identity_.LoadOrMakeKey();
    EXPECT_TRUE(key.ok()) << key.status();
    return key.ok() ? key->PublicHash() : "";
  }
  std::string MissingWords() const {
    const absl::Status status = identity_.Load().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("join the cluster: motley-worker --join TOKEN"));
    return std::string(status.message());
  }
  const TempFolder folder_;
  const std::string path_ = folder_ / "lib/worker";
  const IdentityFolder identity_{path_};
};

TEST_F(IdentityFolderTest, AKeyIsMadeOnceAndIsNobodyElses) {
  const mode_t before = umask(0);  // the widest: modes are not left to it
  const std::string made = KeptHash();
  umask(before);
  EXPECT_EQ(ModeOf(path_), 0700u);
  EXPECT_EQ(ModeOf(path_ + "/node.key"), 0600u);
  EXPECT_EQ(FilesIn(path_), 1) << "nothing half written stays";
  EXPECT_FALSE(made.empty());
  EXPECT_EQ(KeptHash(), made);
  const IdentityFolder again(path_);
  EXPECT_EQ(again.LoadOrMakeKey()->PublicHash(), made);
  EXPECT_EQ(PrivateKey::FromPem(TempFolder::Read(path_ + "/node.key"))->PublicHash(), made);
}

TEST_F(IdentityFolderTest, WhatIsNoKeyIsReplaced) {
  const std::string made = KeptHash();
  const std::string half = TempFolder::Read(path_ + "/node.key").substr(0, 60);
  for (const std::string& rubbish : {std::string(), std::string("rubbish"), half}) {
    folder_.Write("lib/worker/node.key", rubbish);
    chmod((path_ + "/node.key").c_str(), 0600);
    const std::string next = KeptHash();
    EXPECT_NE(next, made);
    EXPECT_EQ(KeptHash(), next) << "the new one is kept";
    EXPECT_EQ(ModeOf(path_ + "/node.key"), 0600u);
  }
}

// Whoever made the folder had his reasons for who may look into it.
TEST_F(IdentityFolderTest, AKeyThatOthersCanReadCountsNoMore) {
  const std::string made = KeptHash();
  ASSERT_TRUE(identity_.SaveCertificate("c").ok() && identity_.SaveAuthorities("a").ok());
  EXPECT_TRUE(identity_.Load().ok());
  chmod((path_ + "/node.key").c_str(), 0644);
  const absl::Status status = identity_.Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("chmod 0600"));
  EXPECT_EQ(identity_.LoadOrMakeKey().status().code(), absl::StatusCode::kFailedPrecondition) << "nor to join again with";
  std::filesystem::remove(path_ + "/node.key");
  EXPECT_NE(KeptHash(), made);
}

TEST_F(IdentityFolderTest, AFolderThatIsThereKeepsItsMode) {
  std::filesystem::create_directories(path_);
  chmod(path_.c_str(), 0750);
  KeptHash();
  EXPECT_EQ(ModeOf(path_), 0750u);
  EXPECT_EQ(ModeOf(path_ + "/node.key"), 0600u);
}

TEST_F(IdentityFolderTest, WhatIsMissingIsNamedAndHowToJoin) {
  EXPECT_THAT(MissingWords(), HasSubstr("/lib/worker/node.key"));
  KeptHash();
  EXPECT_THAT(MissingWords(), HasSubstr("/lib/worker/node.crt"));
  ASSERT_TRUE(identity_.SaveCertificate("a certificate").ok());
  EXPECT_THAT(MissingWords(), HasSubstr("/lib/worker/authorities.crt"));
  ASSERT_TRUE(identity_.SaveAuthorities("authorities").ok());
  const auto identity = identity_.Load();
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->key, TempFolder::Read(path_ + "/node.key"));
  EXPECT_EQ(identity->certificate, "a certificate");
  EXPECT_EQ(identity->authorities, "authorities");
  folder_.Write("lib/worker/node.crt", std::string(1 << 20, 'x'));
  EXPECT_THAT(MissingWords(), HasSubstr("node.crt is larger than"));
}

TEST_F(IdentityFolderTest, SavingReplacesAWholeFile) {
  KeptHash();
  ASSERT_TRUE(identity_.SaveCertificate("the long old certificate").ok());
  ASSERT_TRUE(identity_.SaveAuthorities("the long old authorities").ok());
  // Whoever has the old file open reads it to its end.
  ASSERT_EQ(link((path_ + "/node.crt").c_str(), (folder_ / "old.crt").c_str()), 0);
  ASSERT_EQ(link((path_ + "/authorities.crt").c_str(), (folder_ / "old-authorities.crt").c_str()), 0);
  ASSERT_TRUE(identity_.SaveCertificate("new").ok());
  ASSERT_TRUE(identity_.SaveAuthorities("newer").ok());
  EXPECT_EQ(identity_.Load()->certificate, "new");
  EXPECT_EQ(identity_.Load()->authorities, "newer");
  EXPECT_EQ(TempFolder::Read(folder_ / "old.crt"), "the long old certificate");
  EXPECT_EQ(TempFolder::Read(folder_ / "old-authorities.crt"), "the long old authorities");
  EXPECT_EQ(ModeOf(path_ + "/node.crt"), 0644u);
  EXPECT_EQ(FilesIn(path_), 3);
}

TEST_F(IdentityFolderTest, AFolderThatCannotBeMadeIsNamed) {
  folder_.Write("lib", "a file where a folder is to be");
  const absl::Status status = identity_.LoadOrMakeKey().status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
  EXPECT_FALSE(identity_.SaveCertificate("new").ok());
}

}  // namespace
}  // namespace motley::worker
