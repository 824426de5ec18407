#include "worker/daemon/profile_schedule.h"

#include <gtest/gtest.h>

namespace motley::worker {
namespace {

v1::ProfileRequest Request(const std::vector<std::pair<std::string, std::string>>& devices, bool collectives) {
  v1::ProfileRequest request;
  request.set_job_id("job");
  request.set_epoch(3);
  request.set_collectives(collectives);
  for (const auto& [id, kind] : devices) {
    v1::RankAssignment* rank = request.add_ranks();
    rank->mutable_device()->set_id(id);
    rank->mutable_device()->set_kind(kind);
    request.add_compute_device_ids(id);
  }
  return request;
}

v1::ProfileResult Compute(const std::string& id) {
  v1::ProfileResult result;
  result.add_compute()->set_device_id(id);
  return result;
}

TEST(ProfileSchedule, EmulatedDevicesTogetherThenCollectives) {
  ProfileSchedule schedule(Request({{"n/a", "emulated"}, {"n/b", "emulated"}}, true));
  auto requests = schedule.Next();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_TRUE(requests[0].second.compute());
  EXPECT_FALSE(requests[0].second.collectives());
  EXPECT_EQ(requests[1].second.ranks(0).device().id(), "n/b");
  schedule.Done(0, Compute("n/a"));
  EXPECT_TRUE(schedule.Next().empty()) << "collectives would disturb the other";
  schedule.Done(1, Compute("n/b"));
  requests = schedule.Next();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_TRUE(requests[0].second.collectives());
  v1::ProfileResult collectives;
  collectives.mutable_collectives()->set_barrier_seconds(1);
  schedule.Done(0, collectives);
  EXPECT_FALSE(schedule.finished());
  schedule.Done(1, {});
  EXPECT_TRUE(schedule.finished());
  EXPECT_EQ(schedule.result().compute_size(), 2);
  EXPECT_EQ(schedule.result().collectives().barrier_seconds(), 1);
  EXPECT_EQ(schedule.result().epoch(), 3);
}

TEST(ProfileSchedule, HostDevicesOneAfterTheOther) {
  ProfileSchedule schedule(Request({{"n/a", "cpu"}, {"n/b", "cpu"}}, false));
  EXPECT_EQ(schedule.Next().size(), 1u);
  EXPECT_TRUE(schedule.Next().empty());
  schedule.Done(0, Compute("n/a"));
  EXPECT_EQ(schedule.Next().size(), 1u);
  schedule.Done(1, Compute("n/b"));
  EXPECT_TRUE(schedule.Next().empty());
  EXPECT_TRUE(schedule.finished());
}

TEST(ProfileSchedule, TheFirstFailureCounts) {
  ProfileSchedule schedule(Request({{"n/a", "emulated"}, {"n/b", "emulated"}}, true));
  schedule.Next();
  v1::ProfileResult failed;
  failed.set_error("out of memory");
  schedule.Done(1, failed);
  schedule.Fail(0, "died");
  EXPECT_TRUE(schedule.finished());
  EXPECT_EQ(schedule.result().error(), "n/b: out of memory");
}

}  // namespace
}  // namespace motley::worker
