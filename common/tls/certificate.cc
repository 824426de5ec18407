#include "common/tls/certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/tls/openssl_types.h"

namespace motley {
namespace {

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

}  // namespace

absl::StatusOr<std::vector<Certificate>> Certificate::FromPem(std::string_view pem) {
  const OwnedBio bio = BioOf(pem);
  std::vector<Certificate> certificates;
  while (OwnedCertificate next{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    certificates.emplace_back(std::shared_ptr<x509_st>(std::move(next)));
  }
  // The end of the text is an error of its own kind.
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (certificates.empty()) return absl::InvalidArgumentError("no certificate in PEM");
  if (!at_end) return absl::InvalidArgumentError("behind a certificate is one that cannot be read");
  return certificates;
}

std::string Certificate::ToPem() const {
  const OwnedBio bio = BioOf("");
  PEM_write_bio_X509(bio.get(), certificate_.get());
  return TextOf(bio.get());
}

std::string Certificate::Hash() const { return HashOfDer<i2d_X509>(certificate_.get()); }

std::string Certificate::PublicHash() const { return HashOfPublicKey(X509_get0_pubkey(certificate_.get())); }

absl::Time Certificate::not_before() const { return TimeOf(X509_get0_notBefore(certificate_.get())); }
absl::Time Certificate::not_after() const { return TimeOf(X509_get0_notAfter(certificate_.get())); }

std::vector<std::string> Certificate::AlternativeNames(int kind) const {
  std::vector<std::string> names;
  auto* const all = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate_.get(), NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all, i);
    if (name->type != kind) continue;
    const ASN1_IA5STRING* const text = kind == GEN_URI ? name->d.uniformResourceIdentifier : name->d.dNSName;
    names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)), static_cast<size_t>(ASN1_STRING_length(text)));
  }
  GENERAL_NAMES_free(all);
  return names;
}

std::vector<std::string> Certificate::Uris() const { return AlternativeNames(GEN_URI); }
std::vector<std::string> Certificate::DnsNames() const { return AlternativeNames(GEN_DNS); }

absl::StatusOr<std::string> Certificate::OnlyUri(std::string_view prefix) const {
  const std::vector<std::string> uris = Uris();
  if (uris.size() != 1)
    return absl::InvalidArgumentError(absl::StrCat("the certificate has ", uris.size(), " URIs, it must have 1"));
  if (uris[0].starts_with(prefix)) return uris[0].substr(prefix.size());
  return absl::InvalidArgumentError(
      absl::StrCat("the certificate is of ", Echo(uris[0]), ", not of ", std::string(prefix), "..."));
}

bool Certificate::IsAuthority() const { return X509_check_ca(certificate_.get()) == 1; }

bool Certificate::IsSignedBy(const Certificate& authority) const {
  const bool is_signed = X509_verify(certificate_.get(), X509_get0_pubkey(authority.get())) == 1;
  ERR_clear_error();
  return is_signed;
}

}  // namespace motley
