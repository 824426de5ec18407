#include "common/base/gmac.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"

namespace motley {
namespace {

Gmac Of(const std::string& key) {
  absl::StatusOr<Gmac> gmac = Gmac::Create(key);
  EXPECT_TRUE(gmac.ok()) << gmac.status();
  return *std::move(gmac);
}

std::string CodeOf(Gmac& gmac, const std::string& message) {
  const absl::StatusOr<Gmac::Code> code = gmac.Next(message.data(), message.size());
  EXPECT_TRUE(code.ok()) << code.status();
  return absl::BytesToHexString(std::string(code->data(), code->size()));
}

// Reference: McGrew and Viega, The Galois/Counter Mode of Operation, test case 13: key, nonce and text are zeros and nothing.
TEST(Gmac, TheKnownAnswer) {
  Gmac gmac = Of(std::string(Gmac::kKeyBytes, '\0'));
  EXPECT_EQ(CodeOf(gmac, ""), "530f8afbc74536b9a963b4f1c4cb738b");
}

// Made with Python's cryptography: AESGCM(bytes(range(32))).encrypt(number.to_bytes(12, "big"), b"", b"motley" * 100).
TEST(Gmac, EachMessageHasItsOwnNumber) {
  std::string key;
  for (char c = 0; c < 32; ++c) key += c;
  Gmac gmac = Of(key);
  std::string message;
  for (int i = 0; i < 100; ++i) message += "motley";
  EXPECT_EQ(CodeOf(gmac, message), "be0b56e7d2b5c66ed708d6c92b56a230");
  EXPECT_EQ(CodeOf(gmac, message), "7828d861103d0cff791f4f6d69827667");
  EXPECT_EQ(gmac.messages(), 2u);
}

TEST(Gmac, BothEndsCountAlike) {
  const std::string key(Gmac::kKeyBytes, 'k');
  Gmac one = Of(key), other = Of(key);
  for (const std::string& message : {std::string("a"), std::string(), std::string(1 << 18, 'x'), std::string("a")}) {
    EXPECT_EQ(CodeOf(one, message), CodeOf(other, message));
  }
  EXPECT_NE(CodeOf(one, "a"), CodeOf(one, "a"));
}

TEST(Gmac, AKeyHasItsSize) {
  for (const size_t bytes : {0, 16, 31, 33}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Gmac::Create(std::string(bytes, 'k')).status())) << bytes;
  }
}

}  // namespace
}  // namespace motley
