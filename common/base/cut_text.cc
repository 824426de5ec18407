#include "common/base/cut_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

constexpr size_t kMarkBytes = 48;  // "... (and 18446744073709551615 bytes more)" and some

}  // namespace

std::string CutText(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t kept = max_bytes - std::min(max_bytes, kMarkBytes);
  // Not in the middle of a character: a continuation byte begins with the bits 10.
  while (kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xC0) == 0x80) --kept;
  return absl::StrCat(std::string(text.substr(0, kept)), "... (and ", text.size() - kept, " bytes more)");
}

}  // namespace motley
