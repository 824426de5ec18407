#include "worker/engine/nccl/verbs_ports.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/common/base/temp_folder.h"

namespace motley::engine {
namespace {

class VerbsPortsTest : public testing::Test {
 protected:
  void Add(const std::string& device, const std::string& layer, const std::string& state, const std::string& interface) {
    const std::string port = absl::StrCat(device, "/ports/1");
    folder_.Write(port + "/link_layer", layer + "\n");
    folder_.Write(port + "/state", state + "\n");
    if (!interface.empty()) folder_.Write(port + "/gid_attrs/ndevs/0", interface + "\n");
  }
  std::string LeftOut(const std::set<std::string>& addressed) const { return VerbsPortsToLeaveOut(folder_.path(), addressed); }

  TempFolder folder_;
};

TEST_F(VerbsPortsTest, RoceWithoutAnAddressIsLeftOut) {
  Add("mlx5_0", "Ethernet", "4: ACTIVE", "eth0");
  Add("mlx5_1", "Ethernet", "4: ACTIVE", "eth1");
  EXPECT_EQ(LeftOut({"eth0", "eno1"}), "^=mlx5_1:1");
  EXPECT_EQ(LeftOut({"eno1"}), "^=mlx5_0:1,mlx5_1:1");
  EXPECT_EQ(LeftOut({"eth0", "eth1"}), "") << "two rails";
}

TEST_F(VerbsPortsTest, WhatNobodyWouldTakeOrKnowsOfStays) {
  Add("mlx5_0", "InfiniBand", "4: ACTIVE", "ib0");
  Add("mlx5_1", "Ethernet", "1: DOWN", "eth1");
  Add("mlx5_2", "Ethernet", "4: ACTIVE", "");
  EXPECT_EQ(LeftOut({"eno1"}), "") << "addresses of Ethernet alone, as where data_address is";
  EXPECT_EQ(VerbsPortsToLeaveOut("/nowhere", {}), "");
}

TEST(AddressedInterfaces, LoopbackIsNone) { EXPECT_FALSE(AddressedInterfaces().contains("lo")); }

}  // namespace
}  // namespace motley::engine
