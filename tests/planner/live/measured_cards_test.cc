// Which devices are one card.
#include "planner/live/measured_cards.h"

#include <gtest/gtest.h>

namespace motley::planner {
namespace {

MeasuredSeries SeriesOf(size_t sizes, double seconds) {
  MeasuredSeries series;
  for (size_t i = 0; i < sizes; ++i) {
    series.samples.push_back(static_cast<double>(1 << i));
    series.forward_seconds.push_back(seconds * (1 << i));
    series.backward_seconds.push_back(2 * seconds * (1 << i));
    series.saved_bytes.push_back(1000 << i);
    series.workspace_bytes.push_back(10 << i);
  }
  return series;
}

MeasuredCard CardOf(size_t layer_sizes, size_t embedding_sizes) {
  MeasuredCard card;
  card.layer = SeriesOf(layer_sizes, 1);
  card.embedding = SeriesOf(embedding_sizes, 1e-3);
  card.head = SeriesOf(layer_sizes, 0.1);
  card.optimizer = MeasuredOptimizer{1e-9, 1e-4};
  return card;
}

class MeasuredCardsTest : public ::testing::Test {
 protected:
  int Add(const MeasuredCard& card, double flops = 0, absl::Duration launch = absl::ZeroDuration()) {
    DeviceDescription device;
    device.model = "V100-16GB";
    device.flops_per_second = flops;
    device.launch = launch;
    CardKind kind;
    kind.memory_bytes = 1 << 30;
    kind.fp32_flops = flops;
    return cards_.Add(device, kind, card);
  }
  Cluster cluster_;
  MotleyProfile profile_;
  MeasuredCards cards_{&cluster_, &profile_};
};

// There is time for more sizes on one device than on another.
TEST_F(MeasuredCardsTest, HowManySizesWereMeasuredTellsNoCardsApart) {
  EXPECT_EQ(Add(CardOf(4, 5)), 0);
  EXPECT_EQ(Add(CardOf(3, 7)), 0);
  EXPECT_EQ(Add(CardOf(5, 4)), 0);
  ASSERT_EQ(profile_.cards.size(), 1u);
  const MeasuredCard& mean = profile_.cards[0];
  EXPECT_EQ(mean.layer.samples, (std::vector<double>{1, 2, 4, 8, 16}));
  EXPECT_EQ(mean.layer.forward_seconds, mean.layer.samples);
  EXPECT_EQ(mean.layer.saved_bytes, (std::vector<int64_t>{1000, 2000, 4000, 8000, 16000}));
  EXPECT_EQ(mean.embedding->samples.size(), 7u);
}

// An embedding of more samples than a layer was measured with may take three times as long, and changes no step.
TEST_F(MeasuredCardsTest, WhatIsLittleBesideALayerTellsNoCardsApart) {
  MeasuredCard noisy = CardOf(4, 7);
  for (double& seconds : noisy.embedding->forward_seconds) seconds *= 3;
  EXPECT_EQ(Add(CardOf(4, 7)), 0);
  EXPECT_EQ(Add(noisy), 0);
  noisy.layer.forward_seconds[2] *= 1.03;
  EXPECT_EQ(Add(noisy), 1);
}

// Nobody sells a "V100-16GB-2": of two that declare the same, the host made the difference.
TEST_F(MeasuredCardsTest, AHostsNoiseMakesNoSecondCardOfADeclaredOne) {
  MeasuredCard slower = CardOf(4, 4);
  for (double& seconds : slower.layer.forward_seconds) seconds *= 1.08;
  EXPECT_EQ(Add(CardOf(4, 4), 1e9, absl::Microseconds(100)), 0);
  EXPECT_EQ(Add(slower, 1e9, absl::Microseconds(100)), 0);
  EXPECT_EQ(Add(slower, 1e9, absl::Microseconds(200)), 1) << "it declares another start of its instructions";
  EXPECT_EQ(Add(slower, 1.01e9, absl::Microseconds(100)), 2) << "it declares another rate";
  for (double& seconds : slower.layer.forward_seconds) seconds *= 1.1;
  EXPECT_EQ(Add(slower, 1e9, absl::Microseconds(100)), 3) << "a host that does not keep the declaration";
  EXPECT_DOUBLE_EQ(profile_.cards[0].layer.forward_seconds[0], 1.04) << "their mean counts";
}

}  // namespace
}  // namespace motley::planner
