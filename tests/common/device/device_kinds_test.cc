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

}  // namespace
}  // namespace motley
