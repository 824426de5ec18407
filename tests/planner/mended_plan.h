// What the planner counts of a plan whose microbatches do not line up before its order is mended.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gtest/gtest.h"
#include "planner/costs/memory_model.h"
#include "planner/plan/plan.h"
#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// Bytes of rank `r` with as many forwards in flight as its family's order has.
inline int64_t PeakInFamilyOrder(const Setting& setting, const Plan& plan, size_t r) {
  const auto view = ViewOf(setting, plan);
  EXPECT_TRUE(view.ok()) << view.status();
  if (!view.ok()) return 0;
  const RankView& rank = view->ranks[r];
  return MemoryOf(setting.costs, DutyOf(*view, rank), view->stages[rank.stage].plan->units[rank.unit].microbatches).total();
}

}  // namespace motley::planner
