#include "common/session/load_text.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(LoadText, SaysWhatTheCardSaid) {
  EXPECT_EQ(LoadText(CardLoad()), "");
  CardLoad load = {.sm_clock_mhz = 1035, .watts = 71.84, .power_limit_watts = 72, .at_power_limit = true};
  EXPECT_EQ(LoadText(load), "held by its power limit at 1035 MHz and 71.8 of 72 W");
  load = {.sm_clock_mhz = 1980, .slowed_by_heat = true, .slowed_by_hardware = true};
  EXPECT_EQ(LoadText(load), "held by heat and its own protection at 1980 MHz");
  load = {.watts = 350};
  EXPECT_EQ(LoadText(load), "at 350.0 W");
  EXPECT_EQ(MeasuredText(load, false), "at 350.0 W");
  EXPECT_EQ(MeasuredText(load, true), "at 350.0 W, cut short");
  EXPECT_EQ(MeasuredText(CardLoad(), true), "cut short");
}

}  // namespace
}  // namespace motley
