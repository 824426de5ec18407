#include "common/checkpoint/needed_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley {
namespace {

using Blocks = std::vector<std::vector<int64_t>>;

Ownership OwnedAs(const std::vector<OwnedRanges>& blocks) {
  Ownership ownership;
  for (const OwnedRanges& ranges : blocks) ownership.Add(ranges);
  return ownership;
}

// Ascending cuts of [0, n), both ends among them.
std::vector<int64_t> RandomCuts(int64_t n, int most, std::mt19937& random) {
  std::vector<int64_t> cuts = {0, n};
  for (int i = static_cast<int>(random() % static_cast<unsigned>(most)); i > 0; --i) {
    cuts.push_back(static_cast<int64_t>(random() % static_cast<unsigned>(n + 1)));
  }
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

struct RandomCase {
  CheckpointManifest manifest;
  std::vector<int64_t> elements;  // by unit
  Ownership ownership;
};

RandomCase MakeCase(std::mt19937& random) {
  RandomCase made;
  made.manifest.dtype = random() % 2 == 0 ? DType::kFloat32 : DType::kBFloat16;
  made.manifest.files.resize(1 + random() % 3);
  for (size_t unit = 0; unit < 3; ++unit) {
    const int64_t n = 1 + static_cast<int64_t>(random() % (unit == 1 ? 1000 : 900'000));
    made.elements.push_back(n);
    for (int t = 0; t < kNumStateTensors; ++t) {
      const std::vector<int64_t> cuts = RandomCuts(n, 5, random);
      for (size_t i = 1; i < cuts.size(); ++i) {
        CheckpointFile& file = made.manifest.files[random() % made.manifest.files.size()];
        file.bytes += static_cast<int64_t>(random() % 8);  // a hole, and an element may lie across a block's end
        file.pieces.push_back({static_cast<int>(unit), static_cast<StateTensor>(t), cuts[i - 1], cuts[i], file.bytes});
        file.bytes += (cuts[i] - cuts[i - 1]) * SizeOfBytes(made.manifest.dtype);
      }
    }
    const std::vector<int64_t> cuts = RandomCuts(n, 6, random);
    OwnedRanges ranges;
    for (size_t i = 1; i < cuts.size(); ++i) ranges.push_back({static_cast<int32_t>(random() % 4), cuts[i - 1], cuts[i]});
    made.ownership.Add(ranges);
  }
  return made;
}

// Element by element.
Blocks ByHand(const RandomCase& made, const std::vector<int32_t>& ranks) {
  std::vector<std::vector<bool>> wanted;
  for (size_t unit = 0; unit < made.elements.size(); ++unit) {
    std::vector<bool>& of_unit = wanted.emplace_back(static_cast<size_t>(made.elements[unit]), false);
    for (const OwnedRange& range : made.ownership.Of(static_cast<int32_t>(unit))) {
      if (std::count(ranks.begin(), ranks.end(), range.rank) == 0) continue;
      std::fill(of_unit.begin() + range.begin, of_unit.begin() + range.end, true);
    }
  }
  const int64_t size = SizeOfBytes(made.manifest.dtype);
  Blocks needed;
  for (const CheckpointFile& file : made.manifest.files) {
    std::set<int64_t> blocks;
    for (const CheckpointPiece& piece : file.pieces) {
      for (int64_t i = piece.begin; i < piece.end; ++i) {
        if (!wanted[static_cast<size_t>(piece.unit)][static_cast<size_t>(i)]) continue;
        const int64_t first = piece.file_offset + (i - piece.begin) * size;
        blocks.insert(first / kCheckpointBlockBytes);
        blocks.insert((first + size - 1) / kCheckpointBlockBytes);
      }
    }
    needed.emplace_back(blocks.begin(), blocks.end());
  }
  return needed;
}

TEST(NeededBlocksTest, TheBlocksOfEachOwnedElementAndNoOthers) {
  const char* const given = getenv("MOTLEY_SEED");
  const unsigned seed = given == nullptr ? 20261130 : static_cast<unsigned>(atoi(given));
  std::mt19937 random(seed);
  int some = 0;
  for (int i = 0; i < 12; ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i << ", seed " << seed);
    const RandomCase made = MakeCase(random);
    for (const std::vector<int32_t>& ranks : {std::vector<int32_t>{0}, {3, 1}, {0, 1, 2, 3}}) {
      const Blocks needed = NeededBlocks(made.manifest, made.ownership, ranks), all = ByHand(made, {0, 1, 2, 3});
      EXPECT_EQ(needed, ByHand(made, ranks));
      some += needed != all;
    }
  }
  EXPECT_GT(some, 3) << "else all would do";
}

// Three ranges, the middle one over the end of a block and of a file.
TEST(NeededBlocksTest, AcrossFilesAndBlocks) {
  CheckpointManifest manifest;
  manifest.files.resize(2);
  manifest.files[0] = {.name = "a", .bytes = 6'000'000, .pieces = {{0, StateTensor::kParameter, 0, 1'500'000, 0}}};
  manifest.files[1] = {.name = "b", .bytes = 6'000'000, .pieces = {{0, StateTensor::kParameter, 1'500'000, 3'000'000, 0}}};
  const Ownership ownership = OwnedAs({{{0, 0, 1'000'000}, {1, 1'000'000, 2'000'000}, {2, 2'000'000, 3'000'000}}});
  EXPECT_EQ(NeededBlocks(manifest, ownership, {0}), (Blocks{{0}, {}}));
  EXPECT_EQ(NeededBlocks(manifest, ownership, {1}), (Blocks{{0, 1}, {0}}));
  EXPECT_EQ(NeededBlocks(manifest, ownership, {2}), (Blocks{{}, {0, 1}}));
  EXPECT_EQ(NeededBlocks(manifest, ownership, {2, 0}), (Blocks{{0}, {0, 1}}));
}

TEST(NeededBlocksTest, TheMomentsOfWhatIsOwnedToo) {
  CheckpointManifest manifest;
  manifest.files.resize(1);
  manifest.files[0] = {.name = "a", .bytes = 3 * kCheckpointBlockBytes};
  for (int t = 0; t < kNumStateTensors; ++t) {
    manifest.files[0].pieces.push_back({0, static_cast<StateTensor>(t), 0, 1000, t * kCheckpointBlockBytes});
  }
  const Ownership ownership = OwnedAs({{{0, 0, 999}, {1, 999, 1000}}});
  EXPECT_EQ(NeededBlocks(manifest, ownership, {1}), (Blocks{{0, 1, 2}}));
}

TEST(NeededBlocksTest, WhoOwnsNothingNeedsNothing) {
  CheckpointManifest manifest;
  manifest.files.resize(2);
  manifest.files[1] = {.name = "b", .bytes = 4000, .pieces = {{0, StateTensor::kParameter, 0, 1000, 0}}};
  const Ownership ownership = OwnedAs({{{0, 0, 1000}}});
  EXPECT_EQ(NeededBlocks(manifest, ownership, {1, 2}), (Blocks{{}, {}}));
  EXPECT_EQ(NeededBlocks(manifest, ownership, {}), (Blocks{{}, {}}));
  EXPECT_EQ(NeededBlocks(manifest, Ownership(), {0}), (Blocks{{}, {}})) << "a block that the ownership does not have";
}

// As of a manifest from a node that lies: a reader refuses it, and nobody counts blocks for ever.
TEST(NeededBlocksTest, PiecesOutsideTheirFileNeedNothing) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  CheckpointManifest manifest;
  manifest.files.resize(1);
  manifest.files[0] = {.name = "a",
                       .bytes = 4000,
                       .pieces = {{0, StateTensor::kParameter, 0, kMost, 0},
                                  {0, StateTensor::kParameter, 0, 1000, kMost},
                                  {0, StateTensor::kParameter, 0, 1000, -8},
                                  {0, StateTensor::kParameter, -1000, 1000, 0},
                                  {0, StateTensor::kParameter, 0, 1000, 4},
                                  {-1, StateTensor::kParameter, 0, 1000, 0},
                                  {1, StateTensor::kParameter, 0, 1000, 0}}};
  const Ownership ownership = OwnedAs({{{0, 0, kMost}}});
  EXPECT_EQ(NeededBlocks(manifest, ownership, {0}), (Blocks{{}}));
  manifest.files[0].pieces.push_back({0, StateTensor::kParameter, 0, 1000, 0});
  EXPECT_EQ(NeededBlocks(manifest, ownership, {0}), (Blocks{{0}}));
}

// Of an export: element by element, too.
TEST(NeededBlocksTest, TheBlocksWithParameters) {
  std::mt19937 random(20261201);
  int fewer = 0;
  for (int i = 0; i < 12; ++i) {
    RandomCase made = MakeCase(random);
    const Blocks parameters = ParameterBlocks(made.manifest), all = ByHand(made, {0, 1, 2, 3});
    for (CheckpointFile& file : made.manifest.files) {
      std::erase_if(file.pieces, [](const CheckpointPiece& piece) { return piece.tensor != StateTensor::kParameter; });
    }
    EXPECT_EQ(parameters, ByHand(made, {0, 1, 2, 3})) << "case " << i;
    fewer += parameters != all;
  }
  EXPECT_GT(fewer, 3) << "else all would do";
}

}  // namespace
}  // namespace motley
