#include "common/base/names.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(NamesTest, NodesAndDevices) {
  for (const char* good : {"n1", "Node-a.b_c", "7", ".n", "n.", "-", "..n"})
    EXPECT_TRUE(CheckName("hello.node", good).ok()) << good;
  for (const std::string& bad :
       {std::string(""), std::string("a/b"), std::string("a b"), std::string("a\n"), std::string("a\0", 2),
        std::string("\xc3\xa4"), std::string(64, 'a'), std::string("."), std::string(".."), std::string("...")}) {
    EXPECT_FALSE(CheckName("hello.node", bad).ok()) << bad;
    EXPECT_FALSE(CheckDeviceId("hello.devices.id", NodeName("n1"), DeviceId("n1/" + bad)).ok()) << bad;
  }
  EXPECT_EQ(CheckName("hello.node", "a\nb").message(),
            "hello.node must be 1 to 63 letters, digits, '-', '.' or '_', not dots alone, got 'a\\nb'");
  EXPECT_TRUE(CheckDeviceId("id", NodeName("n1"), DeviceId("n1/gpu0")).ok());
  for (const char* bad : {"gpu0", "n2/gpu0", "n1gpu0", "n1/gpu0/1"}) {
    EXPECT_FALSE(CheckDeviceId("id", NodeName("n1"), DeviceId(bad)).ok()) << bad;
  }
}

TEST(NamesTest, AddressesAreNumericAndNothingBesides) {
  for (const char* good : {"127.0.0.1", "10.1.2.3", "::1", "fe80::1"}) EXPECT_TRUE(CheckNumericAddress("a", good).ok()) << good;
  for (const std::string& bad :
       {std::string(""), std::string("localhost"), std::string("127.0.0.1:1"), std::string("[::1]"), std::string("127.1"),
        std::string("10.0.0.1\n"), std::string("10.0.0.1\0x", 10), std::string("127.0.0.1.example.org")}) {
    EXPECT_FALSE(CheckNumericAddress("hello.data_address", bad).ok()) << bad;
  }
}

TEST(NamesTest, AddressesOfHostsAreThoseOfOneMachine) {
  for (const char* good : {"127.0.0.1", "10.1.2.3", "169.254.0.7", "223.255.255.255", "::1", "fd00::1", "2001:db8::1"}) {
    EXPECT_TRUE(CheckHostAddress("worker.data_address", good).ok()) << good;
  }
  for (const char* bad :
       {"0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "fe80::1", "febf::1", "a.name", ""}) {
    const absl::Status status = CheckHostAddress("worker.data_address", bad);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(status.message().find("worker.data_address"), 0u) << status;
    EXPECT_NE(status.message().find("`ip -brief address`"), std::string::npos) << "what to do: " << status;
  }
}

}  // namespace
}  // namespace motley
