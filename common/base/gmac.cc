#include "common/base/gmac.h"

#include <openssl/evp.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

constexpr size_t kMostBytesOfCall = size_t{1} << 30;  // OpenSSL counts in int

}  // namespace

void Gmac::Free::operator()(evp_cipher_ctx_st* context) const { EVP_CIPHER_CTX_free(context); }

absl::StatusOr<Gmac> Gmac::Create(std::string_view key) {
  if (key.size() != kKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a key of ", key.size(), " bytes instead of ", kKeyBytes));
  }
  Context context(EVP_CIPHER_CTX_new());
  if (context == nullptr || EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr,
                                               reinterpret_cast<const unsigned char*>(key.data()), nullptr) != 1) {
    return absl::InternalError("OpenSSL has no AES-256-GCM here, by which messages between ranks are authenticated");
  }
  return Gmac(std::move(context));
}

absl::StatusOr<Gmac::Code> Gmac::Next(const void* message, size_t bytes) {
  std::array<unsigned char, 12> number{};  // the nonce: 4 zeros and the message's place, the high byte first
  for (size_t i = 0; i < sizeof(messages_); ++i) number[11 - i] = static_cast<unsigned char>(messages_ >> (8 * i));
  ++messages_;
  EVP_CIPHER_CTX* const context = context_.get();
  bool good = EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, number.data()) == 1;
  int length = 0;
  const auto* next = static_cast<const unsigned char*>(message);
  for (size_t left = bytes; good && left > 0;) {
    const size_t part = std::min(left, kMostBytesOfCall);
    good = EVP_EncryptUpdate(context, nullptr, &length, next, static_cast<int>(part)) == 1;  // no output: authenticated alone
    next += part;
    left -= part;
  }
  unsigned char nothing[EVP_MAX_BLOCK_LENGTH];
  Code code;
  good = good && EVP_EncryptFinal_ex(context, nothing, &length) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, kCodeBytes, code.data()) == 1;
  if (!good) return absl::InternalError("OpenSSL made no authentication code");
  return code;
}

}  // namespace motley
