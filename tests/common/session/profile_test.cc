#include "common/session/profile.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "common/base/dtype.h"
#include "common/device/device.h"
#include "common/model/model.h"

namespace motley {
namespace {

DeviceDescription Device() {
  DeviceDescription device;
  device.id = DeviceId("n1/gpu0");
  device.model = "A6000";
  device.kind = DeviceKind::kEmulated;
  device.memory_bytes = 1 << 30;
  device.flops_per_second = 4e9;
  device.launch = absl::Microseconds(50);
  device.link_bytes_per_second = 1e8;
  device.node_link_bytes_per_second = 2e8;
  device.link_latency = absl::Microseconds(10);
  return device;
}

TEST(ProfileDigestTest, ChangesWithEveryFieldOfTheDevice) {
  const std::function<void(DeviceDescription&)> changes[] = {
      [](DeviceDescription&) {},
      [](DeviceDescription& d) { d.id = DeviceId("n1/gpu1"); },
      [](DeviceDescription& d) { d.model = "L4"; },
      [](DeviceDescription& d) { d.kind = DeviceKind::kCpu; },
      [](DeviceDescription& d) { d.memory_bytes += 1; },
      [](DeviceDescription& d) { d.flops_per_second += 1e-6; },
      [](DeviceDescription& d) { d.launch += absl::Nanoseconds(1); },
      [](DeviceDescription& d) { d.link_bytes_per_second += 1; },
      [](DeviceDescription& d) { d.node_link_bytes_per_second += 1; },
      [](DeviceDescription& d) { d.link_latency += absl::Nanoseconds(1); },
      [](DeviceDescription& d) { ++d.threads; },
      [](DeviceDescription& d) { d.libtorch = "2.7.1"; },
      [](DeviceDescription& d) { d.card.uuid = "GPU-2"; },
      [](DeviceDescription& d) { d.card.driver = "580.65.06"; },
      [](DeviceDescription& d) { d.card.driver_cuda = 13000; },
      [](DeviceDescription& d) { d.card.power_limit_watts = 200; },
      [](DeviceDescription& d) { d.card.kernels = "e7d628c2114b"; },
      [](DeviceDescription& d) { d.card.kernels = "0123456789ab"; },
  };
  std::set<std::string> compute, collective;
  const ModelShape shape = *ModelFlavor("gpt2", "debug");
  for (const auto& change : changes) {
    DeviceDescription device = Device();
    change(device);
    compute.insert(ComputeProfileDigest(device, shape, 128, DType::kFloat32));
    collective.insert(CollectiveProfileDigest({Device(), device}, shape, DType::kFloat32));
  }
  EXPECT_EQ(compute.size(), std::size(changes));
  EXPECT_EQ(collective.size(), std::size(changes));
}

TEST(ProfileDigestTest, WhatMovesACardsBytesIsTheCollectivesAffairAlone) {
  const std::function<void(CardDescription&)> changes[] = {
      [](CardDescription&) {},
      [](CardDescription& c) { c.nccl_version = 22809; },
      [](CardDescription& c) { c.pcie_generation = 4; },
      [](CardDescription& c) { c.pcie_lanes = 8; },
      [](CardDescription& c) { c.nvlink_peers = {"0000:af:00.0"}; },
      [](CardDescription& c) { c.p2p_peers = {"0000:af:00.0"}; },
  };
  std::set<std::string> compute, collective;
  const ModelShape shape = *ModelFlavor("gpt2", "debug");
  for (const auto& change : changes) {
    DeviceDescription device = Device();
    change(device.card);
    compute.insert(ComputeProfileDigest(device, shape, 128, DType::kFloat32));
    collective.insert(CollectiveProfileDigest({Device(), device}, shape, DType::kFloat32));
  }
  EXPECT_EQ(compute.size(), 1u);
  EXPECT_EQ(collective.size(), std::size(changes));
}

TEST(ProfileDigestTest, HowACardIsTodayIsNoPartOfIt) {
  const ModelShape shape = *ModelFlavor("gpt2", "debug");
  DeviceDescription today = Device();
  today.card.used_by_others_bytes = 5;
  today.card.health = "slowed down: heat";
  today.card.why_no_kernels = "MOTLEY_KERNELS is off";
  today.card.note = "linked with 8 of 16 PCIe lanes";
  today.node_host_memory_bytes = int64_t{40} << 30;
  today.host_link_bytes_per_second = 25e9;
  today.host_root = 1;
  EXPECT_EQ(ComputeProfileDigest(today, shape, 128, DType::kFloat32),
            ComputeProfileDigest(Device(), shape, 128, DType::kFloat32));
  EXPECT_EQ(CollectiveProfileDigest({today}, shape, DType::kFloat32),
            CollectiveProfileDigest({Device()}, shape, DType::kFloat32));
}

TEST(ProfileDigestTest, ChangesWithEveryFieldOfTheModel) {
  const std::function<void(ModelShape&)> changes[] = {
      [](ModelShape&) {},
      [](ModelShape& s) { s.family = ModelFamily::kLlama; },
      [](ModelShape& s) { s.family = ModelFamily::kQwen2; },
      [](ModelShape& s) { s.family = ModelFamily::kQwen3; },
      [](ModelShape& s) { s.family = ModelFamily::kOlmo2; },
      [](ModelShape& s) { s.family = ModelFamily::kGemma3; },
      [](ModelShape& s) { s.vocab_size += 1; },
      [](ModelShape& s) { s.hidden_size += 1; },
      [](ModelShape& s) { s.num_layers += 1; },
      [](ModelShape& s) { s.num_heads += 1; },
      [](ModelShape& s) { s.num_kv_heads += 1; },
      [](ModelShape& s) { s.head_dim += 1; },
      [](ModelShape& s) { s.intermediate_size += 1; },
      [](ModelShape& s) { s.max_positions += 1; },
      [](ModelShape& s) { s.norm_eps *= 2; },
      [](ModelShape& s) { s.rope_theta += 1; },
      [](ModelShape& s) { s.tie_embeddings = false; },
      [](ModelShape& s) { s.rope_scaling.factor = 8; },
  };
  std::set<std::string> digests;
  for (const auto& change : changes) {
    ModelShape shape = *ModelFlavor("gpt2", "debug");
    change(shape);
    digests.insert(ComputeProfileDigest(Device(), shape, 128, DType::kFloat32));
  }
  EXPECT_EQ(digests.size(), std::size(changes));
}

TEST(ProfileDigestTest, ChangesWithSequenceAndType) {
  const ModelShape shape = *ModelFlavor("gpt2", "debug");
  const std::set<std::string> digests = {
      ComputeProfileDigest(Device(), shape, 128, DType::kFloat32), ComputeProfileDigest(Device(), shape, 129, DType::kFloat32),
      ComputeProfileDigest(Device(), shape, 128, DType::kFloat64), CollectiveProfileDigest({Device()}, shape, DType::kFloat32),
      CollectiveProfileDigest({Device()}, shape, DType::kFloat64)};
  EXPECT_EQ(digests.size(), 5u);
  for (const std::string& digest : digests) EXPECT_EQ(digest.size(), 32u);
}

TEST(ProfileDigestTest, CollectivesDependOnTheRingAndTheLargestUnitAlone) {
  const ModelShape shape = *ModelFlavor("gpt2", "debug");
  DeviceDescription other = Device();
  other.id = DeviceId("n2/gpu0");
  EXPECT_NE(CollectiveProfileDigest({Device(), other}, shape, DType::kFloat32),
            CollectiveProfileDigest({other, Device()}, shape, DType::kFloat32));
  ModelShape deeper = shape;
  deeper.num_layers = 20;
  EXPECT_EQ(CollectiveProfileDigest({Device()}, shape, DType::kFloat32),
            CollectiveProfileDigest({Device()}, deeper, DType::kFloat32));
  ModelShape wider = shape;
  wider.intermediate_size = 512;
  EXPECT_NE(CollectiveProfileDigest({Device()}, shape, DType::kFloat32),
            CollectiveProfileDigest({Device()}, wider, DType::kFloat32));
}

}  // namespace
}  // namespace motley
