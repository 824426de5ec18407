#include "common/tls/openssl_types.h"

#include <openssl/core_names.h>
#include <openssl/err.h>

#include "absl/strings/str_cat.h"

namespace motley {

absl::Status OpenSslFailed(std::string_view what) {
  char text[256] = "no reason given";
  if (const unsigned long error = ERR_peek_last_error(); error != 0) ERR_error_string_n(error, text, sizeof(text));  // NOLINT
  ERR_clear_error();
  return absl::InternalError(absl::StrCat(std::string(what), ": ", text));
}

OwnedBio BioOf(std::string_view text) {
  OwnedBio bio(BIO_new(BIO_s_mem()));
  if (bio != nullptr && !text.empty()) BIO_write(bio.get(), text.data(), static_cast<int>(text.size()));
  return bio;
}

std::string TextOf(BIO* bio) {
  const char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

bool IsP256(const EVP_PKEY* key) {
  char curve[32] = "";
  if (key == nullptr || EVP_PKEY_get_base_id(key) != EVP_PKEY_EC) return false;
  if (EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, curve, sizeof(curve), nullptr) != 1) return false;
  return std::string_view(curve) == "prime256v1";
}

std::string HashOfPublicKey(const EVP_PKEY* key) { return HashOfDer<i2d_PUBKEY>(key); }

}  // namespace motley
