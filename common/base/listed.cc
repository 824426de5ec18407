#include "common/base/listed.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace motley {

std::vector<std::string> Listed(std::string_view text) {
  std::vector<std::string> entries;
  const std::string list(text);
  for (const absl::string_view entry : absl::StrSplit(list, ',')) {
    if (const absl::string_view word = absl::StripAsciiWhitespace(entry); !word.empty()) entries.emplace_back(word);
  }
  return entries;
}

}  // namespace motley
