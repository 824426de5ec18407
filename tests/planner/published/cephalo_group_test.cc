#include "planner/published/cephalo_group.h"

#include <gtest/gtest.h>

#include "tests/planner/offline_fixture.h"
#include "tests/planner/split/whole_model.h"

namespace motley::planner {
namespace {

TEST(CephaloGroupTest, EveryDeviceComputesAndRecomputes) {
  const auto setting = MakeSetting(SmallWorkload(8));
  const GroupQuestion question = PublishedCephalo(*setting, WholeModel(*setting));
  const auto answer = SplitGroupByEquation4(*setting, question);
  ASSERT_TRUE(answer.ok()) << answer.status();
  int64_t batch = 0;
  double shares = 0;
  for (const GroupMember& member : answer->members) {
    EXPECT_GE(member.batch, 1);
    EXPECT_EQ(member.recompute, OpSet::All());
    batch += member.batch;
    shares += member.share;
  }
  EXPECT_EQ(batch, 8);
  EXPECT_NEAR(shares, 1, 1e-9);
  const auto exact = SplitGroup(*setting, question);
  ASSERT_TRUE(exact.ok());
  EXPECT_LE(exact->forward_seconds + exact->backward_seconds, (answer->forward_seconds + answer->backward_seconds) * (1 + 1e-12));
}

TEST(CephaloGroupTest, ABatchOfFewerSamplesThanDevicesIsRefused) {
  const auto setting = MakeSetting(SmallWorkload(3));
  EXPECT_EQ(SplitGroupByEquation4(*setting, WholeModel(*setting)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(SplitGroup(*setting, WholeModel(*setting)).ok());
}

TEST(CephaloGroupTest, NothingIsRecomputedWhereTheRequestSaysSo) {
  PlanRequest request;
  request.recompute = RecomputePolicy::kNone;
  const auto setting = MakeSetting(SmallWorkload(8), request);
  EXPECT_TRUE(PublishedCephalo(*setting, WholeModel(*setting)).allow_keep);
}

}  // namespace
}  // namespace motley::planner
