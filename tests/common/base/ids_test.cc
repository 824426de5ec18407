#include "common/base/ids.h"

#include <gtest/gtest.h>

#include <sstream>
#include <type_traits>

#include "absl/container/flat_hash_map.h"

namespace motley {
namespace {

TEST(IdsTest, KindsDoNotMix) {
  static_assert(!std::is_convertible_v<JobId, DeviceId>);
  static_assert(!std::is_convertible_v<std::string, JobId>);
  static_assert(!std::is_convertible_v<int64_t, Epoch>);
  static_assert(!std::is_convertible_v<Epoch, int64_t>);
}

TEST(IdsTest, CompareHashAndPrint) {
  EXPECT_LT(DeviceId("a/gpu0"), DeviceId("a/gpu1"));
  EXPECT_EQ(Epoch(3), Epoch(3));
  EXPECT_GT(Epoch(4), Epoch(3));
  EXPECT_TRUE(JobId().empty());
  absl::flat_hash_map<DeviceId, int> ranks{{DeviceId("a/gpu0"), 0}};
  EXPECT_TRUE(ranks.contains(DeviceId("a/gpu0")));
  EXPECT_FALSE(ranks.contains(DeviceId("b/gpu0")));
  std::ostringstream out;
  out << NodeName("n1") << " " << Epoch(7);
  EXPECT_EQ(out.str(), "n1 7");
}

TEST(IdsTest, NodeOfADeviceIsWhatStandsBeforeTheSlash) {
  EXPECT_EQ(NodeOf(DeviceId("n1/gpu0")), NodeName("n1"));
  EXPECT_EQ(NodeOf(DeviceId("n1")), NodeName("n1"));
}

}  // namespace
}  // namespace motley
