#include "common/wire/device.h"

#include <gtest/gtest.h>

#include <limits>

namespace motley::wire {
namespace {

DeviceDescription Emulated() {
  DeviceDescription device;
  device.id = DeviceId("n1/gpu0");
  device.model = "A6000";
  device.kind = DeviceKind::kEmulated;
  device.memory_bytes = 123456789012;
  device.flops_per_second = 3.2e9;
  device.launch = absl::Microseconds(37);
  device.link_bytes_per_second = 1.5e8;
  device.node_link_bytes_per_second = 6.25e6;
  device.link_latency = absl::Nanoseconds(1250);
  device.host_link_bytes_per_second = 3.1e6;
  device.host_root = 0;
  device.node_host_memory_bytes = 9876543210;
  device.threads = 3;
  device.libtorch = "2.11.0";
  return device;
}

TEST(WireDeviceTest, RoundTrips) {
  auto back = FromProto(ToProto(Emulated()));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, Emulated());

  DeviceDescription cpu;
  cpu.id = DeviceId("n/cpu0");
  cpu.model = "cpu";
  back = FromProto(ToProto(cpu));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, cpu);
  EXPECT_EQ(back->host_root, -1) << "nobody said it";

  DeviceDescription card;
  card.id = DeviceId("n/gpu0");
  card.model = "NVIDIA RTX A6000";
  card.kind = DeviceKind::kCuda;
  card.card = {"GPU-8f6c",         "0000:3b:00.0",   "580.65.06",      13000, 86,    4,         16,    123456,
               "NVIDIA RTX A6000", {"0000:af:00.0"}, {"0000:b0:00.0"}, 300,   22809, "nearest", "hot", "gone"};
  back = FromProto(ToProto(card));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, card);
}

TEST(WireDeviceTest, RefusesByFieldName) {
  const auto message = [](const v1::DeviceDescription& proto) { return std::string(FromProto(proto).status().message()); };
  v1::DeviceDescription proto = ToProto(Emulated());
  proto.set_kind("tpu");
  EXPECT_EQ(message(proto), "device 'n1/gpu0': kind 'tpu' is not known; use cpu, emulated, cuda");
  proto = ToProto(Emulated());
  for (const char* id : {"", "n1", "/gpu0", "n1/"}) {
    proto.set_id(id);
    EXPECT_NE(message(proto).find("node/device"), std::string::npos) << id;
  }
  proto = ToProto(Emulated());
  proto.set_launch_seconds(-1);
  EXPECT_NE(message(proto).find("launch_seconds"), std::string::npos);
  proto = ToProto(Emulated());
  proto.set_flops_per_second(std::numeric_limits<double>::infinity());
  EXPECT_NE(message(proto).find("flops_per_second"), std::string::npos);
  proto = ToProto(Emulated());
  proto.set_host_link_bytes_per_second(-1);
  EXPECT_NE(message(proto).find("host_link_bytes_per_second"), std::string::npos);
  proto = ToProto(Emulated());
  proto.set_host_root(-1);
  EXPECT_NE(message(proto).find("host_root"), std::string::npos);
  proto = ToProto(Emulated());
  proto.set_node_host_memory_bytes(-1);
  EXPECT_NE(message(proto).find("node_host_memory_bytes"), std::string::npos);
}

}  // namespace
}  // namespace motley::wire
