#include "common/tls/private_key.h"

#include <openssl/ec.h>
#include <openssl/pem.h>

#include "common/tls/openssl_types.h"

namespace motley {

absl::StatusOr<PrivateKey> PrivateKey::Make() {
  OwnedKey key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslFailed("a new key");
  return PrivateKey(std::shared_ptr<evp_pkey_st>(std::move(key)));
}

absl::StatusOr<PrivateKey> PrivateKey::FromPem(std::string_view pem) {
  // No passphrase is asked for: an encrypted key is refused.
  const auto no_passphrase = [](char*, int, int, void*) { return 0; };
  OwnedKey key(PEM_read_bio_PrivateKey(BioOf(pem).get(), nullptr, no_passphrase, nullptr));
  if (!IsP256(key.get())) return absl::InvalidArgumentError("not a private key on P-256 in PEM without a passphrase");
  return PrivateKey(std::shared_ptr<evp_pkey_st>(std::move(key)));
}

absl::StatusOr<std::string> PrivateKey::ToPem() const {
  const OwnedBio bio = BioOf("");
  if (PEM_write_bio_PKCS8PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpenSslFailed("a key as text");
  }
  return TextOf(bio.get());
}

absl::StatusOr<std::string> PrivateKey::SigningRequest() const {
  const OwnedRequest request(X509_REQ_new());
  const OwnedBio bio = BioOf("");
  const bool made = request != nullptr && X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) == 1 &&
                    X509_REQ_set_pubkey(request.get(), key_.get()) == 1 &&
                    X509_REQ_sign(request.get(), key_.get(), EVP_sha256()) > 0 &&
                    PEM_write_bio_X509_REQ(bio.get(), request.get()) == 1;
  if (!made) return OpenSslFailed("a signing request");
  return TextOf(bio.get());
}

std::string PrivateKey::PublicHash() const { return HashOfPublicKey(key_.get()); }

}  // namespace motley
