#include "worker/daemon/probe.h"

#include <gtest/gtest.h>

namespace motley::worker {
namespace {

const HostFacts kHost = {.name = "lab-1", .cpu = "AMD EPYC 7763", .cores = 64, .memory_bytes = int64_t{512} << 30};

TEST(Probe, CardsOfTheTableHaveItsNames) {
  const auto text = ProbeText(kHost, {"535.129.03",
                                      {{"1", "NVIDIA A100-SXM4-40GB"}, {"2", "NVIDIA A100-SXM4-40GB"}, {"3", "Tesla T4"}},
                                      0,
                                      absl::NotFoundError("no library")});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text,
            "# 2 x NVIDIA A100-SXM4-40GB, Tesla T4, driver 535.129.03; AMD EPYC 7763, 64 cores, 512.0 GiB of memory\n"
            "[[node]]\n"
            "name = \"lab-1\"\n"
            "gpus = [{card = \"A100-40GB\", count = 2}, \"T4\"]\n"
            "host_memory_gib = 512.0\n"
            "# nic_gbit_per_second =   # of the network to the other nodes\n"
            "\n"
            "# more is not known: no library\n");
}

TEST(Probe, WhatNvmlSaysStandsBehind) {
  NvidiaCard card;
  card.bus = "0000:3b:00.0";
  card.model = "NVIDIA RTX A6000";
  card.uuid = "GPU-8f6c";
  card.memory_bytes = int64_t{48} << 30;
  card.used_bytes = int64_t{1} << 30;
  card.compute_capability = 86;
  card.pcie_generation = 4;
  card.pcie_lanes = 8;
  card.nvlink_peers = {"0000:af:00.0"};
  card.power_limit_watts = 300;
  NvidiaCard lost;
  lost.bus = "0000:af:00.0";
  lost.model = "NVIDIA RTX A6000";
  lost.error = "GPU is lost (fell off the bus)";
  const auto text = ProbeText(kHost, {"580.65.06", {card, lost}, 13000});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_NE(text->find("\n# NVIDIA RTX A6000 at 0000:3b:00.0: GPU-8f6c, 48.0 GiB (in use: 1.0 GiB), sm_86, PCIe 4 x8, NVLink to "
                       "0000:af:00.0, 300 W\n# NVIDIA RTX A6000 at 0000:af:00.0: GPU is lost (fell off the bus)\n"),
            std::string::npos)
      << *text;
}

TEST(Probe, AnUnknownCardIsThereToBeFilledInOnce) {
  const auto text = ProbeText(kHost, {"", {{"1", "Quadro \"K\""}, {"2", "Quadro \"K\""}}});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_NE(text->find("gpus = [{card = \"Quadro \\\"K\\\"\", count = 2}]"), std::string::npos) << *text;
  EXPECT_EQ(text->find("[[card]]"), text->rfind("[[card]]")) << *text;
  EXPECT_NE(text->find("name = \"Quadro \\\"K\\\"\"\n# fp32_tflops ="), std::string::npos) << *text;
}

TEST(Probe, ANodeWithoutCardsSaysWhatItHas) {
  const absl::Status status = ProbeText(kHost, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("AMD EPYC 7763, 64 cores, 512.0 GiB"), std::string::npos) << status;
}

TEST(Probe, ThisHostHasCoresAndMemory) {
  const HostFacts host = ReadHostFacts("here");
  EXPECT_GT(host.cores, 0);
  EXPECT_GT(host.memory_bytes, 0);
}

}  // namespace
}  // namespace motley::worker
