// `motley estimate` says fits where `motley plan` has a plan, and what it lacks where not.
#include <gtest/gtest.h>

#include "tests/bench/promise_rows.h"

namespace motley::planner {
namespace {

// `promise_bench` asks the same of hundreds.
TEST(PromisesTest, EstimateAndPlanAreOneAnswer) {
  PromiseDrawer drawer(1, 20'000);
  int fit = 0, not_fit = 0;
  for (int i = 0; i < 6; ++i) {
    const PromiseRow row = drawer.Next();
    if (row.setting == nullptr) continue;
    const Promise promise = PromiseCheck(*row.setting).Run();
    ++(promise.fits ? fit : not_fit);
    for (const std::string& broken : promise.broken) ADD_FAILURE() << row.name << ": " << broken;
  }
  EXPECT_GE(fit, 2);
  EXPECT_GE(not_fit, 1);
}

}  // namespace
}  // namespace motley::planner
