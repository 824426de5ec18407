// Rows of a folder of tokens: their borders, their targets, and which of them count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "common/data/data_source.h"
#include "tests/common/data/token_data.h"

namespace motley {
namespace {

TEST(DataSourceTest, RowsHaveBordersAndTheirOwnTargets) {
  TempFolder folder;
  const auto data = OpenAs(WriteRows(folder, "rows", TwoRows(), 6), 6, 0.34);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_TRUE(data->has_rows());
  EXPECT_EQ(data->num_samples(Split::kTrain), 2);
  EXPECT_EQ(data->num_samples(Split::kValidation), 1);
  EXPECT_EQ(data->summary().rows, 3);
  EXPECT_EQ(data->summary().row_tokens, 6);
  EXPECT_EQ(*ReadRow(*data, Split::kTrain, 0, 6),
            (ReadSample{{1, 2, 3, 4, 5, 0}, {2, 3, 0, 5, 0, 0}, {1, 1, 0, 1, 0, 0}, {3, 2, 1}}));
  EXPECT_EQ(*ReadRow(*data, Split::kTrain, 1, 6),
            (ReadSample{{6, 7, 8, 9, 0, 0}, {0, 8, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0}, {1, 2, 1, 2}}));
  EXPECT_EQ(*ReadRow(*data, Split::kValidation, 0, 6),
            (ReadSample{{10, 11, 12, 13, 14, 15}, {11, 12, 13, 14, 15, 0}, {1, 1, 1, 1, 1, 0}, {6}}));
  EXPECT_EQ(*data->CountTrained(Split::kTrain, std::vector<int64_t>{0, 1, 0}), 3 + 1 + 3);
  EXPECT_EQ(*data->CountTrained(Split::kValidation, std::vector<int64_t>{0}), 5);
  EXPECT_EQ(data->summary().trained_tokens, 3 + 1 + 5);
  DocumentLengths lengths;
  EXPECT_TRUE(data->ReadRow(Split::kTrain, 1, {}, &lengths).ok());
  EXPECT_EQ(lengths, (DocumentLengths{1, 2, 1, 2})) << "alone";
}

TEST(DataSourceTest, AMaskSaysWhichTargetsCount) {
  TempFolder folder;
  TokenRowsText text = TwoRows();
  // 1 2 3 | 4 5 || 6 | 7 8 | 9 || 10 .. 15: of the first tokens of documents the bits say nothing.
  text.mask = {true, false, true, true, false, true, false, true, true, false, false, true, true, false, true};
  const auto data = OpenAs(WriteRows(folder, "rows", text, 6), 6);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(*ReadRow(*data, Split::kTrain, 0, 6),
            (ReadSample{{1, 2, 3, 4, 5, 0}, {2, 3, 0, 5, 0, 0}, {0, 1, 0, 0, 0, 0}, {3, 2, 1}}));
  EXPECT_EQ(ReadRow(*data, Split::kTrain, 1, 6)->counted, (std::vector<uint8_t>{0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(ReadRow(*data, Split::kTrain, 2, 6)->counted, (std::vector<uint8_t>{0, 1, 1, 0, 1, 0}));
  EXPECT_EQ(*data->CountTrained(Split::kTrain, std::vector<int64_t>{0, 1, 2}), 1 + 1 + 3);
  EXPECT_EQ(data->summary().trained_tokens, 5);
}

// Random rows against a plain walk over them.
TEST(DataSourceTest, RandomRowsAreReadAsTheyWereWritten) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    TempFolder folder;
    const int64_t seq_len = 1 + static_cast<int64_t>(random() % 40);
    TokenRowsText text;
    std::vector<ReadSample> expected;
    const bool masked = random() % 2 == 0;
    for (int r = 0; r < 30; ++r) {
      auto& row = text.rows.emplace_back();
      ReadSample& sample = expected.emplace_back();
      int64_t room = seq_len;
      do {
        const int64_t length = 1 + static_cast<int64_t>(random()) % room;
        auto& document = row.emplace_back();
        for (int64_t i = 0; i < length; ++i) {
          document.push_back(static_cast<uint16_t>(random() % 1000));
          const bool counts = !masked || random() % 3 == 0;
          if (masked) text.mask.push_back(counts);
          if (i > 0) sample.targets.push_back(document.back()), sample.counted.push_back(counts);
          sample.tokens.push_back(document.back());
        }
        sample.targets.push_back(0), sample.counted.push_back(0);
        sample.lengths.push_back(static_cast<int32_t>(length));
        room -= length;
      } while (room > 0 && random() % 4 != 0);
      if (room > 0) sample.lengths.push_back(static_cast<int32_t>(room));
      for (auto* numbers : {&sample.tokens, &sample.targets}) numbers->resize(static_cast<size_t>(seq_len));
      sample.counted.resize(static_cast<size_t>(seq_len));
    }
    const auto data = OpenAs(WriteRows(folder, "rows", text, seq_len), seq_len);
    ASSERT_TRUE(data.ok()) << data.status();
    int64_t trained = 0;
    for (size_t r = 0; r < expected.size(); ++r) {
      ASSERT_EQ(*ReadRow(*data, Split::kTrain, static_cast<int64_t>(r), seq_len), expected[r])
          << "round " << round << " row " << r;
      const int64_t counted = std::count(expected[r].counted.begin(), expected[r].counted.end(), 1);
      ASSERT_EQ(*data->CountTrained(Split::kTrain, std::vector<int64_t>{static_cast<int64_t>(r)}), counted);
      trained += counted;
    }
    EXPECT_EQ(data->summary().trained_tokens, trained);
  }
}

}  // namespace
}  // namespace motley
