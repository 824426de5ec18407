// What a node can know of its own files before it dials.
#include "common/tls/node_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/tls/certificate_authority.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

const absl::Time kToday = absl::FromCivil(absl::CivilSecond(2026, 11, 26, 12, 0, 0), absl::UTCTimeZone());
constexpr absl::Duration kLifetime = absl::Hours(24 * 30);

class NodeIdentityTest : public testing::Test {
 protected:
  NodeIdentityTest()
      : identity_{key_.ToPem().value(),
                  authority_.IssueNode(NodeName("n1"), key_.SigningRequest().value(), kToday, kLifetime)->ToPem(),
                  authority_.certificate().ToPem()} {}
  std::string Refusal(const NodeIdentity& identity, absl::Time now = kToday, const std::string& node = "n1") const {
    const absl::Status status = CheckIdentity(identity, NodeName(node), now);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  }
  const CertificateAuthority authority_ = CertificateAuthority::Make(kToday).value();
  const PrivateKey key_ = PrivateKey::Make().value();
  const NodeIdentity identity_;
};

TEST_F(NodeIdentityTest, OfAMemberIsWell) {
  EXPECT_EQ(CheckIdentity(identity_, NodeName("n1"), kToday), absl::OkStatus());
  EXPECT_EQ(CheckIdentity(identity_, NodeName("n1"), kToday - absl::Minutes(50)), absl::OkStatus()) << "a clock that is behind";
  EXPECT_EQ(RenewalOf(identity_), kToday + kLifetime * 2 / 3);
  // Two authorities while the cluster changes to a new one.
  NodeIdentity changing = identity_;
  changing.authorities = CertificateAuthority::Make(kToday)->certificate().ToPem() + identity_.authorities;
  EXPECT_EQ(CheckIdentity(changing, NodeName("n1"), kToday), absl::OkStatus());
}

TEST_F(NodeIdentityTest, TimesAreSaidWithTheClock) {
  const absl::Status late = CheckIdentity(identity_, NodeName("n1"), kToday + kLifetime);
  const absl::Status early = CheckIdentity(identity_, NodeName("n1"), kToday - absl::Hours(2));
  EXPECT_TRUE(absl::IsUnavailable(late) && absl::IsUnavailable(early)) << "clocks get set";
  EXPECT_THAT(std::string(late.message()),
              HasSubstr("expired on 2026-12-26 12:00 UTC, and this machine's clock says 2026-12-26 12:00 UTC: set the clock "
                        "where it is ahead, else join again: motley-worker --join TOKEN"));
  EXPECT_THAT(std::string(early.message()),
              HasSubstr("valid from 2026-11-26 11:00 UTC on, and this machine's clock says 2026-11-26 10:00 UTC: set the clock "
                        "where it is behind, else join again: motley-worker --join TOKEN"));
}

TEST_F(NodeIdentityTest, FilesThatAreMissingOrOfOthersAreNamed) {
  const auto with = [this](std::string NodeIdentity::*file, const std::string& text) {
    NodeIdentity other = identity_;
    other.*file = text;
    return Refusal(other);
  };
  const CertificateAuthority other = CertificateAuthority::Make(kToday).value();
  const PrivateKey key = PrivateKey::Make().value();
  EXPECT_THAT(with(&NodeIdentity::key, ""), HasSubstr("the node's key: not a private key"));
  EXPECT_THAT(with(&NodeIdentity::certificate, "rubbish"), HasSubstr("the node's certificate: no certificate"));
  EXPECT_THAT(with(&NodeIdentity::authorities, ""), HasSubstr("the cluster's authority: no certificate"));
  EXPECT_THAT(with(&NodeIdentity::key, key.ToPem().value()), HasSubstr("certificate is of another key"));
  EXPECT_THAT(with(&NodeIdentity::authorities, other.certificate().ToPem()),
              HasSubstr("of another cluster than its authority's"));
  EXPECT_THAT(Refusal(identity_, kToday, "n2"), HasSubstr("the certificate is of node n1, this node is n2"));
  const auto coordinators =
      authority_.IssueCoordinator(Term{1, "0123456789abcdef"}, key_.SigningRequest().value(), kToday, kLifetime);
  EXPECT_THAT(with(&NodeIdentity::certificate, coordinators->ToPem()), HasSubstr("spiffe://motley/term/1"));
}

}  // namespace
}  // namespace motley
