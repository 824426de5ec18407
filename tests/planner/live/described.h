// What a planner's input says of a live cluster that is well.
#pragma once

#include <utility>

#include "gtest/gtest.h"
#include "planner/live/live_inputs.h"

namespace motley::planner {

inline LiveInputs Described(const PlannerInput& input) {
  absl::StatusOr<LiveInputs> live = DescribeLive(input);
  EXPECT_TRUE(live.ok()) << live.status();
  return live.ok() ? *std::move(live) : LiveInputs();
}

}  // namespace motley::planner
