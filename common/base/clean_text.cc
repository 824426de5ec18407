#include "common/base/clean_text.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/utf8.h"

namespace motley {
namespace {

bool IsPlain(char c, bool many_lines) { return (c >= 0x20 && c < 0x7f) || (many_lines && (c == '\n' || c == '\t')); }

// Of a sequence that is known to be good.
uint32_t CodePoint(std::string_view sequence) {
  const auto first = static_cast<uint8_t>(sequence[0]);
  uint32_t point = sequence.size() == 1 ? first : first & (0x7fu >> sequence.size());
  for (size_t i = 1; i < sequence.size(); ++i) point = point << 6 | (static_cast<uint8_t>(sequence[i]) & 0x3fu);
  return point;
}

struct Range {
  uint32_t first, last;
};

// What Unicode 15 says may be shown as nothing (Default_Ignorable_Code_Point): of no width, joiners, variation selectors, marks
// and turners of the writing direction, fillers, tags. With it, as little seen, the marks of notes between lines (fff9 to fffb).
constexpr Range kUnseen[] = {{0xad, 0xad},       {0x34f, 0x34f},    {0x61c, 0x61c},   {0x115f, 0x1160}, {0x17b4, 0x17b5},
                             {0x180b, 0x180f},   {0x200b, 0x200f},  {0x202a, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},
                             {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},  {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3},
                             {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};

bool SteersOrHides(uint32_t point) {
  return point < 0x20 || (point >= 0x7f && point < 0xa0) ||  // control characters
         point == 0x2028 || point == 0x2029 ||               // separators of lines
         std::any_of(std::begin(kUnseen), std::end(kUnseen),
                     [point](const Range& range) { return range.first <= point && point <= range.last; });
}

std::string Spelled(uint32_t point) {
  return point > 0xffff ? absl::StrFormat("\\U%08x", point) : absl::StrFormat("\\u%04x", point);
}

// How many bytes of `text`, which begins with a byte that is not plain, are one good sequence; 0: the byte is wrong.
size_t SequenceBytes(std::string_view text) {
  for (size_t bytes = 1; bytes <= std::min<size_t>(4, text.size()); ++bytes) {
    Utf8Checker checker;
    if (checker.Feed(text.substr(0, bytes))) return 0;
    if (!checker.End()) return bytes;
  }
  return 0;
}

std::string Clean(std::string_view text, bool many_lines) {
  const auto plain = [many_lines](char c) { return IsPlain(c, many_lines); };
  std::string out;
  while (!text.empty()) {
    const auto run = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), plain) - text.begin());
    out.append(text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) break;
    const size_t bytes = SequenceBytes(text);
    if (bytes == 0) {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<uint8_t>(text[0]));
    } else if (text[0] == '\n') {
      out += "\\n";
    } else if (const uint32_t point = CodePoint(text.substr(0, bytes)); SteersOrHides(point)) {
      out += Spelled(point);
    } else {
      out.append(text.substr(0, bytes));
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return out;
}

}  // namespace

std::string CleanLine(std::string_view text) { return Clean(text, /*many_lines=*/false); }
std::string CleanText(std::string_view text) { return Clean(text, /*many_lines=*/true); }

std::string Echo(std::string_view text) {
  if (text.size() <= kMostEchoedBytes) return CleanLine(text);
  size_t end = kMostEchoedBytes;
  while (end > kMostEchoedBytes - 4 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;  // not within a character
  return absl::StrCat(CleanLine(text.substr(0, end)), "... (", text.size(), " bytes)");
}

std::string Quoted(std::string_view text) { return absl::StrCat("'", Echo(text), "'"); }

}  // namespace motley
