#include "worker/engine/transport/ring_stream.h"

#include <gtest/gtest.h>

namespace motley::engine {
namespace {

int64_t BytesOf(const RingStream& stream, int64_t begin, int64_t end) {
  int64_t sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += stream.segments[i].bytes;
  return sum;
}

TEST(RingStream, SendsAllButTheLastOwnerAndReceivesAllButTheFirst) {
  const std::vector<int64_t> bounds = {0, 10, 10, 25, 40};  // rank 1 owns nothing
  const RingStream stream = MakeRingStream(bounds, 4, /*first_owner=*/2, /*segment_bytes=*/16);
  EXPECT_EQ(BytesOf(stream, 0, stream.size()), 160);
  EXPECT_EQ(BytesOf(stream, 0, stream.send_end), 160 - 60);                // the last owner is rank 3
  EXPECT_EQ(BytesOf(stream, stream.recv_begin, stream.size()), 160 - 60);  // the first is rank 2
  EXPECT_EQ(stream.segments[0].offset_bytes, 40);
  for (const Segment& segment : stream.segments) EXPECT_LE(segment.bytes, 16);
}

// What a rank sends is what its right neighbour expects, segment by segment.
TEST(RingStream, NeighboursAgree) {
  const std::vector<int64_t> bounds = {0, 3, 3, 100, 101, 200};
  const int world = 5;
  for (int shift : {0, world - 1}) {  // all-gather and reduce-scatter
    for (int rank = 0; rank < world; ++rank) {
      const RingStream mine = MakeRingStream(bounds, 8, (rank + shift) % world, 64);
      const RingStream right = MakeRingStream(bounds, 8, (rank + 1 + shift) % world, 64);
      ASSERT_EQ(mine.send_end, right.size() - right.recv_begin);
      for (int64_t i = 0; i < mine.send_end; ++i) {
        EXPECT_EQ(mine.segments[i].offset_bytes, right.segments[right.recv_begin + i].offset_bytes);
        EXPECT_EQ(mine.segments[i].bytes, right.segments[right.recv_begin + i].bytes);
      }
    }
  }
}

TEST(RingStream, OneOwnerOfEverythingOnlySends) {
  const RingStream owner = MakeRingStream({0, 64, 64, 64}, 1, 0, 16);
  EXPECT_EQ(owner.send_end, 4);
  EXPECT_EQ(owner.recv_begin, owner.size());
}

TEST(SegmentBytes, IsWholeElementsAndBounded) {
  for (int64_t total : {1, 1000, 1000003, 1 << 28}) {
    for (double rate : {0.0, 1e3, 5e6, 50e6, 1e12}) {
      const int64_t bytes = SegmentBytes(total, 8, rate);
      EXPECT_EQ(bytes % 8, 0);
      EXPECT_GT(bytes, 0);
      EXPECT_LE(bytes, kMaxSegmentBytes);
    }
  }
}

}  // namespace
}  // namespace motley::engine
