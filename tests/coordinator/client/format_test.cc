#include "coordinator/client/format.h"

#include <gtest/gtest.h>

#include <limits>
#include <regex>

namespace motley::client {
namespace {

TEST(FormatTest, Numbers) {
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(int64_t{48} << 30), "48.0 GiB");
  EXPECT_EQ(FormatSeconds(0.5121), "0.512 s");
  EXPECT_EQ(FormatSeconds(42.04), "42.0 s");
  EXPECT_EQ(FormatSeconds(200), "3 min 20 s");
  EXPECT_EQ(FormatSeconds(7500), "2 h 05 min");
  EXPECT_EQ(FormatTime(0), "-");
}

TEST(FormatTest, States) {
  EXPECT_EQ(FormatState(v1::JOB_STATE_REPLANNING), "replanning");
  EXPECT_TRUE(HasEnded(v1::JOB_STATE_STOPPED));
  EXPECT_FALSE(HasEnded(v1::JOB_STATE_WAITING));
}

TEST(FormatTest, StepLineShowsEverything) {
  v1::StepRecord step;
  step.set_step(12);
  step.set_loss(3.12345);
  step.set_grad_norm(1.5);
  step.set_lr(2e-3);
  step.set_tokens_per_second(2048.4);
  step.set_peak_memory_share(0.61);
  step.set_step_seconds(0.512);
  step.set_predicted_step_seconds(0.5);
  step.set_elapsed_seconds(61);
  step.set_remaining_seconds(100);
  EXPECT_EQ(StepLine(step, 200),
            "step 12/200  loss 3.1235  |g| 1.5  lr 2.00e-03  2.0k tokens/s  memory 61 %  step 0.512 s (predicted 0.500 s, +2.4 %)"
            "  elapsed 1 min 01 s  left 1 min 40 s");
  step.set_has_validation_loss(true);
  step.set_validation_loss(3.2);
  EXPECT_NE(StepLine(step, 200).find("validation loss 3.2000 (perplexity 24.53)"), std::string::npos) << StepLine(step, 200);
  step.set_validation_bits_per_byte(4.617);
  EXPECT_NE(StepLine(step, 200).find("validation loss 3.2000 (perplexity 24.53; 4.62 bits a byte)"), std::string::npos);
  step.set_loss_scale(65536);
  EXPECT_NE(StepLine(step, 200).find("left 1 min 40 s  loss scale 65536"), std::string::npos);
  step.set_skipped(true);
  EXPECT_NE(StepLine(step, 200).find("left 1 min 40 s  skipped at loss scale 65536"), std::string::npos);
}

TEST(FormatTest, ALossThatIsNotFiniteHasItsName) {
  v1::StepRecord step;
  step.set_step(12);
  step.set_loss(-std::numeric_limits<double>::quiet_NaN());
  step.set_grad_norm(std::numeric_limits<double>::infinity());
  step.set_has_validation_loss(true);
  step.set_validation_loss(step.loss());
  EXPECT_EQ(StepLine(step, 200).rfind("step 12/200  loss NaN  |g| inf  lr", 0), 0u) << StepLine(step, 200);
  EXPECT_NE(StepLine(step, 200).find("validation loss NaN"), std::string::npos);
  EXPECT_NE(LiveLine(step, 200, 60).find("loss NaN  "), std::string::npos);
}

TEST(FormatTest, TimesHaveTheirZone) {
  EXPECT_TRUE(std::regex_match(FormatTime(1'700'000'000'000), std::regex(R"(2023-11-1\d \d\d:\d\d:\d\d [A-Z+-][A-Z0-9:]*)")))
      << FormatTime(1'700'000'000'000);
}

TEST(FormatTest, RatesHaveOneUnit) {
  EXPECT_EQ(FormatRate(950.2), "950 tokens/s");
  EXPECT_EQ(FormatRate(1634), "1.6k tokens/s");
  EXPECT_EQ(FormatRate(2.1e6), "2.1M tokens/s");
}

TEST(FormatTest, TheLiveLineHasABarWhereThereIsRoom) {
  v1::StepRecord step;
  step.set_step(20);
  step.set_loss(3.341);
  step.set_tokens_per_second(1634);
  step.set_step_seconds(1.003);
  step.set_predicted_step_seconds(1);
  step.set_remaining_seconds(13.2);
  EXPECT_EQ(LiveLine(step, 40, 80), "[======>     ]  step 20/40  loss 3.34  1.6k tokens/s  +0.3 % of plan  left 13 s");
  EXPECT_EQ(LiveLine(step, 40, 60), "step 20/40  loss 3.34  1.6k tokens/s  +0.3 %  left 13 s");
  EXPECT_EQ(LiveLine(step, 40, 40), "step 20/40  loss 3.34  1.6k tokens/s...");
}

}  // namespace
}  // namespace motley::client
