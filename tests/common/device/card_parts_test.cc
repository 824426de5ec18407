#include "common/device/card_parts.h"

#include <gtest/gtest.h>

#include <string>

#include "common/device/device_table.h"

namespace motley {
namespace {

CardFamily FamilyOf(const char* card) { return FindGpu(card).value().family; }
CardParts PartsOf(const char* card) { return RowOf(FamilyOf(card)).parts; }

TEST(CardParts, EveryCardHasPartsWithTheirSource) {
  for (const GpuSpec& gpu : GpuTable()) {
    SCOPED_TRACE(std::string(gpu.name));
    const CardFamilyRow& row = RowOf(gpu.family);
    for (const double part : {row.parts.matrix, row.parts.attention, row.parts.memory}) {
      EXPECT_GT(part, 0);
      EXPECT_LE(part, 1);
    }
    EXPECT_FALSE(row.source.empty());
    EXPECT_FALSE(row.name.empty());
  }
}

// Of a board whose rate is halved for sums in float32, kernels reach nearly all.
TEST(CardParts, GeForceReachesMoreOfItsPeakThanServers) {
  for (const char* card : {"RTX 4090", "RTX 3090", "RTX 2080 Ti", "RTX 5060 Ti"}) {
    EXPECT_EQ(PartsOf(card).matrix, 0.9) << card;
    EXPECT_FALSE(RowOf(FamilyOf(card)).peer_access) << card;
  }
  EXPECT_LT(PartsOf("H100").matrix, PartsOf("RTX PRO 6000").matrix);
  EXPECT_LT(PartsOf("RTX PRO 6000").matrix, PartsOf("RTX 4090").matrix);
  for (const char* card : {"A100-80GB", "H200", "RTX PRO 6000", "P40"}) EXPECT_TRUE(RowOf(FamilyOf(card)).peer_access) << card;
  EXPECT_FALSE(RowOf(FamilyOf("Titan RTX")).peer_access);
}

TEST(CardParts, ACardOfWhichNoRunWasComparedIsAsItWas) {
  for (const char* card : {"P40", "V100", "T4", "L4", "A6000", "A10G", "H20", "Titan RTX", "GTX 1080 Ti", "MI300X"}) {
    EXPECT_EQ(PartsOf(card), CardParts()) << card;
  }
  EXPECT_EQ(CardParts().matrix, 0.52);
  EXPECT_EQ(AttentionPart(CardParts(), 64, 128), 0.52);
  EXPECT_EQ(AttentionPart(CardParts(), 128, 65536), 0.52);
}

TEST(CardParts, ShortSequencesAndSmallHeadsReachLessInAttention) {
  const CardParts hopper = PartsOf("H200");
  EXPECT_LT(AttentionPart(hopper, 128, 1024), AttentionPart(hopper, 128, 8192));
  EXPECT_LT(AttentionPart(hopper, 64, 8192), AttentionPart(hopper, 128, 8192));
  EXPECT_LT(AttentionPart(hopper, 128, 1 << 20), hopper.attention);
  // The engine's, measured on an H200: 145 TFLOP/s forward and 136 backward of 989.
  EXPECT_NEAR(AttentionPart(hopper, 64, 1024), 0.14, 0.03);
}

}  // namespace
}  // namespace motley
