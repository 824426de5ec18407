#include "planner/setting/setting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cluster/cluster_file.h"
#include "tests/planner/cluster_fixture.h"

namespace motley::planner {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<Setting>> Make(PlanRequest request, const std::string& preset = "cephalo-a") {
  Workload workload;
  workload.model_name = "small";
  workload.model = SmallModel();
  workload.global_batch = 8;
  workload.seq_len = 32;
  return Setting::Create(*LoadCluster(preset), workload, std::move(request), nullptr);
}

void ExpectError(PlanRequest request, absl::StatusCode code, const std::string& why) {
  const absl::Status status = Make(std::move(request)).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(why));
}

TEST(Setting, HasWhatFollowsFromItsFiles) {
  const auto setting = Make({});
  ASSERT_TRUE(setting.ok()) << setting.status();
  EXPECT_EQ((*setting)->num_devices(), 8);
  EXPECT_EQ((*setting)->costs.num_kinds(), 4);
  EXPECT_DOUBLE_EQ((*setting)->links.Rate(0, 4), 6.25e9);
  EXPECT_TRUE((*setting)->excluded.empty());
  EXPECT_EQ((*setting)->pinned_stage, std::vector<int>(8, -1));
  EXPECT_EQ((*setting)->UsableBytes(0), static_cast<int64_t>(0.8 * (int64_t{24} << 30)));
}

TEST(Setting, ExcludesDevicesAndNodes) {
  const auto device = Make({.exclude = {"n1/gpu2", "n1/gpu2"}});
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ((*device)->num_devices(), 7);
  EXPECT_EQ((*device)->costs.num_kinds(), 3);  // the only A6000
  ASSERT_EQ((*device)->excluded.size(), 1u);
  EXPECT_EQ((*device)->excluded[0].device, DeviceId("n1/gpu2"));
  const auto node = Make({.exclude = {"n2"}});
  EXPECT_EQ((*node)->num_devices(), 4);
  EXPECT_EQ((*node)->cluster.nodes.size(), 1u);
  EXPECT_EQ((*node)->excluded.size(), 4u);
  ExpectError({.exclude = {"n3"}}, absl::StatusCode::kNotFound,
              "exclude 'n3': the cluster cephalo-a has no such node or device; did you mean");
  ExpectError({.exclude = {"n1", "n2"}}, absl::StatusCode::kInvalidArgument, "every device is excluded");
}

TEST(Setting, Pins) {
  const auto setting = Make({.pins = {{"stage0", "n1"}, {"stage2", "n2/gpu1"}}});
  ASSERT_TRUE(setting.ok()) << setting.status();
  EXPECT_EQ((*setting)->pinned_stage, (std::vector<int>{0, 0, 0, 0, -1, 2, -1, -1}));
  ExpectError({.pins = {{"stage0", "n1"}, {"stage1", "n1/gpu0"}}}, absl::StatusCode::kInvalidArgument,
              "n1/gpu0 cannot be in stage0 and in stage1");
  ExpectError({.exclude = {"n1"}, .pins = {{"stage0", "n1"}}}, absl::StatusCode::kInvalidArgument,
              "contradicts exclude: n1 is excluded");
  ExpectError({.pins = {{"stage0", "n9"}}}, absl::StatusCode::kNotFound, "n9");
  ExpectError({.pins = {{"stage0", "n1"}, {"stage2", "n2"}}}, absl::StatusCode::kInvalidArgument,
              "the pins name stage2 and leave no device for stage1");
  ExpectError({.pins = {{"first", "n1"}}}, absl::StatusCode::kInvalidArgument, "must be a stage, as in stage0=n1");
  ExpectError({.pins = {{"stage8", "n1"}}}, absl::StatusCode::kInvalidArgument, "there are at most as many stages as devices, 8");
}

TEST(Setting, MemoryReserveReplacesTheClustersPart) {
  const auto setting = Make({.memory_reserve = 0.1});
  EXPECT_EQ((*setting)->UsableBytes(2), static_cast<int64_t>(0.9 * (int64_t{48} << 30)));
}

TEST(Setting, RequestsThatMakeNoSense) {
  ExpectError({.zero_stage = 4}, absl::StatusCode::kInvalidArgument, "zero_stage is 4");
  ExpectError({.max_tp = 0}, absl::StatusCode::kInvalidArgument, "max_tp is 0");
  ExpectError({.memory_reserve = 1.0}, absl::StatusCode::kInvalidArgument, "memory_reserve is 1");
  ExpectError({.memory_reserve = -0.1}, absl::StatusCode::kInvalidArgument, "memory_reserve is -0.1");
  ExpectError({.budget_nodes = 0}, absl::StatusCode::kInvalidArgument, "budget_nodes is 0");
  ExpectError({.deadline = absl::ZeroDuration()}, absl::StatusCode::kInvalidArgument, "deadline");
}

TEST(Setting, ClusterAndWorkloadAreValidated) {
  Workload workload;
  workload.model = SmallModel();
  workload.global_batch = 8;
  workload.seq_len = 32;
  EXPECT_EQ(Setting::Create(Cluster(), workload, {}, nullptr).status().code(), absl::StatusCode::kInvalidArgument);
  workload.global_batch = 0;
  EXPECT_EQ(Setting::Create(*LoadCluster("cephalo-a"), workload, {}, nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace motley::planner
