#include "common/tls/join_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/tls/certificate_authority.h"

namespace motley {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const CertificateAuthority& Authority() {
  static const CertificateAuthority authority = CertificateAuthority::Make(absl::Now()).value();
  return authority;
}

TEST(JoinTokenTest, IsOneLineAndComesBack) {
  const JoinToken token = MakeJoinToken(Authority().certificate()).value();
  const std::string text = ToText(token);
  EXPECT_THAT(text, testing::MatchesRegex("motley1\\.[0-9a-f]+\\.[a-z2-7]+\\.[a-z2-7]+"));
  EXPECT_EQ(text.size(), 7u + 1 + 32 + 1 + 8 + 1 + 26);
  EXPECT_EQ(*ParseJoinToken(text), token);
  EXPECT_EQ(*ParseJoinToken(absl::StrCat("  ", text, "\r\n")), token);
  const JoinToken other = MakeJoinToken(Authority().certificate()).value();
  EXPECT_NE(other.id, token.id);
  EXPECT_NE(other.secret, token.secret);
  EXPECT_NE(HashOfSecret(other), HashOfSecret(token));
  EXPECT_EQ(HashOfSecret(token).size(), 64u);
}

TEST(JoinTokenTest, NamesItsAuthority) {
  const JoinToken token = MakeJoinToken(Authority().certificate()).value();
  EXPECT_TRUE(IsOf(token, Authority().certificate()));
  EXPECT_FALSE(IsOf(token, CertificateAuthority::Make(absl::Now())->certificate()));
}

TEST(JoinTokenTest, WhatIsWrongIsSaidWithoutTheSecret) {
  const JoinToken token = MakeJoinToken(Authority().certificate()).value();
  const std::string text = ToText(token);
  const auto refusal = [&](const std::string& wrong) {
    const auto parsed = ParseJoinToken(wrong);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << wrong;
    const std::string message(parsed.status().message());
    EXPECT_LT(message.size(), 200u);
    EXPECT_THAT(message, Not(HasSubstr(token.secret.substr(0, 8))));
    return message;
  };
  EXPECT_THAT(refusal(""), HasSubstr("a token begins with motley1."));
  EXPECT_THAT(refusal("motley2" + text.substr(7)), HasSubstr("of another version of motley"));
  EXPECT_THAT(refusal(text.substr(0, text.size() - 1)), HasSubstr("secret has 25 characters instead of 26"));
  EXPECT_THAT(refusal(text + text), HasSubstr("a token has 4 parts"));
  EXPECT_THAT(refusal("motley1.abc"), HasSubstr("4 parts with dots between them, this one 2"));
  EXPECT_THAT(refusal(text.substr(0, text.size() - 1) + "1"), HasSubstr("secret has a character that no token has at place 26"));
  EXPECT_THAT(refusal(absl::StrCat("motley1.", std::string(32, 'G'), ".", token.id, ".", token.secret)), HasSubstr("authority"));
  EXPECT_THAT(refusal(absl::StrCat("motley1.", token.authority, ".", "UPPERCAS", ".", token.secret)), HasSubstr("id"));
  refusal(std::string(1 << 20, 'm'));
  refusal(text.substr(0, 60) + std::string(1, '\0'));
}

}  // namespace
}  // namespace motley
