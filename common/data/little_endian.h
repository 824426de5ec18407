// Numbers as files have them, whatever the address and this machine's order.
#pragma once

#include <cstddef>
#include <type_traits>

namespace motley {

template <typename Number>
Number Little(const char* bytes) {
  using Bits = std::make_unsigned_t<Number>;
  Bits bits = 0;
  for (size_t i = 0; i < sizeof(Number); ++i) {
    bits = static_cast<Bits>(bits | static_cast<Bits>(static_cast<Bits>(static_cast<unsigned char>(bytes[i])) << (8 * i)));
  }
  return static_cast<Number>(bits);
}

}  // namespace motley
