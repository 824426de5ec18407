// OpenSSL's objects as owned pointers, and what it says when it refuses. Private to common/tls.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/sha256.h"

namespace motley {

template <auto kFree>
struct FreedBy {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using OwnedKey = std::unique_ptr<EVP_PKEY, FreedBy<EVP_PKEY_free>>;
using OwnedCertificate = std::unique_ptr<X509, FreedBy<X509_free>>;
using OwnedRequest = std::unique_ptr<X509_REQ, FreedBy<X509_REQ_free>>;
using OwnedBio = std::unique_ptr<BIO, FreedBy<BIO_free_all>>;

// INTERNAL with the newest of the library's errors, which are cleared.
absl::Status OpenSslFailed(std::string_view what);
// A buffer to read `text` from, or an empty one to write to.
OwnedBio BioOf(std::string_view text);
std::string TextOf(BIO* bio);
// Hex SHA-256 of what `kToDer` (i2d_X509) makes of the object; empty where it makes nothing.
template <auto kToDer, typename T>
std::string HashOfDer(const T* object) {
  unsigned char* der = nullptr;
  const int size = kToDer(object, &der);
  if (size <= 0) return "";
  const std::string text(reinterpret_cast<const char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return Sha256Hex(text);
}
// Whether it is a key on P-256, the one curve that is taken.
bool IsP256(const EVP_PKEY* key);
// Hex SHA-256 of the key's SubjectPublicKeyInfo (RFC 5280, section 4.1): by which a key is known.
std::string HashOfPublicKey(const EVP_PKEY* key);

}  // namespace motley
