#include "worker/daemon/profile_schedule.h"

#include <gtest/gtest.h>

namespace motley::worker {
namespace {

ProfileCommand Request(const std::vector<std::pair<std::string, DeviceKind>>& devices, bool collectives) {
  ProfileCommand command{JobId("job"), Epoch(3), {}, {}, collectives, "check"};
  for (const auto& [id, kind] : devices) {
    RankAssignment& rank = command.ranks.emplace_back();
    rank.device.id = DeviceId(id);
    rank.device.kind = kind;
    command.compute_devices.push_back(rank.device.id);
  }
  return command;
}

ProfileReport Compute(const std::string& id) {
  ProfileReport report;
  report.compute.emplace_back().device = DeviceId(id);
  return report;
}

TEST(ProfileSchedule, EmulatedDevicesTogetherThenCollectives) {
  ProfileSchedule schedule(Request({{"n/a", DeviceKind::kEmulated}, {"n/b", DeviceKind::kEmulated}}, true));
  auto requests = schedule.Next();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_TRUE(requests[0].second.compute_devices.size() == 1);
  EXPECT_FALSE(requests[0].second.collectives);
  EXPECT_EQ(requests[1].second.ranks[0].device.id, DeviceId("n/b"));
  schedule.Done(0, Compute("n/a"));
  EXPECT_TRUE(schedule.Next().empty()) << "collectives would disturb the other";
  schedule.Done(1, Compute("n/b"));
  requests = schedule.Next();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_TRUE(requests[0].second.collectives);
  ProfileReport collectives;
  collectives.collectives.barrier_seconds = 1;
  collectives.collectives.points.push_back({.bytes = 1});
  schedule.Done(0, collectives);
  EXPECT_FALSE(schedule.finished());
  schedule.Done(1, {});
  EXPECT_TRUE(schedule.finished());
  EXPECT_EQ(schedule.report().compute.size(), 2u);
  EXPECT_EQ(schedule.report().collectives.barrier_seconds, 1);
  EXPECT_EQ(schedule.report().epoch, Epoch(3));
  EXPECT_EQ(schedule.report().check_id, "check");
}

TEST(ProfileSchedule, HostDevicesOneAfterTheOther) {
  ProfileSchedule schedule(Request({{"n/a", DeviceKind::kCpu}, {"n/b", DeviceKind::kCpu}}, false));
  EXPECT_EQ(schedule.Next().size(), 1u);
  EXPECT_TRUE(schedule.Next().empty());
  schedule.Done(0, Compute("n/a"));
  EXPECT_EQ(schedule.Next().size(), 1u);
  schedule.Done(1, Compute("n/b"));
  EXPECT_TRUE(schedule.Next().empty());
  EXPECT_TRUE(schedule.finished());
}

TEST(ProfileSchedule, TheFirstFailureCounts) {
  ProfileSchedule schedule(Request({{"n/a", DeviceKind::kEmulated}, {"n/b", DeviceKind::kEmulated}}, true));
  schedule.Next();
  ProfileReport failed;
  failed.error = "out of memory";
  schedule.Done(1, failed);
  schedule.Fail(0, "died");
  EXPECT_TRUE(schedule.finished());
  EXPECT_EQ(schedule.report().error, "n/b: out of memory");
}

}  // namespace
}  // namespace motley::worker
