#include "worker/engine/slice_map.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace motley::engine {
namespace {

// Of each unit [divided tensors of four parts | norms and row biases]; nothing is divided evenly.
ModelShape SmallGpt2() {
  return {.family = ModelFamily::kGpt2,
          .vocab_size = 11,
          .hidden_size = 8,
          .num_layers = 1,
          .num_heads = 4,
          .num_kv_heads = 4,
          .head_dim = 2,
          .intermediate_size = 9,
          .max_positions = 6,
          .tie_embeddings = false};
}

constexpr ModelSlice kFirst = {0, 3, 4}, kLast = {3, 4, 4};

TEST(SliceMapTest, TheWholeModelIsItself) {
  const SliceMap map(SmallGpt2(), ModelSlice());
  const std::vector<UnitSpec> units = ParameterLayout(SmallGpt2());
  for (int32_t u = 0; u < static_cast<int32_t>(units.size()); ++u) {
    EXPECT_EQ(map.NumElements(u), units[u].num_elements);
    EXPECT_EQ(map.Within(u, ArrayRange()), (ElementRange{0, units[u].num_elements}));
    EXPECT_EQ(map.PiecesOf(u, 3, 7), (std::vector<LocalPiece>{{0, 3, 4}}));
  }
}

// Element by element: a map from the whole unit to the slice's array and to nothing.
TEST(SliceMapTest, PiecesAreTheElementsThatTheSliceHas) {
  const std::vector<UnitSpec> units = ParameterLayout(SmallGpt2());
  for (const ModelSlice& slice : {kFirst, kLast}) {
    const SliceMap map(SmallGpt2(), slice);
    for (int32_t u = 0; u < static_cast<int32_t>(units.size()); ++u) {
      std::vector<int64_t> local(units[u].num_elements, -1);
      for (const SliceRun& run : RunsOf(units[u], slice)) {
        for (int64_t i = 0; i < run.elements; ++i) local[run.in_unit + i] = run.in_slice + i;
      }
      const int64_t there = map.NumElements(u), divided = there - (units[u].num_elements - units[u].divided_elements);
      for (const ElementRange within : {ElementRange{0, there}, ElementRange{0, divided}, ElementRange{divided, there}}) {
        for (int64_t begin = 0; begin < units[u].num_elements; begin += 3) {
          const int64_t end = std::min(begin + 17, units[u].num_elements);
          std::vector<int64_t> mapped(end - begin, -1), wanted(end - begin, -1);
          for (const LocalPiece& piece : map.PiecesOf(u, begin, end, within)) {
            for (int64_t i = 0; i < piece.elements; ++i) mapped[piece.in_range + i] = piece.in_array + i;
          }
          for (int64_t i = begin; i < end; ++i) {
            if (local[i] >= within.begin && local[i] < within.end) wanted[i - begin] = local[i] - within.begin;
          }
          EXPECT_EQ(mapped, wanted) << "unit " << u << ", elements " << begin << " to " << end;
        }
      }
    }
  }
}

// What is owned behind the last divided tensor may begin in it.
TEST(SliceMapTest, OwnersAreTheSameForAllMembersWhereverTheirElementsAre) {
  RankAssignment assignment;
  assignment.model = SmallGpt2();
  const UnitSpec layer = ParameterLayout(assignment.model)[1];
  const int64_t divided = layer.divided_elements, end = layer.num_elements;
  const SliceMap first(assignment.model, kFirst), last(assignment.model, kLast);
  const SliceRun joined = RunsOf(layer, kLast).back();
  ASSERT_LT(joined.in_unit, divided);
  assignment.ownership.Add({});
  assignment.ownership.Add({{1, joined.in_unit, divided + 5}, {0, divided + 5, end}});
  const Owners wanted = {{{5, end - divided}}, {{0, 5}}};
  for (const SliceMap* map : {&first, &last}) {
    const int64_t own = map->NumElements(1);
    EXPECT_EQ(map->OwnersIn(assignment.ownership.Of(1), {0, 1}, 1, {own - (end - divided), own}), wanted);
  }
  const int64_t whole = end - divided, own_divided = last.NumElements(1) - whole;
  const OwnedRanges& ranges = assignment.ownership.Of(1);
  EXPECT_EQ(last.OwnersIn(ranges, {0, 1}, 1, {0, own_divided}), (Owners{{}, {{joined.in_slice, own_divided}}}));
  EXPECT_EQ(first.OwnersIn(ranges, {0, 1}, 1, {0, first.NumElements(1) - whole}), (Owners{{}, {}}));
}

}  // namespace
}  // namespace motley::engine
