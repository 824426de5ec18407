#include "common/base/utf8.h"

namespace motley {

std::optional<int64_t> Utf8Checker::Feed(std::string_view bytes) {
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (missing_ > 0) {
      if (byte < low_ || byte > high_) return sequence_begin_;
      --missing_;
      low_ = 0x80;
      high_ = 0xBF;
    } else if (byte >= 0x80) {
      if (byte < 0xC2 || byte > 0xF4) return offset_;
      sequence_begin_ = offset_;
      missing_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
      // The second byte's range is what rules out overlong forms, surrogates and code points beyond the last.
      low_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
      high_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    }
    ++offset_;
  }
  return std::nullopt;
}

std::optional<int64_t> Utf8Checker::End() const { return missing_ > 0 ? std::optional<int64_t>(sequence_begin_) : std::nullopt; }

}  // namespace motley
