// Which connection of two ranks a socket is. Two ranks have one for the host exchange (scalars, texts) if they are neighbours in
// its ring, one for each group in whose ring they are neighbours, and one for each direction in which they hand over. Both ends
// compute the number alone, so it is the same on both; a number is unique to its pair, not to the mesh.
#pragma once

#include <cstdint>

namespace motley::engine {

using Channel = uint32_t;

inline constexpr Channel kHostExchangeChannel = 0;
// 1: from the lower rank to the higher one; 2: back.
constexpr Channel HandOverChannel(int from, int to) { return from < to ? 1 : 2; }
constexpr Channel GroupChannel(int group) { return 3 + static_cast<Channel>(group); }

}  // namespace motley::engine
