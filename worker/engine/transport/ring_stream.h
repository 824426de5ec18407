// Which segments pass a member of the ring, in which order. Pure arithmetic; docs/inside/collectives.md derives it. Owners are
// members' places in the ring.
//
// Each member receives from its left neighbour and sends to its right one. It sends its first owner's block on its own account
// and then passes on everything that it receives, except the last owner's block, which ends here. Segments are numbered along
// this one stream: [0, send_end) are sent, [recv_begin, size) are received. A block is its owner's ranges, one after another.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/engine/transport/communicator.h"

namespace motley::engine {

struct Segment {
  int64_t offset_bytes = 0, bytes = 0;
};

struct RingStream {
  std::vector<Segment> segments;
  int64_t send_end = 0;
  int64_t recv_begin = 0;
  int64_t size() const { return static_cast<int64_t>(segments.size()); }
};

// All-gather: the stream begins with `first_owner` = the member's own block, then its left neighbour's, and so on.
// Reduce-scatter: it begins with the left neighbour's block and ends with its own.
RingStream MakeRingStream(const Owners& owners, int64_t element_bytes, int first_owner, int64_t segment_bytes);

// Small enough that filling the pipeline costs 2 % of the whole, large enough that the host keeps up with the link.
// The same on every rank: a function of the whole array and the slowest link on the way (0 = not paced).
int64_t SegmentBytes(int64_t total_bytes, int64_t element_bytes, double slowest_bytes_per_second);

inline constexpr int64_t kMaxSegmentBytes = 256 * 1024;

}  // namespace motley::engine
