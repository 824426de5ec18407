// When a node asks for a new certificate, and which ones it takes.
#include "worker/daemon/certificate_renewal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "common/tls/certificate_authority.h"
#include "tests/common/base/temp_folder.h"

namespace motley::worker {
namespace {

const absl::Time kIssuedAt = absl::FromCivil(absl::CivilSecond(2026, 11, 26, 12, 0, 0), absl::UTCTimeZone());
constexpr absl::Duration kGoodFor = absl::Hours(24 * 30);

class CertificateRenewalTest : public testing::Test {
 protected:
  CertificateRenewalTest() {
    EXPECT_TRUE(folder_.SaveAuthorities(authority_.certificate().ToPem()).ok());
    EXPECT_TRUE(folder_.SaveCertificate(Issue(authority_, kIssuedAt)).ok());
    due_at_ = RenewalOf(Stored());
  }
  NodeIdentity Stored() const { return folder_.Load().value(); }
  std::string Issue(const CertificateAuthority& by, absl::Time now, const std::string& node = "n1") const {
    return by.IssueNode(NodeName(node), key_.SigningRequest().value(), now, kGoodFor)->ToPem();
  }
  CertificateRenewal Begin() const { return {folder_, NodeName("n1")}; }
  // That it is not taken: the old one stays, and another is asked for.
  void ExpectRefused(const CertificateCommand& command, const std::string& why) const {
    CertificateRenewal renewal = Begin();
    const std::string before = Stored().certificate;
    ASSERT_TRUE(renewal.Due(due_at_)) << why;
    renewal.OnCertificate(command, due_at_);
    EXPECT_EQ(Stored().certificate, before) << why;
    EXPECT_FALSE(renewal.Due(due_at_ + absl::Seconds(9))) << why;
    EXPECT_TRUE(renewal.Due(due_at_ + absl::Seconds(10))) << why;
  }

  const TempFolder temporary_;
  const IdentityFolder folder_{temporary_ / "identity"};
  const PrivateKey key_ = folder_.LoadOrMakeKey().value();
  const CertificateAuthority authority_ = CertificateAuthority::Make(kIssuedAt).value();
  const CertificateAuthority next_ = CertificateAuthority::Make(kIssuedAt).value();
  absl::Time due_at_;
};

TEST_F(CertificateRenewalTest, IsDueWhenTwoThirdsAreOver) {
  CertificateRenewal renewal = Begin();
  EXPECT_EQ(due_at_, kIssuedAt + kGoodFor * 2 / 3);
  EXPECT_FALSE(renewal.Due(kIssuedAt));
  EXPECT_FALSE(renewal.Due(due_at_ - absl::Seconds(1)));
  const std::optional<RenewalReport> report = renewal.Due(due_at_);
  ASSERT_TRUE(report);
  EXPECT_EQ(KeyHashOfRequest(report->signing_request).value(), key_.PublicHash()) << "of the key that it has";
}

TEST_F(CertificateRenewalTest, IsAskedForAgainAfterAWhile) {
  CertificateRenewal renewal = Begin();
  EXPECT_TRUE(renewal.Due(due_at_));
  EXPECT_FALSE(renewal.Due(due_at_));
  EXPECT_FALSE(renewal.Due(due_at_ + absl::Milliseconds(9999)));
  EXPECT_TRUE(renewal.Due(due_at_ + absl::Seconds(10)));
  EXPECT_FALSE(renewal.Due(due_at_ + absl::Seconds(19)));
  EXPECT_TRUE(renewal.Due(due_at_ + kGoodFor)) << "an expired one, too: the session may still last";
}

TEST_F(CertificateRenewalTest, AGoodOneIsStored) {
  CertificateRenewal renewal = Begin();
  ASSERT_TRUE(renewal.Due(due_at_));
  const std::string fresh = Issue(authority_, due_at_);
  renewal.OnCertificate({fresh, ""}, due_at_);
  EXPECT_EQ(Stored().certificate, fresh);
  EXPECT_EQ(CheckIdentity(Stored(), NodeName("n1"), due_at_), absl::OkStatus());
  EXPECT_FALSE(renewal.Due(due_at_ + absl::Minutes(1)));
  EXPECT_GT(RenewalOf(Stored()), due_at_);
  EXPECT_TRUE(renewal.Due(RenewalOf(Stored()))) << "the next one in its turn";
}

TEST_F(CertificateRenewalTest, OthersAreNotAndTheOldOneStays) {
  const PrivateKey other = PrivateKey::Make().value();
  const auto of_other = authority_.IssueNode(NodeName("n1"), other.SigningRequest().value(), due_at_, kGoodFor);
  ExpectRefused({of_other->ToPem(), ""}, "of another key");
  ExpectRefused({Issue(next_, due_at_), ""}, "of another authority");
  ExpectRefused({Issue(authority_, due_at_, "n2"), ""}, "of another node");
  ExpectRefused({Issue(authority_, due_at_ - 2 * kGoodFor), ""}, "expired");
  ExpectRefused({"rubbish", ""}, "rubbish");
  ExpectRefused({"", ""}, "none");
  ExpectRefused({"", "the name is another's now"}, "an error");
  ExpectRefused({Issue(authority_, due_at_), "not after all"}, "an error counts, whatever else is there");
}

// The cluster changes to a new authority: both are believed, the new one's certificates are wanted.
TEST_F(CertificateRenewalTest, ANewAuthorityMakesItDueAtOnce) {
  CertificateRenewal renewal = Begin();
  EXPECT_FALSE(renewal.Due(kIssuedAt));
  const std::string both = authority_.certificate().ToPem() + next_.certificate().ToPem();
  renewal.OnAuthorities({both});
  EXPECT_EQ(Stored().authorities, both);
  EXPECT_EQ(CheckIdentity(Stored(), NodeName("n1"), kIssuedAt), absl::OkStatus()) << "the old one counts until then";
  EXPECT_TRUE(renewal.Due(kIssuedAt));
  renewal.OnAuthorities({both});
  EXPECT_FALSE(renewal.Due(kIssuedAt + absl::Seconds(1))) << "told twice, asked once";
  // As it was after a restart.
  EXPECT_TRUE(Begin().Due(kIssuedAt));
  const std::string by_old = Issue(authority_, kIssuedAt);
  renewal.OnCertificate({by_old, ""}, kIssuedAt);
  EXPECT_TRUE(renewal.Due(kIssuedAt + absl::Seconds(10))) << "the old authority's is not what is wanted";
  const std::string by_new = Issue(next_, kIssuedAt);
  renewal.OnCertificate({by_new, ""}, kIssuedAt);
  EXPECT_EQ(Stored().certificate, by_new);
  EXPECT_FALSE(renewal.Due(kIssuedAt + absl::Minutes(1)));
  // At last the old one is not believed any more.
  renewal.OnAuthorities({next_.certificate().ToPem()});
  EXPECT_EQ(CheckIdentity(Stored(), NodeName("n1"), kIssuedAt), absl::OkStatus());
  EXPECT_FALSE(renewal.Due(kIssuedAt + absl::Minutes(1)));
}

TEST_F(CertificateRenewalTest, AuthoritiesThatAreNoneChangeNothing) {
  CertificateRenewal renewal = Begin();
  const std::string good = authority_.certificate().ToPem();
  for (const std::string& wrong : {std::string(), std::string("rubbish"), Issue(authority_, kIssuedAt),
                                   good + Issue(authority_, kIssuedAt), good + good.substr(0, 200), good.substr(0, 200)}) {
    renewal.OnAuthorities({wrong});
    EXPECT_EQ(Stored().authorities, good) << wrong;
    EXPECT_FALSE(renewal.Due(kIssuedAt)) << wrong;
  }
}

TEST_F(CertificateRenewalTest, WithoutACertificateOneIsDue) {
  temporary_.Write("identity/node.crt", "rubbish");
  EXPECT_TRUE(Begin().Due(kIssuedAt));
  std::filesystem::remove(temporary_ / "identity/node.crt");
  EXPECT_TRUE(Begin().Due(kIssuedAt));
}

}  // namespace
}  // namespace motley::worker
