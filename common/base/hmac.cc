#include "common/base/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>

#include <memory>

namespace motley {

std::string HmacSha256(std::string_view key, std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       digest, &size);
  return std::string(reinterpret_cast<const char*>(digest), size);
}

absl::StatusOr<std::string> HkdfSha256(std::string_view secret, std::string_view salt, std::string_view use, size_t bytes) {
  const auto data = [](std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); };
  const auto size = [](std::string_view text) { return static_cast<int>(text.size()); };
  const std::unique_ptr<EVP_PKEY_CTX, void (*)(EVP_PKEY_CTX*)> context(EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr),
                                                                       &EVP_PKEY_CTX_free);
  std::string key(bytes, '\0');
  size_t made = bytes;
  if (context != nullptr && EVP_PKEY_derive_init(context.get()) == 1 &&
      EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()) == 1 &&
      EVP_PKEY_CTX_set1_hkdf_salt(context.get(), data(salt), size(salt)) == 1 &&
      EVP_PKEY_CTX_set1_hkdf_key(context.get(), data(secret), size(secret)) == 1 &&
      EVP_PKEY_CTX_add1_hkdf_info(context.get(), data(use), size(use)) == 1 &&
      EVP_PKEY_derive(context.get(), reinterpret_cast<unsigned char*>(key.data()), &made) == 1 && made == bytes) {
    return key;
  }
  return absl::InternalError("OpenSSL made no key by HKDF");
}

bool EqualSecrets(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

absl::StatusOr<std::string> RandomBytes(size_t bytes) {
  std::string random(bytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(random.data()), static_cast<int>(bytes)) == 1) return random;
  return absl::InternalError("the system gives no random bytes");
}

}  // namespace motley
