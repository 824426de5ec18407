#include "worker/daemon/nvml_cards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/base/folders.h"
#include "tests/worker/daemon/fake_cards.h"

namespace motley::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NvmlCards, EveryFactIsRead) {
  FakeCards fake;
  fake.all["names"] = {{"4711", "/usr/bin/python3 -u"}};
  nlohmann::json& card = fake.Add();
  card["used"] = 3 * kCardGiB;
  card["processes"] = {{{"pid", 5}, {"bytes", kCardGiB}}, {{"pid", 4711}, {"bytes", 2 * kCardGiB}}, {{"pid", 6}}};
  card["graphics"] = {{{"pid", 5}, {"bytes", kCardGiB}}};
  card["nvlink"] = {"0000:af:00.0", "0000:af:00.0", "0000:31:00.0"};
  card["lanes"] = 8;
  card["ecc"] = 2;
  card["mig"] = 1;
  card["mode"] = 3;
  const NvidiaCards found = fake.Read();
  ASSERT_TRUE(found.problem.ok()) << found.problem;
  EXPECT_EQ(found.driver, "580.65.06");
  EXPECT_EQ(found.driver_cuda, 13000);
  ASSERT_EQ(found.cards.size(), 1u);
  const NvidiaCard& read = found.cards[0];
  EXPECT_EQ(read.error, "");
  EXPECT_EQ(Name(read), "NVIDIA RTX A6000 at 0000:30:00.0");
  EXPECT_EQ(read.uuid, "GPU-0abc0");
  EXPECT_EQ(read.memory_bytes, 48 * kCardGiB);
  EXPECT_EQ(read.reserved_bytes, kCardGiB / 2);
  EXPECT_EQ(read.used_bytes, 3 * kCardGiB);
  EXPECT_EQ(Holders(read.processes), "python3 (process 4711) 2.0 GiB, process 5 1.0 GiB, process 6");
  EXPECT_EQ(read.compute_capability, 86);
  EXPECT_EQ(read.pcie_generation, 4);
  EXPECT_EQ(read.pcie_lanes, 8);
  EXPECT_EQ(read.most_pcie_lanes, 16);
  EXPECT_THAT(read.nvlink_peers, ElementsAre("0000:31:00.0", "0000:af:00.0"));
  EXPECT_EQ(read.power_limit_watts, 300);
  EXPECT_EQ(read.memory_errors.uncorrected, 2);
  EXPECT_EQ(read.mode, ComputeMode::kExclusive);
  EXPECT_TRUE(read.mig);
}

TEST(NvmlCards, WhoReachesWhomIsAskedOfEveryTwo) {
  FakeCards fake;
  for (int i = 0; i < 3; ++i) fake.Add();
  nlohmann::json& cards = fake.all["cards"];
  cards[0]["nvlink"] = {"0000:07:00.0"};  // a switch
  cards[0]["nvswitch"] = {"0000:31:00.0"};
  cards[0]["p2p"] = {"0000:31:00.0", "0000:32:00.0"};
  cards[1]["p2p"] = {"0000:30:00.0"};
  const NvidiaCards found = fake.Read();
  ASSERT_EQ(found.cards.size(), 3u);
  EXPECT_THAT(found.cards[0].nvlink_peers, ElementsAre("0000:07:00.0", "0000:31:00.0"));
  EXPECT_THAT(found.cards[0].p2p_peers, ElementsAre("0000:31:00.0", "0000:32:00.0"));
  EXPECT_THAT(found.cards[1].p2p_peers, ElementsAre("0000:30:00.0"));
  EXPECT_TRUE(found.cards[2].p2p_peers.empty()) << "it does not say";
}

// A GeForce has no ECC and no NVLink, an old driver lacks functions, a container hides processes.
TEST(NvmlCards, WhatACardDoesNotSayIsNotKnown) {
  FakeCards fake;
  nlohmann::json& card = fake.Add();
  for (const char* key : {"ecc", "mig", "power_limit", "processes", "lanes", "most_lanes", "generation", "throttle",
                          "utilization", "power", "temperature", "clock"}) {
    card.erase(key);
  }
  card["errors"]["nvmlDeviceGetMemoryInfo_v2"] = nvml::kFunctionNotFound;
  card["used"] = kCardGiB;
  const NvidiaCards found = fake.Read();
  ASSERT_EQ(found.cards.size(), 1u);
  EXPECT_EQ(found.cards[0].error, "");
  EXPECT_EQ(found.cards[0].used_bytes, kCardGiB + kCardGiB / 2) << "with what the driver keeps for itself";
  EXPECT_EQ(found.cards[0].power_limit_watts, 0);
  EXPECT_FALSE(found.cards[0].mig);
  EXPECT_TRUE(found.cards[0].processes.empty());
  auto nvml = NvmlLibrary::Open();
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  nvml::DeviceHandle handle = nullptr;
  ASSERT_EQ((*nvml)->api().HandleByIndex(0, &handle), nvml::kSuccess);
  EXPECT_EQ(ReadProcesses(**nvml, handle).status().code(), absl::StatusCode::kUnavailable);
  const CardSample sample = TakeSample(**nvml, handle);
  EXPECT_EQ(sample.lost, "");
  EXPECT_EQ(sample.utilization, -1);
  EXPECT_EQ(sample.watts, -1);
  EXPECT_EQ(sample.slow_downs, 0u);
}

TEST(NvmlCards, ManyProcessesAreAllRead) {
  FakeCards fake;
  nlohmann::json& card = fake.Add();
  for (int pid = 1; pid <= 100; ++pid) card["processes"].push_back({{"pid", pid}, {"bytes", pid}});
  const NvidiaCards found = fake.Read();
  ASSERT_EQ(found.cards[0].processes.size(), 100u);
  EXPECT_EQ(found.cards[0].processes[0].pid, 100);
}

TEST(NvmlCards, ALostCardIsThereWithItsReason) {
  FakeCards fake;
  fake.Add()["lost"] = true;
  fake.Add()["errors"]["nvmlDeviceGetUUID"] = nvml::kUnknown;
  fake.Add();
  const NvidiaCards found = fake.Read();
  ASSERT_EQ(found.cards.size(), 3u);
  EXPECT_EQ(found.cards[0].error, "GPU is lost (fell off the bus)");
  EXPECT_EQ(found.cards[1].error, "Unknown Error (NVML 999)");
  EXPECT_EQ(Name(found.cards[1]), "NVIDIA RTX A6000 at 0000:31:00.0");
  EXPECT_EQ(found.cards[2].error, "");
}

TEST(NvmlCards, ASampleSaysHowTheCardIs) {
  FakeCards fake;
  nlohmann::json& card = fake.Add();
  fake.Write();
  auto nvml = NvmlLibrary::Open();
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  nvml::DeviceHandle handle = nullptr;
  ASSERT_EQ((*nvml)->api().HandleByIndex(0, &handle), nvml::kSuccess);
  CardSample sample = TakeSample(**nvml, handle);
  EXPECT_DOUBLE_EQ(sample.utilization, 0.87);
  EXPECT_DOUBLE_EQ(sample.watts, 120.5);
  EXPECT_EQ(sample.temperature_celsius, 45);
  EXPECT_EQ(sample.clock_mhz, 1410);
  EXPECT_EQ(HealthOf(sample), "");
  card["throttle"] = nvml::kSwPowerCap;
  fake.Write();
  EXPECT_EQ(HealthOf(TakeSample(**nvml, handle)), "") << "the power limit is where a busy card ends";
  card["throttle"] = nvml::kSwThermal | nvml::kHwPowerBrake;
  fake.Write();
  EXPECT_EQ(HealthOf(TakeSample(**nvml, handle)), "slowed down: heat, the power supply");
  card["lost"] = true;
  fake.Write();
  EXPECT_EQ(TakeSample(**nvml, handle).lost, "GPU is lost (fell off the bus)");
}

TEST(NvmlCards, WithoutALibraryTheDriversFilesSayWhichCardsThereAre) {
  setenv("MOTLEY_NVML_LIBRARY", "libnowhere-ml.so.1", 1);
  const NvidiaCards found = LookForCards(NvmlLibrary::Open(), SourceFolder() + "/tests/worker/daemon/nvidia");
  unsetenv("MOTLEY_NVML_LIBRARY");
  EXPECT_EQ(found.cards.size(), 3u);
  EXPECT_EQ(found.problem.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(found.problem.message()), HasSubstr("libnowhere-ml.so.1: cannot open shared object file"));
  EXPECT_THAT(std::string(found.problem.message()), HasSubstr("in a container it must be passed in"));
}

TEST(NvmlCards, ADriverThatCannotWorkSaysWhatHelps) {
  FakeCards fake;
  fake.Add();
  const auto problem = [&](const char* function, int code) {
    fake.all["errors"] = {{function, code}};
    return std::string(fake.Read().problem.message());
  };
  EXPECT_THAT(problem("nvmlInit_v2", nvml::kDriverNotLoaded), HasSubstr("is not loaded: install it or load it"));
  EXPECT_THAT(problem("nvmlInit_v2", nvml::kLibRmVersionMismatch), HasSubstr("the driver was updated; reboot"));
  EXPECT_THAT(problem("nvmlInit_v2", nvml::kUnknown), HasSubstr("Unknown Error (NVML 999)"));
  EXPECT_THAT(problem("nvmlDeviceGetCount_v2", nvml::kNoPermission), HasSubstr("does not say which cards there are"));
}

TEST(NvmlCards, ALibraryOfSomethingElseIsRefused) {
  setenv("MOTLEY_NVML_LIBRARY", "libm.so.6", 1);
  const absl::Status status = NvmlLibrary::Open().status();
  unsetenv("MOTLEY_NVML_LIBRARY");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("libm.so.6 has no nvml"));
}

}  // namespace
}  // namespace motley::worker
