#include "common/tls/certificate_authority.h"

#include <openssl/pem.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/hmac.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/tls/openssl_types.h"

namespace motley {
namespace {

constexpr char kNodes[] = "spiffe://motley/node/";
constexpr size_t kLongestRequest = 16 << 10;
constexpr absl::Duration kAuthorityLifetime = absl::Hours(24 * 3652);
constexpr int64_t kAuthorityFromUnixSeconds = 1'577'836'800;  // 2020
constexpr int kSerialBytes = 16;

// What a certificate says. `alternative` as OpenSSL's configuration has it: "URI:...,DNS:...".
struct Statement {
  std::string common_name, alternative;
  absl::Time from, until;
  bool is_authority = false;
  std::string usage = {};  // "serverAuth", "clientAuth"
};

absl::Status AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, FreedBy<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  if (extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1) return absl::OkStatus();
  return OpenSslFailed(absl::StrCat("a certificate's ", OBJ_nid2sn(kind)));
}

// Random and positive: no list of those that were given is kept.
absl::Status SetSerial(X509* certificate) {
  MOTLEY_ASSIGN_OR_RETURN(std::string bytes, RandomBytes(kSerialBytes));
  bytes[0] = static_cast<char>((bytes[0] & 0x3f) | 0x40);
  const std::unique_ptr<BIGNUM, FreedBy<BN_free>> number(
      BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()), kSerialBytes, nullptr));
  if (number != nullptr && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr)
    return absl::OkStatus();
  return OpenSslFailed("a certificate's number");
}

absl::Status SetHeader(X509* certificate, X509* issuer, EVP_PKEY* subject_key, const Statement& statement) {
  X509_NAME* const subject = X509_get_subject_name(certificate);
  const auto* const name = reinterpret_cast<const unsigned char*>(statement.common_name.c_str());
  const bool made = X509_set_version(certificate, X509_VERSION_3) == 1 &&
                    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, name, -1, -1, 0) == 1 &&
                    X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
                    X509_set_pubkey(certificate, subject_key) == 1 &&
                    ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(statement.from)) != nullptr &&
                    ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(statement.until)) != nullptr;
  if (!made) return OpenSslFailed("a certificate");
  return SetSerial(certificate);
}

// `issuer` null: it signs itself.
absl::StatusOr<Certificate> Signed(EVP_PKEY* issuer_key, X509* issuer, EVP_PKEY* subject_key, const Statement& statement) {
  OwnedCertificate made(X509_new());
  if (made == nullptr) return OpenSslFailed("a certificate");
  if (issuer == nullptr) issuer = made.get();
  MOTLEY_RETURN_IF_ERROR(SetHeader(made.get(), issuer, subject_key, statement));
  std::vector<std::pair<int, std::string>> extensions = {{NID_subject_key_identifier, "hash"}};
  if (statement.is_authority) {
    extensions.insert(extensions.end(),
                      {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"}, {NID_key_usage, "critical,keyCertSign"}});
  } else {
    extensions.insert(extensions.end(), {{NID_authority_key_identifier, "keyid"},
                                         {NID_basic_constraints, "critical,CA:FALSE"},
                                         {NID_key_usage, "critical,digitalSignature"},
                                         {NID_ext_key_usage, statement.usage},
                                         {NID_subject_alt_name, statement.alternative}});
  }
  for (const auto& [kind, value] : extensions) MOTLEY_RETURN_IF_ERROR(AddExtension(made.get(), issuer, kind, value));
  if (X509_sign(made.get(), issuer_key, EVP_sha256()) <= 0) return OpenSslFailed("a certificate's signature");
  return Certificate(std::shared_ptr<x509_st>(std::move(made)));
}

absl::StatusOr<OwnedKey> KeyOfRequest(std::string_view pem) {
  if (pem.size() > kLongestRequest) {
    return absl::InvalidArgumentError(
        absl::StrCat("the signing request has ", pem.size(), " bytes; it may have ", kLongestRequest));
  }
  const OwnedRequest request(PEM_read_bio_X509_REQ(BioOf(pem).get(), nullptr, nullptr, nullptr));
  if (request == nullptr) return absl::InvalidArgumentError("the signing request is no PKCS #10 in PEM");
  OwnedKey key(X509_REQ_get_pubkey(request.get()));
  if (!IsP256(key.get())) return absl::InvalidArgumentError("the signing request's key is not on P-256");
  if (X509_REQ_verify(request.get(), key.get()) != 1) {
    return absl::InvalidArgumentError("the signing request is not signed by its own key");
  }
  return key;
}

}  // namespace

std::string UriOf(const NodeName& node) { return absl::StrCat(kNodes, node.value()); }

absl::StatusOr<NodeName> NodeOf(const Certificate& certificate) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string name, certificate.OnlyUri(kNodes));
  MOTLEY_RETURN_IF_ERROR(CheckName("the certificate's node", name));
  return NodeName(name);
}

absl::StatusOr<std::string> KeyHashOfRequest(std::string_view request) {
  MOTLEY_ASSIGN_OR_RETURN(const OwnedKey key, KeyOfRequest(request));
  return HashOfPublicKey(key.get());
}

absl::StatusOr<CertificateAuthority> CertificateAuthority::Make(absl::Time now) {
  MOTLEY_ASSIGN_OR_RETURN(PrivateKey key, PrivateKey::Make());
  // Whatever a clock says that was wrong at the first start: whom it signs has times of his own.
  const absl::Time from = std::min(now - kClocksDiffer, absl::FromUnixSeconds(kAuthorityFromUnixSeconds));
  const Statement statement = {"motley cluster", "", from, now + kAuthorityLifetime, /*is_authority=*/true};
  MOTLEY_ASSIGN_OR_RETURN(Certificate certificate, Signed(key.get(), nullptr, key.get(), statement));
  return CertificateAuthority(std::move(key), std::move(certificate));
}

absl::StatusOr<CertificateAuthority> CertificateAuthority::FromPem(std::string_view key, std::string_view certificate) {
  MOTLEY_ASSIGN_OR_RETURN(PrivateKey read, PrivateKey::FromPem(key));
  MOTLEY_ASSIGN_OR_RETURN(std::vector<Certificate> certificates, Certificate::FromPem(certificate));
  const Certificate& own = certificates.front();
  if (!own.IsAuthority()) return absl::InvalidArgumentError("the certificate is no authority's");
  if (own.PublicHash() != read.PublicHash()) return absl::InvalidArgumentError("the certificate is of another key");
  return CertificateAuthority(std::move(read), own);
}

absl::StatusOr<Certificate> CertificateAuthority::IssueNode(const NodeName& node, std::string_view request, absl::Time now,
                                                            absl::Duration lifetime) const {
  MOTLEY_RETURN_IF_ERROR(CheckName("node", node.value()));
  MOTLEY_ASSIGN_OR_RETURN(const OwnedKey key, KeyOfRequest(request));
  // gRPC takes a common name for a host's where there is no other: with a blank it is no host's, whatever the node is called.
  const Statement statement = {absl::StrCat("node ", node.value()),
                               absl::StrCat("URI:", UriOf(node)),
                               now - kClocksDiffer,
                               now + lifetime,
                               /*is_authority=*/false,
                               "clientAuth"};
  return Signed(key_.get(), certificate_.get(), key.get(), statement);
}

absl::StatusOr<Certificate> CertificateAuthority::IssueCoordinator(const Term& term, std::string_view request, absl::Time now,
                                                                   absl::Duration lifetime) const {
  MOTLEY_ASSIGN_OR_RETURN(const OwnedKey key, KeyOfRequest(request));
  const Statement statement = {kCoordinatorName,       absl::StrCat("DNS:", kCoordinatorName, ",URI:", UriOf(term)),
                               now - kClocksDiffer,    now + lifetime,
                               /*is_authority=*/false, "serverAuth"};
  return Signed(key_.get(), certificate_.get(), key.get(), statement);
}

}  // namespace motley
