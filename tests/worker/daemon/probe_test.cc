#include "worker/daemon/probe.h"

#include <gtest/gtest.h>

namespace motley::worker {
namespace {

const HostFacts kHost = {.name = "lab-1", .cpu = "AMD EPYC 7763", .cores = 64, .memory_bytes = int64_t{512} << 30};

TEST(Probe, CardsOfTheTableHaveItsNames) {
  const auto text =
      ProbeText(kHost, {"535.129.03", {{"1", "NVIDIA A100-SXM4-40GB"}, {"2", "NVIDIA A100-SXM4-40GB"}, {"3", "Tesla T4"}}});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text,
            "# 2 x NVIDIA A100-SXM4-40GB, Tesla T4, driver 535.129.03; AMD EPYC 7763, 64 cores, 512.0 GiB of memory\n"
            "[[node]]\n"
            "name = \"lab-1\"\n"
            "gpus = [{card = \"A100-40GB\", count = 2}, \"T4\"]\n"
            "host_memory_gib = 512.0\n"
            "# nic_gbit_per_second =   # of the network to the other nodes\n");
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
