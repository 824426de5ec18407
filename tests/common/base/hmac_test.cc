#include "common/base/hmac.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"

namespace motley {
namespace {

// Reference: RFC 4231, test cases 1, 2 and 6.
TEST(HmacTest, KnownAnswers) {
  EXPECT_EQ(absl::BytesToHexString(HmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(absl::BytesToHexString(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      absl::BytesToHexString(HmacSha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// Reference: RFC 5869, test case 1.
TEST(HmacTest, AKeyForEachUse) {
  const auto hex = [](const char* text) { return absl::HexStringToBytes(text); };
  const auto key = HkdfSha256(std::string(22, '\x0b'), hex("000102030405060708090a0b0c"), hex("f0f1f2f3f4f5f6f7f8f9"), 42);
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(absl::BytesToHexString(*key), "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
  EXPECT_NE(*HkdfSha256("secret", "salt", "one", 32), *HkdfSha256("secret", "salt", "other", 32));
  EXPECT_NE(*HkdfSha256("secret", "salt", "one", 32), *HkdfSha256("secret", "pepper", "one", 32));
}

TEST(HmacTest, EqualMeansAllBytes) {
  EXPECT_TRUE(EqualSecrets("abc", "abc"));
  EXPECT_TRUE(EqualSecrets("", ""));
  EXPECT_FALSE(EqualSecrets("abc", "abd"));
  EXPECT_FALSE(EqualSecrets("abc", "abcd"));
}

TEST(HmacTest, RandomBytesAreNotTheSameTwice) {
  const auto a = RandomBytes(32), b = RandomBytes(32);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->size(), 32u);
  EXPECT_NE(*a, *b);
}

}  // namespace
}  // namespace motley
