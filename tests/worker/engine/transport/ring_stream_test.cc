#include "worker/engine/transport/ring_stream.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/worker/engine/transport/ranks.h"

namespace motley::engine {
namespace {

int64_t BytesOf(const RingStream& stream, int64_t begin, int64_t end) {
  int64_t sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += stream.segments[i].bytes;
  return sum;
}

TEST(RingStream, SendsAllButTheLastOwnerAndReceivesAllButTheFirst) {
  const Owners owners = OwnersOf({0, 10, 10, 25, 40});  // member 1 owns nothing
  const RingStream stream = MakeRingStream(owners, 4, /*first_owner=*/2, /*segment_bytes=*/16);
  EXPECT_EQ(BytesOf(stream, 0, stream.size()), 160);
  EXPECT_EQ(BytesOf(stream, 0, stream.send_end), 160 - 60);                // the last owner is member 3
  EXPECT_EQ(BytesOf(stream, stream.recv_begin, stream.size()), 160 - 60);  // the first is member 2
  EXPECT_EQ(stream.segments[0].offset_bytes, 40);
  for (const Segment& segment : stream.segments) EXPECT_LE(segment.bytes, 16);
}

TEST(RingStream, ABlockIsItsOwnersRangesOneAfterAnother) {
  const Owners owners = {{{0, 2}, {6, 9}}, {}, {{2, 6}}};
  const RingStream stream = MakeRingStream(owners, 1, /*first_owner=*/0, /*segment_bytes=*/2);
  std::vector<int64_t> offsets;
  for (const Segment& segment : stream.segments) offsets.push_back(segment.offset_bytes);
  EXPECT_EQ(offsets, (std::vector<int64_t>{0, 6, 8, 2, 4}));
  EXPECT_EQ(stream.recv_begin, 3);
  EXPECT_EQ(stream.send_end, 5);  // the last block, of member 1, is empty
}

// What a member sends is what its right neighbour expects, segment by segment.
void ExpectNeighboursAgree(const Owners& owners) {
  const int members = static_cast<int>(owners.size());
  for (int shift : {0, members - 1}) {  // all-gather and reduce-scatter
    for (int m = 0; m < members; ++m) {
      const RingStream mine = MakeRingStream(owners, 8, (m + shift) % members, 64);
      const RingStream right = MakeRingStream(owners, 8, (m + 1 + shift) % members, 64);
      ASSERT_EQ(mine.send_end, right.size() - right.recv_begin);
      for (int64_t i = 0; i < mine.send_end; ++i) {
        EXPECT_EQ(mine.segments[i].offset_bytes, right.segments[right.recv_begin + i].offset_bytes);
        EXPECT_EQ(mine.segments[i].bytes, right.segments[right.recv_begin + i].bytes);
      }
    }
  }
}

TEST(RingStream, NeighboursAgree) { ExpectNeighboursAgree(OwnersOf({0, 3, 3, 100, 101, 200})); }

TEST(RingStream, NeighboursAgreeAndNothingIsLeftOutOrTwiceForAnyLists) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const int members = 1 + round % 5;  // groups of one and two, too
    const int64_t elements = 1 + static_cast<int64_t>(random() % 300);
    const Owners owners = RandomOwners(random, members, elements);
    ExpectNeighboursAgree(owners);
    std::vector<int> times(elements * 8), owned(elements * 8);
    for (const Segment& segment : MakeRingStream(owners, 8, 0, 40).segments) {
      for (int64_t b = 0; b < segment.bytes; ++b) ++times[segment.offset_bytes + b];
    }
    for (const auto& ranges : owners) {
      for (const ElementRange& range : ranges) std::fill(owned.begin() + range.begin * 8, owned.begin() + range.end * 8, 1);
    }
    EXPECT_EQ(times, owned);
  }
}

TEST(RingStream, AGroupOfOneMovesNothing) {
  const RingStream stream = MakeRingStream({{{0, 4}, {8, 12}}}, 4, 0, 16);
  EXPECT_EQ(stream.send_end, 0);
  EXPECT_EQ(stream.recv_begin, stream.size());
}

TEST(RingStream, NobodyOwnsAnything) { EXPECT_EQ(MakeRingStream({{}, {}, {}}, 4, 1, 16).size(), 0); }

TEST(Owners, AreMadeOfBounds) {
  EXPECT_EQ(OwnersOf({0, 10, 10, 25}), (Owners{{{0, 10}}, {}, {{10, 25}}}));
  EXPECT_EQ(OwnersOf({}), Owners());
  EXPECT_EQ(ElementsOf({{{0, 10}, {20, 25}}, {}, {{10, 20}}}), 25);
}

TEST(RingStream, OneOwnerOfEverythingOnlySends) {
  const RingStream owner = MakeRingStream(OwnersOf({0, 64, 64, 64}), 1, 0, 16);
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
