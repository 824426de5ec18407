#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

using nlohmann::json;

// A node with three cards: one that is well, one that slows down, one that its worker does not offer.
void AddCards(FakeMotley& fake) {
  v1::Node& node = fake.nodes["a"];
  node.set_name("a");
  node.set_state("ready");
  node.set_host_memory_bytes(int64_t{512} << 30);
  node.set_offered_host_memory_bytes(int64_t{384} << 30);
  for (int i = 0; i < 2; ++i) {
    v1::Device* device = node.add_devices();
    device->set_id("a/gpu" + std::to_string(i));
    device->set_kind("cuda");
    device->set_host_link_bytes_per_second(25.2e9);
    v1::Card* card = device->mutable_card();
    card->set_name("NVIDIA RTX A6000");
    card->set_driver("580.65.06");
    card->set_driver_cuda("13.0");
    card->set_used_by_others_bytes(int64_t{3} << 30);
    card->set_pcie_generation(4);
    card->set_pcie_lanes(16);
    card->set_host_link_bytes_per_second(31.5e9);
    if (i == 0) card->add_nvlink_peers("0000:af:00.0");
    if (i == 1) card->set_health("slowed down: heat");
    if (i == 0) card->set_kernels("e7d628c2114b");
    if (i == 1) card->set_why_no_kernels("MOTLEY_KERNELS is off");
    if (i == 0) device->set_measured_attention("cudnn");
    if (i == 0) card->set_note("linked with 4 of 16 PCIe lanes");
  }
  v1::CardNotUsed* unused = node.add_unused_cards();
  unused->set_card("Tesla P40 at 0000:d8:00.0");
  unused->set_reason("no motley-rank at hand\x1b has kernels for sm_61");
}

TEST(NodesCommand, CardsAreSaidWithWhatIsWrong) {
  FakeMotley fake;
  AddCards(fake);
  const std::string out = Motley(fake, {"nodes"}).out;
  for (const char* part : {"a/gpu0", "NVIDIA RTX A6000", "3.0 GiB", "580.65.06, CUDA 13.0", "PCIe 4 x16 + NVLink to 1",
                           "well; linked with 4 of 16", "slowed down: heat", "KERNELS", "own", "PyTorch's", "ATTENTION", "cudnn",
                           "PyTorch's kernels alone on a/gpu1: MOTLEY_KERNELS is off\n",
                           "not used on a: Tesla P40 at 0000:d8:00.0: no motley-rank at hand\\u001b has kernels for sm_61\n"}) {
    EXPECT_NE(out.find(part), std::string::npos) << part << " in\n" << out;
  }
  fake.nodes["a"].mutable_devices(1)->mutable_card()->set_lost("GPU is lost");
  const std::string later = Motley(fake, {"nodes"}).out;
  EXPECT_NE(later.find("GPU is lost"), std::string::npos) << later;
}

TEST(NodesCommand, WhatHostsOfferHasAColumnWhereAnyDoes) {
  FakeMotley fake;
  fake.nodes["b"].set_name("b");
  fake.nodes["b"].add_devices()->set_id("b/cpu0");
  EXPECT_EQ(Motley(fake, {"nodes"}).out.find("HOST MEMORY"), std::string::npos);
  AddCards(fake);
  const std::string out = Motley(fake, {"nodes"}).out;
  EXPECT_NE(out.find("HOST MEMORY"), std::string::npos) << out;
  EXPECT_NE(out.find("384.0 GiB"), std::string::npos) << out;
}

TEST(NodesCommand, WhatPlansUseOfADeviceThatRanOutIsSaid) {
  FakeMotley fake;
  AddCards(fake);
  EXPECT_EQ(Motley(fake, {"nodes"}).out.find("PLANS USE"), std::string::npos) << "none did";
  v1::Device* device = fake.nodes["a"].mutable_devices(1);
  device->set_memory_bytes(int64_t{16} << 30);
  device->set_measured_model("gpt2 124M");
  device->set_usable_memory_bytes(int64_t{12} << 30);
  device->set_memory_corrections(2);
  const std::string out = Motley(fake, {"nodes"}).out;
  EXPECT_THAT(out, testing::ContainsRegex("a/gpu1 .* 16.0 GiB .* 12.0 GiB for gpt2 124M, corrected 2 times")) << out;
  device->set_probed_samples(37);
  EXPECT_THAT(Motley(fake, {"nodes"}).out,
              testing::HasSubstr("12.0 GiB for gpt2 124M, probed with 37 samples, corrected 2 times"));
  device->set_memory_corrections(0);
  EXPECT_THAT(Motley(fake, {"nodes"}).out, testing::HasSubstr("12.0 GiB for gpt2 124M, probed with 37 samples\n"));
  device->set_memory_corrections(2);
  const json devices = json::parse(Motley(fake, {"nodes", "-o", "json"}).out)["nodes"][0]["devices"];
  EXPECT_EQ(devices[1]["probed_samples"], 37);
  EXPECT_EQ(devices[0]["usable_memory_bytes"], json()) << "all of it";
  EXPECT_EQ(devices[0]["memory_corrections"], 0);
  EXPECT_EQ(devices[1]["usable_memory_bytes"], int64_t{12} << 30);
  EXPECT_EQ(devices[1]["memory_corrections"], 2);
}

TEST(NodesCommand, JsonHasTheHostsMemoryAndLinks) {
  FakeMotley fake;
  AddCards(fake);
  const json node = json::parse(Motley(fake, {"nodes", "-o", "json"}).out)["nodes"][0];
  EXPECT_EQ(node["host_memory_bytes"], int64_t{512} << 30);
  EXPECT_EQ(node["offered_host_memory_bytes"], int64_t{384} << 30);
  EXPECT_EQ(node["devices"][0]["host_link_bytes_per_second"], 25.2e9);
  EXPECT_EQ(node["devices"][0]["measured_attention"], "cudnn");
  EXPECT_EQ(node["devices"][1]["measured_attention"], json()) << "not known";
  EXPECT_EQ(node["unused_cards"][0]["card"], "Tesla P40 at 0000:d8:00.0");
  const json& card = node["devices"][0]["card"];
  EXPECT_EQ(card["host_link_bytes_per_second"], 31.5e9);
  EXPECT_EQ(card["nvlink_peers"], json::array({"0000:af:00.0"}));
  EXPECT_EQ(card["power_limit_watts"], json()) << "not known";
  fake.nodes["b"].add_devices()->set_id("b/cpu0");
  const json other = json::parse(Motley(fake, {"nodes", "-o", "json"}).out)["nodes"][1];
  EXPECT_EQ(other["devices"][0]["card"], json()) << "a CPU has none";
  EXPECT_EQ(other["host_memory_bytes"], json());
  EXPECT_EQ(other["offered_host_memory_bytes"], 0) << "none";
  EXPECT_EQ(other["devices"][0]["host_link_bytes_per_second"], json());
}

// As a small card is after seconds of work.
void HoldByPower(v1::Device& device) {
  v1::CardLoad* load = device.mutable_measured_load();
  load->set_sm_clock_mhz(1035);
  load->set_watts(71.8);
  load->set_power_limit_watts(72);
  load->set_at_power_limit(true);
}

TEST(NodesCommand, WhatHeldACardWhenItWasMeasuredIsSaid) {
  FakeMotley fake;
  AddCards(fake);
  const std::string before = Motley(fake, {"nodes"}).out;
  EXPECT_EQ(before.find("WHEN MEASURED"), std::string::npos) << "nobody knows\n" << before;
  HoldByPower(*fake.nodes["a"].mutable_devices(0));
  std::string out = Motley(fake, {"nodes"}).out;
  EXPECT_NE(out.find("WHEN MEASURED\n"), std::string::npos) << out;
  EXPECT_NE(out.find("held by its power limit at 1035 MHz and 71.8 of 72 W\n"), std::string::npos) << out;
  EXPECT_THAT(out, testing::ContainsRegex("slowed down: heat +-\n")) << "of the other one nobody knows";
  fake.nodes["a"].mutable_devices(1)->set_measured_cut_short(true);
  out = Motley(fake, {"nodes"}).out;
  EXPECT_NE(out.find("cut short\n"), std::string::npos) << out;
}

TEST(NodesCommand, JsonHasTheLoadThatACardWasMeasuredUnder) {
  FakeMotley fake;
  AddCards(fake);
  HoldByPower(*fake.nodes["a"].mutable_devices(0));
  fake.nodes["a"].mutable_devices(1)->mutable_measured_load()->set_slowed_by_heat(true);
  fake.nodes["b"].add_devices()->set_id("b/cpu0");
  const json nodes = json::parse(Motley(fake, {"nodes", "-o", "json"}).out)["nodes"];
  const json& devices = nodes[0]["devices"];
  EXPECT_EQ(devices[0]["measured_load"], json::parse(R"({"sm_clock_mhz": 1035, "watts": 71.8, "power_limit_watts": 72,
      "at_power_limit": true, "slowed_by_heat": false, "slowed_by_hardware": false})"));
  EXPECT_EQ(devices[0]["measured_cut_short"], false);
  EXPECT_EQ(devices[1]["measured_load"], json::parse(R"({"sm_clock_mhz": null, "watts": null, "power_limit_watts": null,
      "at_power_limit": false, "slowed_by_heat": true, "slowed_by_hardware": false})"));
  EXPECT_EQ(nodes[1]["devices"][0]["measured_load"], json());
}

}  // namespace
}  // namespace motley::client
