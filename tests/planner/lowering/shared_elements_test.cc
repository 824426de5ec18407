// Who meets whom for which elements of a unit.
#include "planner/lowering/shared_elements.h"

#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace motley::planner {
namespace {

// "0,2 10: 0 5": of ranks 0 and 2, ten elements, which begin at 0 in the first's array and at 5 in the second's.
std::string Text(const std::vector<SharedPiece>& pieces) {
  return absl::StrJoin(pieces, " | ", [](std::string* out, const SharedPiece& p) {
    absl::StrAppend(out, absl::StrJoin(p.ranks, ","), " ", p.elements, ": ", absl::StrJoin(p.in_array, " "));
  });
}

TEST(SharedElementsTest, WhoHasAllMeetsEachThatHasAPart) {
  EXPECT_EQ(Text(SharedPieces({{0, {{0, 0, 60}}}, {1, {{60, 0, 40}}}, {2, {{0, 0, 100}}}})), "0,2 60: 0 0 | 1,2 40: 0 60");
  EXPECT_EQ(Text(SharedPieces({{0, {{0, 0, 100}}}, {3, {}}, {2, {{0, 0, 100}}}})), "0,2 100: 0 0") << "one has nothing";
}

// Two matrices cut in the middle: equal slices meet in one piece, unlike ones run by run, one ring after the other.
TEST(SharedElementsTest, EqualSlicesAreOnePiece) {
  const std::vector<SliceRun> front = {{0, 0, 10}, {20, 10, 10}}, back = {{10, 0, 10}, {30, 10, 10}}, all = {{0, 0, 40}};
  EXPECT_EQ(Text(SharedPieces({{0, front}, {1, back}, {2, front}, {3, back}})), "0,2 20: 0 0 | 1,3 20: 0 0");
  EXPECT_EQ(Text(SharedPieces({{0, front}, {1, back}, {2, all}})), "0,2 10: 0 0 | 0,2 10: 10 20 | 1,2 10: 0 10 | 1,2 10: 10 30");
}

// Every element of every rank is in one piece, with all that have it, where it is in their arrays.
TEST(SharedElementsTest, EveryElementMeetsAllThatHaveItOnce) {
  std::mt19937 random(7);
  const auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int n = 0; n < 500; ++n) {
    std::vector<PartOfUnit> parts;
    std::vector<std::map<int64_t, int64_t>> in_unit;  // by part: of an element of its array
    for (int p = 0; p < 1 + below(4); ++p) {
      PartOfUnit& part = parts.emplace_back(PartOfUnit{p, {}});
      in_unit.emplace_back();
      for (int64_t begin = below(4), in_array = 0; begin < 30; begin += below(6)) {
        const int64_t elements = 1 + below(8);
        part.runs.push_back({begin, in_array, elements});
        for (int64_t i = 0; i < elements; ++i) in_unit.back()[in_array + i] = begin + i;
        in_array += elements;
        begin += elements;
      }
    }
    std::map<int64_t, std::vector<int32_t>> have, met;  // by element of the unit
    for (const PartOfUnit& part : parts) {
      for (const auto& [in_array, element] : in_unit[static_cast<size_t>(part.rank)]) have[element].push_back(part.rank);
    }
    for (const SharedPiece& piece : SharedPieces(parts)) {
      for (int64_t i = 0; i < piece.elements; ++i) {
        const int64_t element = in_unit[static_cast<size_t>(piece.ranks[0])].at(piece.in_array[0] + i);
        ASSERT_TRUE(met.try_emplace(element, piece.ranks).second) << "twice";
        for (size_t r = 0; r < piece.ranks.size(); ++r) {
          ASSERT_EQ(in_unit[static_cast<size_t>(piece.ranks[r])].at(piece.in_array[r] + i), element);
        }
      }
    }
    ASSERT_EQ(met, have);
  }
}

}  // namespace
}  // namespace motley::planner
