#include "coordinator/page/page_key.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/hmac.h"
#include "common/base/status_macros.h"

namespace motley::coordinator {
namespace {

constexpr size_t kBytes = 16;

bool IsKey(const std::string& text) {
  return text.size() == 2 * kBytes && std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isxdigit(c); });
}

}  // namespace

absl::StatusOr<std::string> PageKey(const std::string& state_folder) {
  const std::string path = state_folder + "/page.key";
  const absl::StatusOr<std::string> text = ReadSmallFile(path, 4096);
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  std::string key = text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : "";
  if (IsKey(key)) return key;
  MOTLEY_ASSIGN_OR_RETURN(const std::string bytes, RandomBytes(kBytes));
  key = absl::BytesToHexString(bytes);
  MOTLEY_RETURN_IF_ERROR(ReplaceFileDurably(path, key + "\n", 0600));
  return key;
}

}  // namespace motley::coordinator
