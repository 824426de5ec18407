#include "common/session/host_lateness.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(HostLatenessTest, SaidWhereItChangesTheStep) {
  EXPECT_EQ(
      HostLateness(31.3, 36),
      "too slow for the emulation: it made a device late by 31.3 s in a step of 36 s, so speeds are the host's and no card's; "
      "raise time_dilation in the workers' [emulation], compute in float32, or give the host less other work");
  EXPECT_NE(HostLateness(0.2, 2.0), "");
  EXPECT_EQ(HostLateness(0.19, 2.0), "") << "a tenth of the step is much, less is not";
  EXPECT_EQ(HostLateness(0.04, 0.1), "") << "noise of every host";
  EXPECT_EQ(HostLateness(0, 0), "");
  EXPECT_EQ(HostLateness(5, 0), "") << "of no step";
}

}  // namespace
}  // namespace motley
