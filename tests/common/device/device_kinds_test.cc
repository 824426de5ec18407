#include "common/device/device_kinds.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace motley {
namespace {

TEST(DeviceKinds, NamesGoBothWays) {
  std::set<std::string_view> names;
  for (const DeviceKindRow& row : DeviceKinds()) {
    EXPECT_EQ(ParseDeviceKind(row.name).value(), row.kind) << row.name;
    EXPECT_EQ(RowOf(row.kind).name, row.name);
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " twice";
  }
  EXPECT_EQ(ParseDeviceKind("tpu").status().message(), "kind 'tpu' is not known; use cpu, emulated, cuda");
}

// The list is made from the switch that has the rows, in the order of the enumeration.
TEST(DeviceKinds, AllThatHaveARowAreListed) {
  ASSERT_EQ(DeviceKinds().size(), static_cast<size_t>(DeviceKind::kCuda) + 1);
  for (size_t i = 0; i < DeviceKinds().size(); ++i) EXPECT_EQ(DeviceKinds()[i].kind, static_cast<DeviceKind>(i));
}

}  // namespace
}  // namespace motley
