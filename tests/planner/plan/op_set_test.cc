#include "planner/plan/op_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::planner {
namespace {

using testing::HasSubstr;

TEST(OpSet, TextRoundTripsInExecutionOrder) {
  const OpSet set = OpSet::None().With(Op::kActivation).With(Op::kNorm1);
  EXPECT_EQ(ToText(set), "norm1,activation");
  for (const OpSet each : {set, OpSet::None(), OpSet::All(), OpSet::None().With(Op::kResidual2)}) {
    EXPECT_EQ(ParseOpSet(ToText(each)).value(), each);
  }
}

TEST(OpSet, AllContainsEverythingAndStaysAll) {
  EXPECT_TRUE(OpSet::All().Has(Op::kUp));
  EXPECT_EQ(OpSet::All().With(Op::kUp), OpSet::All());
  EXPECT_FALSE(OpSet::None().Has(Op::kUp));
}

TEST(OpSet, UnknownOperatorNamesTheNearest) {
  const auto set = ParseOpSet("norm1,atention");
  ASSERT_FALSE(set.ok());
  EXPECT_THAT(set.status().message(), HasSubstr("'atention' is not known; did you mean 'attention'?"));
  EXPECT_THAT(set.status().message(), HasSubstr("residual2"));
}

TEST(OpSet, EmptyWordAndHeadOperatorsAreRefused) {
  EXPECT_FALSE(ParseOpSet("").ok());
  EXPECT_FALSE(ParseOpSet("norm1,").ok());
  EXPECT_FALSE(ParseOpSet("lm_head_loss").ok());
}

}  // namespace
}  // namespace motley::planner
