#include "worker/engine/transport/ring_stream.h"

#include <algorithm>

namespace motley::engine {

RingStream MakeRingStream(const Owners& owners, int64_t element_bytes, int first_owner, int64_t segment_bytes) {
  const int members = static_cast<int>(owners.size());
  RingStream stream;
  for (int k = 0; k < members; ++k) {
    if (k == members - 1) stream.send_end = stream.size();
    for (const ElementRange& range : owners[(first_owner - k + members) % members]) {
      const int64_t end = range.end * element_bytes;
      for (int64_t offset = range.begin * element_bytes; offset < end; offset += segment_bytes) {
        stream.segments.push_back({offset, std::min(segment_bytes, end - offset)});
      }
    }
    if (k == 0) stream.recv_begin = stream.size();
  }
  return stream;
}

int64_t SegmentBytes(int64_t total_bytes, int64_t element_bytes, double slowest_bytes_per_second) {
  constexpr int64_t kSegmentsPerArray = 160;
  constexpr double kShortestSegmentSeconds = 0.4e-3;
  constexpr int64_t kUnpacedMinimum = 64 * 1024, kPacedMinimum = 2 * 1024;
  const bool paced = slowest_bytes_per_second > 0;
  const int64_t by_host = paced ? static_cast<int64_t>(slowest_bytes_per_second * kShortestSegmentSeconds) : kUnpacedMinimum;
  int64_t bytes = std::max(total_bytes / kSegmentsPerArray, std::max(by_host, kPacedMinimum));
  bytes = std::min(bytes, kMaxSegmentBytes);
  return std::max(bytes / element_bytes, int64_t{1}) * element_bytes;
}

}  // namespace motley::engine
