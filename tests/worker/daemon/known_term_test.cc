#include "worker/daemon/known_term.h"

#include <gmock/gmock.h>

#include <fstream>

#include "absl/time/clock.h"
#include "common/base/files.h"
#include "common/tls/certificate_authority.h"
#include "tests/common/base/temp_folder.h"

namespace motley::worker {
namespace {

using ::testing::HasSubstr;

constexpr char kOneId[] = "5e0c4b29bb5a7fbd", kOtherId[] = "0123456789abcdef";

class KnownTermTest : public testing::Test {
 protected:
  KnownTermTest() : folder_(files_.path() + "/identity") {
    const PrivateKey key = folder_.LoadOrMakeKey().value();
    const auto own = authority_.IssueNode(NodeName("n1"), key.SigningRequest().value(), absl::Now(), absl::Hours(24));
    EXPECT_TRUE(folder_.SaveCertificate(own->ToPem()).ok());
    EXPECT_TRUE(folder_.SaveAuthorities(authority_.certificate().ToPem()).ok());
  }
  Certificate Of(const Term& term) const {
    return authority_.IssueCoordinator(term, key_.SigningRequest().value(), absl::Now(), absl::Hours(24)).value();
  }
  KnownTerm Loaded() const {
    auto known = KnownTerm::Load(folder_);
    EXPECT_TRUE(known.ok()) << known.status();
    return *std::move(known);
  }

  const CertificateAuthority authority_ = CertificateAuthority::Make(absl::Now()).value();
  const PrivateKey key_ = PrivateKey::Make().value();
  const TempFolder files_;
  const IdentityFolder folder_;
};

TEST_F(KnownTermTest, WhoIsFollowedIsKnownAfterARestart) {
  {
    KnownTerm known = Loaded();
    EXPECT_EQ(known.Proof(), "");
    EXPECT_TRUE(known.Follow(Of({2, kOneId})).ok());
  }
  KnownTerm known = Loaded();
  EXPECT_EQ(known.Proof(), folder_.LoadTerm().value());
  EXPECT_TRUE(known.Follow(Of({2, kOneId})).ok()) << "renewed";
  EXPECT_TRUE(known.Follow(Of({3, kOtherId})).ok());
  EXPECT_EQ(TermOf(Certificate::FromPem(Loaded().Proof())->front())->number, 3);
}

TEST_F(KnownTermTest, NoLowerOneIsFollowedAndOfOneNumberTheFirst) {
  KnownTerm known = Loaded();
  ASSERT_TRUE(known.Follow(Of({3, kOneId})).ok());
  for (const Term& other : {Term{2, kOneId}, Term{3, kOtherId}}) {
    const absl::Status status = known.Follow(Of(other));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << "another address may be the right one";
    EXPECT_THAT(std::string(status.message()), HasSubstr("this node follows the coordinator of term 3 (5e0c4b29bb5a7fbd)"));
  }
  EXPECT_TRUE(known.Follow(Of({3, kOneId})).ok());
}

TEST_F(KnownTermTest, OneOfAnotherClusterIsForgotten) {
  const CertificateAuthority other = CertificateAuthority::Make(absl::Now()).value();
  const auto shown = other.IssueCoordinator({9, kOneId}, key_.SigningRequest().value(), absl::Now(), absl::Hours(24));
  ASSERT_TRUE(folder_.SaveTerm(shown->ToPem()).ok());
  KnownTerm known = Loaded();
  EXPECT_EQ(known.Proof(), "");
  EXPECT_TRUE(known.Follow(Of({1, kOtherId})).ok());
}

TEST_F(KnownTermTest, AFileThatCannotBeReadIsNamed) {
  std::ofstream(folder_.path() + "/term.crt") << "half a certifica";
  const auto known = KnownTerm::Load(folder_);
  EXPECT_EQ(known.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(known.status().message()), HasSubstr(folder_.path() + "/term.crt: "));
}

// It is known as long as the process lives, and the session is not given up for it.
TEST_F(KnownTermTest, AFolderThatCannotBeWrittenLosesNoSession) {
  KnownTerm known = Loaded();
  ASSERT_TRUE(RemoveTree(folder_.path()).ok());
  EXPECT_TRUE(known.Follow(Of({2, kOneId})).ok());
  EXPECT_FALSE(known.Follow(Of({1, kOneId})).ok());
}

}  // namespace
}  // namespace motley::worker
