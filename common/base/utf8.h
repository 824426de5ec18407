// Whether bytes are UTF-8, told piece by piece.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace motley {

// Not thread-safe. Overlong forms, surrogates and code points above U+10FFFF are refused.
class Utf8Checker {
 public:
  // Offset, counted from the first byte ever fed, of the first byte of the first wrong sequence; nothing while all is well.
  std::optional<int64_t> Feed(std::string_view bytes);
  // At the end: the offset of a sequence that was cut off, if one was.
  std::optional<int64_t> End() const;

 private:
  int64_t offset_ = 0;                // bytes fed
  int64_t sequence_begin_ = 0;        // of the sequence under way
  int missing_ = 0;                   // continuation bytes still to come
  uint8_t low_ = 0x80, high_ = 0xBF;  // what the next one may be
};

}  // namespace motley
