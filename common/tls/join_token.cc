#include "common/tls/join_token.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/clean_text.h"
#include "common/base/hmac.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"

namespace motley {
namespace {

constexpr char kVersion[] = "motley1";
constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz234567";  // RFC 4648, in lower case
constexpr size_t kHashDigits = 32, kIdLetters = 8, kSecretLetters = 26;

absl::StatusOr<std::string> RandomLetters(size_t count) {
  MOTLEY_ASSIGN_OR_RETURN(std::string text, RandomBytes(count));
  for (char& c : text) c = kLetters[static_cast<unsigned char>(c) % 32];
  return text;
}

std::string NameOf(const Certificate& authority) { return authority.Hash().substr(0, kHashDigits); }

// A part of the text, whose place is named and not what it says.
absl::Status CheckPart(const char* what, const std::string& part, size_t length, std::string_view letters) {
  if (part.size() != length) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token's ", what, " has ", part.size(), " characters instead of ", length, ": it was cut or glued"));
  }
  const auto wrong = std::find_if(part.begin(), part.end(), [&](char c) { return letters.find(c) == std::string_view::npos; });
  if (wrong == part.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the token's ", what, " has a character that no token has at place ", wrong - part.begin() + 1));
}

}  // namespace

absl::StatusOr<JoinToken> MakeJoinToken(const Certificate& authority) {
  JoinToken token = {.authority = NameOf(authority), .id = {}, .secret = {}};
  MOTLEY_ASSIGN_OR_RETURN(token.id, RandomLetters(kIdLetters));
  MOTLEY_ASSIGN_OR_RETURN(token.secret, RandomLetters(kSecretLetters));
  return token;
}

std::string ToText(const JoinToken& token) {
  return absl::StrCat(kVersion, ".", token.authority, ".", token.id, ".", token.secret);
}

absl::StatusOr<JoinToken> ParseJoinToken(std::string_view text) {
  const absl::string_view line = absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size()));
  const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits('.', 4));
  if (parts[0] != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("a token begins with ", kVersion, ".; this one with ",
                                                   Echo(parts[0].substr(0, 16)),
                                                   parts[0].starts_with("motley") ? ": it is of another version of motley" : ""));
  }
  if (parts.size() != 4) {
    return absl::InvalidArgumentError(absl::StrCat("a token has 4 parts with dots between them, this one ", parts.size()));
  }
  const JoinToken token = {parts[1], parts[2], parts[3]};
  MOTLEY_RETURN_IF_ERROR(CheckPart("authority", token.authority, kHashDigits, "0123456789abcdef"));
  MOTLEY_RETURN_IF_ERROR(CheckPart("id", token.id, kIdLetters, kLetters));
  MOTLEY_RETURN_IF_ERROR(CheckPart("secret", token.secret, kSecretLetters, kLetters));
  return token;
}

bool IsOf(const JoinToken& token, const Certificate& authority) { return EqualSecrets(token.authority, NameOf(authority)); }

std::string HashOfSecret(const JoinToken& token) { return Sha256Hex(token.secret); }

}  // namespace motley
