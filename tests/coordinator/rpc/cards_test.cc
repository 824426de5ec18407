// A card that is lost is the first cause, an event, and a device that no plan uses.
#include <gmock/gmock.h>

#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class Cards : public ClusterTest {
 protected:
  static void BecomeCuda(v1::Hello& hello) {
    v1::DeviceDescription* device = hello.mutable_devices(0);
    device->set_kind("cuda");
    v1::CardDescription* card = device->mutable_card();
    card->set_name("NVIDIA RTX A6000");
    card->set_driver_cuda(13000);
    card->set_compute_capability(86);
    card->set_pcie_generation(4);
    card->set_pcie_lanes(8);
    card->set_kernels("e7d628c2114b");
    v1::UnusedCard* unused = hello.add_unused_cards();
    unused->set_card("Tesla P40 at 0000:d8:00.0");
    unused->set_reason("others use it");
    hello.set_host_memory_bytes(int64_t{64} << 30);
    device->set_node_host_memory_bytes(int64_t{48} << 30);
    device->set_host_link_bytes_per_second(12e9);
  }
  // `node`: empty: of any.
  std::string EventOf(const std::string& kind, const std::string& node = "") {
    grpc::ClientContext context;
    auto reader = stub_->ListEvents(&context, v1::ListEventsRequest());
    v1::Event event;
    std::string found;
    while (found.empty() && reader->Read(&event)) {
      if (event.kind() == kind && (node.empty() || event.node() == node)) found = event.message();
    }
    context.TryCancel();
    return found;
  }
};

TEST_F(Cards, ALostCardEndsTheEpochAndIsLeftOut) {
  FakeWorker::Options with_card;
  with_card.on_hello = BecomeCuda;
  const auto n1 = Join("n1"), n2 = Join("n2", with_card);
  const v1::Node joined = NodeOf("n2");
  EXPECT_EQ(joined.devices(0).card().compute_capability(), "8.6");
  EXPECT_EQ(joined.devices(0).card().driver_cuda(), "13.0");
  EXPECT_DOUBLE_EQ(joined.devices(0).card().host_link_bytes_per_second(), 15.75e9);
  EXPECT_FALSE(NodeOf("n1").devices(0).has_card());
  ASSERT_EQ(joined.unused_cards_size(), 1);
  EXPECT_EQ(joined.unused_cards(0).reason(), "others use it");
  EXPECT_EQ(joined.host_memory_bytes(), int64_t{64} << 30);
  EXPECT_EQ(joined.offered_host_memory_bytes(), int64_t{48} << 30);
  EXPECT_EQ(joined.devices(0).host_link_bytes_per_second(), 12e9);
  EXPECT_EQ(NodeOf("n1").offered_host_memory_bytes(), 0);

  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  auto ranks = n1->WaitForStart();
  ASSERT_FALSE(ranks.empty() || n2->WaitForStart().empty());
  EXPECT_EQ(ranks[0].device_ids_size(), 2);
  n1->SendAll(v1::RankEvent::KIND_READY);
  n2->SendAll(v1::RankEvent::KIND_READY);
  const std::string lost = "GPU is lost (fell off the bus)";
  v1::WorkerMessage message;
  message.mutable_card_state()->set_device_id("n2/gpu0");
  message.mutable_card_state()->set_lost(lost);
  n2->Send(message);
  n2->SendAll(v1::RankEvent::KIND_DIED, "n2/gpu0: " + lost);
  ranks = n1->WaitForStart(ranks[0].epoch());
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].device_ids_size(), 1) << "without the lost card";
  EXPECT_EQ(WaitForEvent("a", "rank_lost"), "the rank on n2/gpu0 died: " + lost) << "the card, and not what its rank says";
  EXPECT_EQ(EventOf("card_lost"), "n2/gpu0: " + lost + ": no plan uses it until its worker starts again");
  const v1::Device device = NodeOf("n2").devices(0);
  EXPECT_EQ(device.state(), "lost");
  EXPECT_EQ(device.card().lost(), lost);
}

TEST_F(Cards, HowACardWasWhenItWasMeasuredIsShown) {
  FakeWorker::Options with_card;
  with_card.on_hello = BecomeCuda;
  with_card.on_profile = [](v1::ProfileResult& result) {
    for (v1::ComputeProfile& profile : *result.mutable_compute()) {
      profile.mutable_load()->set_sm_clock_mhz(1035);
      profile.mutable_load()->set_at_power_limit(true);
      profile.set_cut_short(true);
      profile.set_attention("cudnn");
    }
  };
  const auto n1 = Join("n1", with_card), n2 = Join("n2");
  EXPECT_FALSE(NodeOf("n1").devices(0).has_measured_load());
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  ASSERT_FALSE(n1->WaitForStart().empty());
  const v1::Device device = NodeOf("n1").devices(0), other = NodeOf("n2").devices(0);
  EXPECT_GT(device.measured_tokens_per_second(), 0);
  EXPECT_EQ(device.measured_load().sm_clock_mhz(), 1035);
  EXPECT_TRUE(device.measured_load().at_power_limit());
  EXPECT_FALSE(device.measured_load().slowed_by_heat());
  EXPECT_TRUE(device.measured_cut_short());
  EXPECT_EQ(device.measured_attention(), "cudnn");
  EXPECT_GT(other.measured_tokens_per_second(), 0);
  EXPECT_FALSE(other.has_measured_load()) << "nobody knows";
  EXPECT_FALSE(other.measured_cut_short());
  EXPECT_THAT(EventOf("profile", "n1"), testing::HasSubstr("tokens/s (held by its power limit at 1035 MHz, cut short)"));
}

TEST_F(Cards, WhatAWorkerSaysLaterIsShown) {
  FakeWorker::Options with_card;
  with_card.on_hello = BecomeCuda;
  const auto n1 = Join("n1", with_card);
  v1::WorkerMessage message;
  message.mutable_card_state()->set_device_id("n1/gpu0");
  message.mutable_card_state()->set_health("slowed down: heat");
  message.mutable_card_state()->set_used_by_others_bytes(77);
  n1->Send(message);
  for (int i = 0; i < 400 && NodeOf("n1").devices(0).card().health().empty(); ++i) absl::SleepFor(absl::Milliseconds(20));
  const v1::Card card = NodeOf("n1").devices(0).card();
  EXPECT_EQ(card.health(), "slowed down: heat");
  EXPECT_EQ(card.used_by_others_bytes(), 77);
  EXPECT_EQ(card.kernels(), "e7d628c2114b");
  EXPECT_EQ(NodeOf("n1").devices(0).state(), "idle") << "it still computes";
}

}  // namespace
}  // namespace motley::coordinator
