#include "coordinator/core/cluster_authority.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "common/base/files.h"

namespace motley::coordinator {
namespace {

const Term kTerm = {1, "0123456789abcdef"};
const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

class ClusterAuthorityTest : public testing::Test {
 protected:
  ClusterAuthorityTest() {
    std::string pattern = testing::TempDir() + "motley-authority-XXXXXX";
    folder_ = std::string(mkdtemp(pattern.data())) + "/tls";
    EXPECT_TRUE(authority_.WriteFiles(folder_, kTerm, kStart, /*with_key=*/true).ok());
  }
  ~ClusterAuthorityTest() override { std::filesystem::remove_all(std::filesystem::path(folder_).parent_path()); }

  const AuthorityRecord first_ = NewAuthority(1, kStart).value(), second_ = NewAuthority(2, kStart).value();
  const ClusterAuthority authority_ = ClusterAuthority::FromRecords({first_}).value();
  std::string folder_;
};

TEST_F(ClusterAuthorityTest, ItsFilesAreItsUsersAndFit) {
  struct stat found;
  for (const char* name : {"/coordinator.key", "/coordinator.crt", "/authorities.crt"}) {
    ASSERT_EQ(stat((folder_ + name).c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600u) << name;
  }
  EXPECT_TRUE(authority_.FilesFit(folder_, kTerm, kStart));
}

TEST_F(ClusterAuthorityTest, TheyAreWrittenAgainInTimeAndWhateverTheClockSaid) {
  EXPECT_TRUE(authority_.FilesFit(folder_, kTerm, kStart + kOwnCertificateLifetime / 2));
  EXPECT_FALSE(authority_.FilesFit(folder_, kTerm, kStart + kOwnCertificateLifetime * 3 / 4));
  EXPECT_FALSE(authority_.FilesFit(folder_, kTerm, kStart - absl::Hours(24))) << "made by a clock that was ahead";
  EXPECT_FALSE(authority_.FilesFit(folder_, Term{2, kTerm.id}, kStart)) << "of the term from before a take-over";
  EXPECT_FALSE(authority_.FilesFit(folder_, Term{1, "fedcba9876543210"}, kStart)) << "of another coordinator's";
}

TEST_F(ClusterAuthorityTest, AChangeOfTheAuthorityAsksForOthers) {
  const ClusterAuthority both = ClusterAuthority::FromRecords({first_, second_}).value();
  EXPECT_TRUE(both.changes());
  EXPECT_FALSE(both.FilesFit(folder_, kTerm, kStart)) << "the new one is not among the authorities";
  ASSERT_TRUE(both.WriteFiles(folder_, kTerm, kStart, /*with_key=*/false).ok());
  EXPECT_TRUE(both.FilesFit(folder_, kTerm, kStart));
  const ClusterAuthority alone = ClusterAuthority::FromRecords({second_}).value();
  EXPECT_FALSE(alone.FilesFit(folder_, kTerm, kStart)) << "the old one has signed";
}

TEST_F(ClusterAuthorityTest, DamagedOrMissingFilesDoNotFit) {
  const TlsFiles files = ClusterAuthority::FilesIn(folder_);
  for (const std::string& path : {files.key, files.certificates, files.authorities}) {
    const std::string before = ReadSmallFile(path, 1 << 16).value();
    ASSERT_TRUE(WriteFileDurably(path, before.substr(0, before.size() / 2)).ok());
    EXPECT_FALSE(authority_.FilesFit(folder_, kTerm, kStart)) << path;
    std::filesystem::remove(path);
    EXPECT_FALSE(authority_.FilesFit(folder_, kTerm, kStart)) << path;
    ASSERT_TRUE(WriteFileDurably(path, before).ok());
    EXPECT_TRUE(authority_.FilesFit(folder_, kTerm, kStart)) << path;
  }
}

TEST_F(ClusterAuthorityTest, WhoSignedIsTold) {
  const ClusterAuthority both = ClusterAuthority::FromRecords({first_, second_}).value();
  const auto request = PrivateKey::Make()->SigningRequest().value();
  const auto by = [&](const CertificateAuthority& key) {
    return key.IssueNode(NodeName("n"), request, kStart, absl::Hours(1))->ToPem();
  };
  EXPECT_EQ(both.NumberOf(by(both.oldest())), 1);
  EXPECT_EQ(both.NumberOf(by(both.newest())), 2);
  EXPECT_EQ(both.NumberOf("no certificate"), 0);
}

TEST_F(ClusterAuthorityTest, RecordsThatCannotBeReadAreSaid) {
  EXPECT_EQ(ClusterAuthority::FromRecords({}).status().code(), absl::StatusCode::kDataLoss);
  AuthorityRecord mixed = first_;
  mixed.certificate = second_.certificate;
  EXPECT_EQ(ClusterAuthority::FromRecords({mixed}).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace motley::coordinator
