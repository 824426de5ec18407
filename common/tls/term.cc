#include "common/tls/term.h"

#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/clean_text.h"
#include "common/base/hmac.h"
#include "common/base/status_macros.h"

namespace motley {
namespace {

constexpr char kTerms[] = "spiffe://motley/term/";
constexpr size_t kIdBytes = 8;

bool IsId(std::string_view text) {
  return text.size() == 2 * kIdBytes && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

absl::StatusOr<Term> NewTerm(int64_t number) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string bytes, RandomBytes(kIdBytes));
  return Term{number, absl::BytesToHexString(bytes)};
}

std::string ToText(const Term& term) { return absl::StrCat("term ", term.number, " (", term.id, ")"); }

std::string UriOf(const Term& term) { return absl::StrCat(kTerms, term.number, "/", term.id); }

absl::StatusOr<Term> TermOf(const Certificate& certificate) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string text, certificate.OnlyUri(kTerms));
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  Term term;
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &term.number) && term.number >= 1 && IsId(parts[1])) {
    term.id = parts[1];
    return term;
  }
  return absl::InvalidArgumentError(absl::StrCat("the certificate's term is no number from 1 on with an id: ", Echo(text)));
}

TermRelation Compare(const Term& shown, const Term& known) {
  if (shown.number != known.number) return shown.number > known.number ? TermRelation::kHigher : TermRelation::kLower;
  return shown.id == known.id ? TermRelation::kSame : TermRelation::kRival;
}

}  // namespace motley
