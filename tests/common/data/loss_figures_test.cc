#include "common/data/loss_figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace motley {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(LossFiguresTest, PerplexityIsEToTheLoss) {
  EXPECT_DOUBLE_EQ(Perplexity(std::log(256)), 256) << "what knows nothing of 256 words chooses among all of them";
  EXPECT_EQ(Perplexity(0), 1);
  EXPECT_EQ(Perplexity(1000), kInfinity);
  EXPECT_EQ(Perplexity(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Perplexity(std::numeric_limits<double>::quiet_NaN())));
}

TEST(LossFiguresTest, OfTextEachByteIsAToken) {
  EXPECT_DOUBLE_EQ(*BitsPerByte(std::log(256), TextSummary(1000, "d")), 8);
  EXPECT_EQ(*BitsPerByte(kInfinity, TextSummary(1000, "d")), kInfinity);
}

TEST(LossFiguresTest, OfAStreamItGoesByTheBytesThatItsTokensWereMadeOf) {
  DataSummary stream = {.digest = "d", .kind = DataKind::kStream, .tokens = 250, .source_bytes = 1000, .tokenizer = "t"};
  EXPECT_DOUBLE_EQ(*BitsPerByte(std::log(256), stream), 2);
  stream.source_bytes = 0;  // others' files do not say
  EXPECT_EQ(BitsPerByte(1, stream), std::nullopt);
}

TEST(LossFiguresTest, RowsHaveNone) {
  const DataSummary rows = {.digest = "d",
                            .kind = DataKind::kRows,
                            .tokens = 250,
                            .rows = 10,
                            .row_tokens = 32,
                            .source_bytes = 1000,
                            .tokenizer = "t"};
  EXPECT_EQ(BitsPerByte(1, rows), std::nullopt);
}

TEST(LossFiguresTest, DataOfNothingHaveNone) { EXPECT_EQ(BitsPerByte(1, DataSummary()), std::nullopt); }

}  // namespace
}  // namespace motley
