#include "worker/engine/operators/finite_check.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/worker/engine/called_operators.h"

namespace motley::engine {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor Made(at::ScalarType type, double odd) {
  at::Tensor made = at::ones({2, 3, 4}, type);
  made[1][2][3] = odd;
  return made;
}

TEST(FiniteCheckTest, TheFirstPositionOfAnyMicrobatchCounts) {
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    for (const double odd : {kInfinity, -kInfinity, kNan}) {
      FiniteCheck check(4, 3, type == at::kDouble ? at::kDouble : at::kFloat);
      check.Note(Made(type, 1), 0, 0);
      EXPECT_EQ(check.First(), 4) << type;
      check.Note(Made(type, odd), 3, 0);
      EXPECT_EQ(check.First(), 3) << type;
      check.Note(Made(type, odd), 1, 2);
      check.Note(Made(type, 1), 1, 0);
      EXPECT_EQ(check.First(), 1) << type << " of the last microbatch";
    }
  }
}

TEST(FiniteCheckTest, LargeHalfNumbersSumUpToAFiniteNumber) {
  FiniteCheck check(1, 1, at::kFloat);
  check.Note(at::full({100000}, 60000, at::kHalf), 0, 0);
  EXPECT_EQ(check.First(), 1);
}

TEST(FiniteCheckTest, OneReductionIsLaunched) {
  FiniteCheck check(4, 3, at::kFloat);
  const at::Tensor made = Made(at::kFloat, 1);
  CalledOperators operators;
  check.Note(made, 1, 1);
  // On the host a sum begins with a fill.
  EXPECT_EQ(operators.Take(), (std::set<std::string>{"aten::select", "aten::as_strided", "aten::sum", "aten::fill_"}));
}

TEST(FiniteCheckTest, ARankWithoutMicrobatchesHasNothing) { EXPECT_EQ(FiniteCheck(4, 0, at::kFloat).First(), 4); }

}  // namespace
}  // namespace motley::engine
