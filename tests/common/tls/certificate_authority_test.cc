// The cluster's authority: what it signs, and what it refuses.
#include "common/tls/certificate_authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "common/tls/openssl_types.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromCivil(absl::CivilSecond(2026, 11, 26, 12, 0, 0), absl::UTCTimeZone());
constexpr absl::Duration kMonth = absl::Hours(24 * 30);

std::string RequestOf(const PrivateKey& key) { return key.SigningRequest().value(); }

// A request for any key, that asks for a name of its own.
std::string RequestWith(EVP_PKEY* key, const char* common_name) {
  const OwnedRequest request(X509_REQ_new());
  X509_REQ_set_version(request.get(), X509_REQ_VERSION_1);
  X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(request.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name), -1, -1, 0);
  X509_REQ_set_pubkey(request.get(), key);
  X509_REQ_sign(request.get(), key, EVP_sha256());
  const OwnedBio bio = BioOf("");
  PEM_write_bio_X509_REQ(bio.get(), request.get());
  return TextOf(bio.get());
}

class AuthorityTest : public testing::Test {
 protected:
  std::string Refusal(const std::string& request, const std::string& node = "n1") const {
    const auto issued = authority_.IssueNode(NodeName(node), request, kNow, kMonth);
    EXPECT_EQ(issued.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(issued.status().message());
  }
  const CertificateAuthority authority_ = CertificateAuthority::Make(kNow).value();
  const PrivateKey key_ = PrivateKey::Make().value();
};

TEST_F(AuthorityTest, ComesBackFromItsFiles) {
  const auto again = CertificateAuthority::FromPem(authority_.KeyPem().value(), authority_.certificate().ToPem());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->certificate().Hash(), authority_.certificate().Hash());
  EXPECT_TRUE(again->certificate().IsAuthority());
  EXPECT_TRUE(again->certificate().IsSignedBy(authority_.certificate()));
  const auto issued = again->IssueNode(NodeName("n1"), RequestOf(key_), kNow, kMonth);
  ASSERT_TRUE(issued.ok()) << issued.status();
  EXPECT_TRUE(issued->IsSignedBy(authority_.certificate()));
}

TEST_F(AuthorityTest, FilesThatDoNotBelongTogetherAreRefused) {
  const CertificateAuthority other = CertificateAuthority::Make(kNow).value();
  const auto message = [](const auto& read) { return std::string(read.status().message()); };
  const std::string key = authority_.KeyPem().value(), certificate = authority_.certificate().ToPem();
  EXPECT_THAT(message(CertificateAuthority::FromPem(key, other.certificate().ToPem())), HasSubstr("of another key"));
  EXPECT_THAT(message(CertificateAuthority::FromPem("", certificate)), HasSubstr("not a private key on P-256"));
  EXPECT_THAT(message(CertificateAuthority::FromPem(key, "")), HasSubstr("no certificate"));
  EXPECT_THAT(message(CertificateAuthority::FromPem(key, certificate.substr(0, 200))), HasSubstr("no certificate"));
  EXPECT_THAT(message(CertificateAuthority::FromPem(key, certificate + certificate.substr(0, 200))), HasSubstr("cannot be read"));
  const auto node = authority_.IssueNode(NodeName("n1"), RequestOf(key_), kNow, kMonth);
  EXPECT_THAT(message(CertificateAuthority::FromPem(key_.ToPem().value(), node->ToPem())), HasSubstr("is no authority's"));
}

TEST_F(AuthorityTest, ANodesCertificateSaysWhatTheAuthorityWrote) {
  const auto issued = authority_.IssueNode(NodeName("n1"), RequestOf(key_), kNow, kMonth);
  ASSERT_TRUE(issued.ok()) << issued.status();
  EXPECT_THAT(issued->Uris(), ElementsAre("spiffe://motley/node/n1"));
  EXPECT_THAT(issued->DnsNames(), IsEmpty());
  EXPECT_EQ(*NodeOf(*issued), NodeName("n1"));
  EXPECT_EQ(issued->PublicHash(), key_.PublicHash());
  EXPECT_EQ(issued->not_before(), kNow - absl::Hours(1)) << "clocks differ";
  EXPECT_EQ(issued->not_after(), kNow + kMonth);
  EXPECT_FALSE(issued->IsAuthority());
  EXPECT_FALSE(issued->IsSignedBy(CertificateAuthority::Make(kNow)->certificate())) << "of the same name";
  EXPECT_THAT(std::string(TermOf(*issued).status().message()), HasSubstr("spiffe://motley/node/n1"));
  // Never two of one number.
  EXPECT_NE(issued->Hash(), authority_.IssueNode(NodeName("n1"), RequestOf(key_), kNow, kMonth)->Hash());
}

TEST_F(AuthorityTest, ACoordinatorsSaysItsTerm) {
  const auto issued = authority_.IssueCoordinator(Term{3, "5e0c4b29bb5a7fbd"}, RequestOf(key_), kNow, kMonth);
  ASSERT_TRUE(issued.ok()) << issued.status();
  EXPECT_THAT(issued->Uris(), ElementsAre("spiffe://motley/term/3/5e0c4b29bb5a7fbd"));
  EXPECT_THAT(issued->DnsNames(), ElementsAre("coordinator.motley"));
  EXPECT_EQ(*TermOf(*issued), (Term{3, "5e0c4b29bb5a7fbd"}));
  EXPECT_FALSE(NodeOf(*issued).ok());
  EXPECT_FALSE(TermOf(authority_.certificate()).ok()) << "which has no name";
  for (const Term& none :
       {Term{0, "5e0c4b29bb5a7fbd"}, Term{3, ""}, Term{3, "5E0C4B29BB5A7FBD"}, Term{3, "5e0c4b29bb5a7fbd/1"}}) {
    EXPECT_FALSE(TermOf(*authority_.IssueCoordinator(none, RequestOf(key_), kNow, kMonth)).ok()) << ToText(none);
  }
}

// Only the key counts.
TEST_F(AuthorityTest, NamesInARequestAreNotBelieved) {
  const auto issued = authority_.IssueNode(NodeName("n1"), RequestWith(key_.get(), "coordinator.motley"), kNow, kMonth);
  ASSERT_TRUE(issued.ok()) << issued.status();
  EXPECT_THAT(issued->Uris(), ElementsAre("spiffe://motley/node/n1"));
  EXPECT_THAT(issued->DnsNames(), IsEmpty());
}

TEST_F(AuthorityTest, OtherKeysAndBrokenRequestsAreRefused) {
  const OwnedKey rsa(EVP_RSA_gen(1024)), p521(EVP_EC_gen("P-521"));
  EXPECT_THAT(Refusal(RequestWith(rsa.get(), "n1")), HasSubstr("key is not on P-256"));
  EXPECT_THAT(Refusal(RequestWith(p521.get(), "n1")), HasSubstr("key is not on P-256"));
  EXPECT_THAT(Refusal(""), HasSubstr("no PKCS #10"));
  EXPECT_THAT(Refusal(authority_.certificate().ToPem()), HasSubstr("no PKCS #10"));
  EXPECT_THAT(Refusal(RequestOf(key_).substr(0, 120)), HasSubstr("no PKCS #10"));
  EXPECT_THAT(Refusal(std::string(64 << 10, 'a')), HasSubstr("has 65536 bytes; it may have 16384"));
  // Another's public key, signed by one's own.
  const OwnedRequest request(X509_REQ_new());
  X509_REQ_set_pubkey(request.get(), key_.get());
  const PrivateKey mine = PrivateKey::Make().value();
  X509_REQ_sign(request.get(), mine.get(), EVP_sha256());
  const OwnedBio bio = BioOf("");
  PEM_write_bio_X509_REQ(bio.get(), request.get());
  EXPECT_THAT(Refusal(TextOf(bio.get())), HasSubstr("not signed by its own key"));
}

TEST_F(AuthorityTest, NamesThatNoNodeMayHaveAreRefused) {
  for (const std::string& name : {std::string(""), std::string("n1/gpu0"), std::string("n1,DNS:coordinator.motley"),
                                  std::string("a b"), std::string(300, 'a'), std::string("n\0m", 3), std::string("%2e%2e")}) {
    EXPECT_FALSE(Refusal(RequestOf(key_), name).empty()) << name;
  }
}

TEST(PrivateKeyTest, ComesBackFromItsText) {
  const PrivateKey key = PrivateKey::Make().value();
  const auto again = PrivateKey::FromPem(key.ToPem().value());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->PublicHash(), key.PublicHash());
  EXPECT_NE(PrivateKey::Make()->PublicHash(), key.PublicHash());
  const OwnedKey rsa(EVP_RSA_gen(1024));
  const OwnedBio bio = BioOf("");
  PEM_write_bio_PKCS8PrivateKey(bio.get(), rsa.get(), nullptr, nullptr, 0, nullptr, nullptr);
  EXPECT_FALSE(PrivateKey::FromPem(TextOf(bio.get())).ok());
}

}  // namespace
}  // namespace motley
