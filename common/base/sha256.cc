#include "common/base/sha256.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"

namespace motley {

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

namespace {

// Looked up once: OpenSSL 3 searches its providers at every use of EVP_sha256, which costs more than hashing a short text.
const EVP_MD* Algorithm() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return algorithm;
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_.get(), Algorithm(), nullptr); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(const void* data, size_t bytes) { EVP_DigestUpdate(context_.get(), data, bytes); }

std::string Sha256::Hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(context_.get(), digest, &size);
  return absl::BytesToHexString(std::string(reinterpret_cast<const char*>(digest), size));
}

std::string Sha256Hex(std::string_view text) {
  Sha256 sha;
  sha.Update(text.data(), text.size());
  return sha.Hex();
}

}  // namespace motley
