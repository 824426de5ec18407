#include "planner/live/live_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/answers/plan_answer.h"
#include "planner/cluster/cluster_file.h"
#include "planner/cluster/cluster_text.h"
#include "planner/live/planner.h"
#include "tests/planner/live/setting_from_texts.h"

namespace motley::planner {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(LiveInputs, CardsAreWhatWasMeasuredAndDeclared) {
  PlannerInput input = Mixed();
  input.config.planner.memory_reserve = 0.2;
  const LiveInputs live = Described(input);
  ASSERT_EQ(live.cluster.kinds.size(), 4u) << "the two P40s measure alike";
  EXPECT_EQ(live.cluster.kinds[0].name, "A6000");
  EXPECT_EQ(live.cluster.kinds[0].fp32_flops, 4e9);
  EXPECT_EQ(live.cluster.kinds[0].memory_bytes, int64_t{64} << 20);
  EXPECT_EQ(live.cluster.usable_memory, 0.8);
  ASSERT_EQ(live.cluster.nodes.size(), 3u);
  EXPECT_EQ(live.cluster.nodes[1].name.value(), "n2");
  EXPECT_EQ(live.cluster.devices[3].kind, 2);
  EXPECT_EQ(live.profile.models.at(live.model_name), input.model);
}

TEST(LiveInputs, WhatIsLittleBesideALayerTellsNoCardsApart) {
  PlannerInput input = Mixed();
  ComputeProfile& second = input.compute[3];  // of two P40
  const auto slow_embedding_by = [&](double part_of_layer) {
    for (size_t i = 0; i < second.embedding.points.size(); ++i) {
      second.embedding.points[i].forward_seconds += part_of_layer * second.layer.points[i].forward_seconds;
    }
    return Described(input).cluster.kinds.size();
  };
  EXPECT_EQ(slow_embedding_by(0.015), 4u);
  EXPECT_EQ(slow_embedding_by(0.5), 5u);
}

TEST(LiveInputs, TheSettingHasTheDevicesOwnSeconds) {
  const PlannerInput input = Mixed();
  const auto setting = SettingFromTexts(input, {});
  for (int d = 0; d < setting->num_devices(); ++d) {
    const int kind = setting->KindOf(d);
    const ComputeProfile& profile = input.compute[d];
    EXPECT_FALSE(setting->costs.provenance(kind).estimated) << setting->costs.provenance(kind).source;
    EXPECT_DOUBLE_EQ(setting->costs.ForwardSeconds(kind, UnitKind::kLayer, 4), profile.layer.points[2].forward_seconds);
    EXPECT_DOUBLE_EQ(setting->costs.BackwardSeconds(kind, UnitKind::kHead, 8), profile.head.points[3].backward_seconds);
    EXPECT_DOUBLE_EQ(setting->costs.ForwardSeconds(kind, UnitKind::kEmbedding, 1), profile.embedding.points[0].forward_seconds);
    EXPECT_DOUBLE_EQ(setting->costs.OptimizerSeconds(kind, 1000), 1000 * profile.optimizer_seconds_per_element);
    EXPECT_EQ(setting->costs.ContextBytes(kind), profile.context_bytes);
  }
}

// What the coordinator plans with and what the command line gets are one setting: the same plan, to the last digit that texts
// keep.
TEST(LiveInputs, ThePlanAwayFromTheClusterIsTheJobsPlan) {
  for (const char* strategy : {"cephalo", "even", "auto"}) {
    PlannerInput input = Mixed();
    input.config.planner.strategy = strategy;
    const auto live = MakePlan(input);
    ASSERT_TRUE(live.ok()) << live.status();
    PlanRequest request;
    request.strategy = strategy;
    request.runnable = true;
    const auto setting = SettingFromTexts(input, request);
    const auto planned = AnswerPlan(*setting);
    ASSERT_TRUE(planned.ok()) << planned.status();
    Plan away = planned->evaluation.plan, job = live->plan;
    EXPECT_NEAR(away.predicted.step_seconds / job.predicted.step_seconds, 1, 1e-9) << strategy;
    const auto text = [](Plan plan) {
      plan.model.clear();
      plan.epoch = Epoch(0);
      plan.ownership.reset();
      std::erase_if(plan.predicted.notes,
                    [](const std::string& note) { return note.starts_with("found with "); });  // other budgets
      return ToText(plan);
    };
    EXPECT_EQ(text(away), text(job)) << strategy;
  }
}

TEST(LiveInputs, MeasuredBytesAndCollectivesCount) {
  PlannerInput input = Mixed();
  for (ComputePoint& point : input.compute[0].layer.points) {
    point.saved_bytes *= 2;
    point.workspace_bytes = 1000 * point.microbatch;
  }
  for (CollectivePoint& point : input.collectives.points) point.all_gather_seconds *= 3;
  const auto setting = SettingFromTexts(input, {});
  const Costs& costs = setting->costs;
  const int kind = setting->KindOf(0), other = setting->KindOf(2);
  EXPECT_EQ(costs.SavedBytes(kind, UnitKind::kLayer, OpSet::None(), 4) + costs.BoundaryBytes(4),
            input.compute[0].layer.points[2].saved_bytes);
  EXPECT_EQ(costs.WorkspaceBytes(kind, UnitKind::kLayer, 4), 4000);
  EXPECT_EQ(costs.SavedBytes(other, UnitKind::kLayer, OpSet::None(), 4) + costs.BoundaryBytes(4),
            input.compute[2].layer.points[2].saved_bytes);
  const std::vector<int> all = {0, 1, 2, 3, 4};
  const CollectivePoint& point = input.collectives.points[4];
  const std::vector<double> shares = SharesWithLargest(all.size(), point.skew);
  const auto seconds = [&](Collective collective, std::span<const int> devices, std::span<const double> of) {
    return setting->links.SecondsAlone(setting->links.Ring(collective, devices, static_cast<double>(point.bytes), of));
  };
  EXPECT_NEAR(seconds(Collective::kAllGather, all, shares), point.all_gather_seconds, 1e-12);
  EXPECT_NEAR(seconds(Collective::kReduceScatter, all, shares), point.reduce_scatter_seconds, 1e-12);
  EXPECT_NEAR(setting->links.TreeSeconds(all), input.collectives.barrier_seconds, 1e-15);
  // A part of the devices is off from its ring by as much.
  const std::vector<int> some = {0, 1, 2};
  EXPECT_NEAR(seconds(Collective::kAllGather, some, {}) / seconds(Collective::kReduceScatter, some, {}), 3, 1e-9);
}

TEST(LiveInputs, HostsAreAsTheirNodesOfferThem) {
  PlannerInput input = Mixed();
  const LiveInputs before = Described(input);
  for (const ClusterNode& node : before.cluster.nodes) EXPECT_EQ(node.host_memory_bytes + node.host_link_bytes_per_second, 0);
  EXPECT_THAT(before.cluster.notes, Contains("no node offers host memory (host_memory_bytes), so nothing is offloaded"));
  const std::vector<int> own = before.cluster.nodes[1].devices;
  ASSERT_GE(own.size(), 2u);
  for (const int d : own) {
    input.devices[d].node_host_memory_bytes = int64_t{3} << 30;
    input.devices[d].host_link_bytes_per_second = 2e6 + d;
    input.devices[d].host_root = 4;
  }
  LiveInputs live = Described(input);
  const ClusterNode& host = live.cluster.nodes[1];
  EXPECT_EQ(host.host_memory_bytes, int64_t{3} << 30);
  EXPECT_EQ(host.host_link_bytes_per_second, 2e6 + own[0]) << "the slowest";
  EXPECT_EQ(host.pcie_roots, (std::vector<std::vector<int>>{own}));
  EXPECT_EQ(live.cluster.nodes[0].host_memory_bytes, 0);
  EXPECT_THAT(live.cluster.notes, Contains(HasSubstr("host memory is offered by all nodes but n1, n3")));
  for (const int d : own) input.devices[d].host_root = d, input.devices[d].host_link_bytes_per_second = 0;
  live = Described(input);
  EXPECT_EQ(live.cluster.nodes[1].pcie_roots.size(), 0u) << "each its own";
  EXPECT_GT(live.cluster.nodes[1].host_link_bytes_per_second, 0) << "a CPU copies in its own memory";
}

TEST(LiveInputs, TheSameFromFilesTwice) {
  const LiveInputs a = Described(Mixed()), b = Described(Mixed());
  EXPECT_EQ(ToToml(a.cluster), ToToml(b.cluster));
  EXPECT_EQ(ToJson(a.profile), ToJson(b.profile));
}

TEST(LiveInputs, DevicesOfOneLabelThatDifferAreCardsOfTheirOwn) {
  PlannerInput input = Mixed();
  input.compute[3].layer.points[0].forward_seconds *= 2;
  input.devices[4].model = "P40-2";
  const LiveInputs live = Described(input);
  std::vector<std::string> names;
  for (const CardKind& kind : live.cluster.kinds) names.push_back(kind.name);
  EXPECT_THAT(names, testing::ElementsAre("A6000", "L4", "P40", "P40-2", "P40-2-2"));
}

TEST(LiveInputs, NoiseMakesNoCard) {
  PlannerInput input = Mixed();
  for (ComputePoint& point : input.compute[3].layer.points) point.backward_seconds *= 1.015;
  const LiveInputs noisy = Described(input);
  EXPECT_EQ(noisy.cluster.kinds.size(), 4u);
  EXPECT_NEAR(noisy.profile.cards[2].layer.backward_seconds[1], 1.0075 * input.compute[2].layer.points[1].backward_seconds, 1e-15)
      << "the mean of both";
  for (ComputePoint& point : input.compute[3].layer.points) point.backward_seconds *= 1.05;
  EXPECT_EQ(Described(input).cluster.kinds.size(), 4u) << "they are emulated and declare the same";
  for (ComputePoint& point : input.compute[3].layer.points) point.backward_seconds *= 1.05;
  EXPECT_EQ(Described(input).cluster.kinds.size(), 5u);
  input = Mixed();
  input.devices[3].memory_bytes += 1;
  EXPECT_EQ(Described(input).cluster.kinds.size(), 5u) << "memory is exact";
}

TEST(LiveInputs, CardsUnderTwoLibtorchesAreTwo) {
  PlannerInput input = Mixed();
  for (DeviceDescription& device : input.devices) device.libtorch = "2.11.0";
  const size_t kinds = Described(input).cluster.kinds.size();
  input.devices[3].libtorch = "2.7.1";
  const LiveInputs live = Described(input);
  ASSERT_EQ(live.cluster.kinds.size(), kinds + 1);
  EXPECT_NE(live.cluster.devices[2].kind, live.cluster.devices[3].kind);
  EXPECT_EQ(live.profile.cards[live.cluster.devices[2].kind].layer.backward_seconds[1],
            input.compute[2].layer.points[1].backward_seconds)
      << "its own, and no mean";
}

TEST(LiveInputs, OverlapIsSaidAndPlannedWith) {
  PlannerInput input = Mixed();
  const Cluster without = Described(input).cluster;
  EXPECT_EQ(without.overlap_efficiency, 1);
  input.collectives.overlap.assign(input.devices.size(), {1.25, 1.5});
  Cluster with = Described(input).cluster;
  EXPECT_THAT(with.notes, testing::Contains(testing::HasSubstr("compute takes up to 1.25 times as long beside collectives")));
  EXPECT_DOUBLE_EQ(with.overlap_efficiency, 0.7);
  EXPECT_EQ(ParseCluster(ToToml(with), "c.toml")->overlap_efficiency, with.overlap_efficiency);
  with.notes = without.notes;
  with.overlap_efficiency = 1;
  EXPECT_EQ(ToToml(with), ToToml(without));
  for (const std::vector<Overlap>& wrong : {std::vector<Overlap>{{1, 1}}, std::vector<Overlap>(input.devices.size(), {0.5, 1})}) {
    input.collectives.overlap = wrong;
    EXPECT_EQ(DescribeLive(input).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(LiveInputs, DevicesKeepTheirNames) {
  PlannerInput input = Mixed();
  input.devices[1].id = input.compute[1].device = DeviceId("n1/spare");
  const auto cluster = ParseCluster(ToToml(Described(input).cluster), "c.toml");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->devices[1].id.value(), "n1/spare");
}

TEST(LiveInputs, WithoutLimitOrDeclaredSpeedTheMeasuredOneCounts) {
  PlannerInput input = Mixed();
  for (DeviceDescription& device : input.devices) {
    device.flops_per_second = 0;
    device.memory_bytes = 0;
    device.link_bytes_per_second = 0;
  }
  const LiveInputs live = Described(input);
  EXPECT_NEAR(live.cluster.kinds[0].fp32_flops, 4e9, 1e9);
  EXPECT_EQ(live.cluster.PeakFlops(0, DType::kFloat32), 0) << "a CPU is no part of itself";
  EXPECT_EQ(live.cluster.kinds[0].memory_bytes, static_cast<int64_t>(kMostDeviceBytes));
  EXPECT_EQ(live.cluster.collective_efficiency, 1);
  // 0.1 ms and 1 ns a byte were measured; the ring of five carries 4/5 to all of the bytes.
  EXPECT_NEAR(live.cluster.nodes[0].device_link_bytes_per_second, 0.9e9, 0.15e9);
  EXPECT_NEAR(live.cluster.nodes[0].nic_latency_seconds, 2.5e-5, 1e-6);
}

TEST(LiveInputs, DeclaredLinksAreKeptAndSharedNetworkCardsBind) {
  PlannerInput input = Mixed();
  for (DeviceDescription& device : input.devices) {
    device.link_bytes_per_second = 4e9;
    device.node_link_bytes_per_second = 3e9;
  }
  const LiveInputs live = Described(input);
  EXPECT_EQ(live.cluster.nodes[0].device_link_bytes_per_second, 4e9);
  EXPECT_EQ(live.cluster.nodes[0].nic_bytes_per_second, 3e9);
  EXPECT_NEAR(live.cluster.collective_efficiency, 0.3, 0.06);
  EXPECT_THAT(live.cluster.notes, testing::Contains(HasSubstr("collectives of all 5 devices are as measured")));
}

TEST(LiveInputs, LinksThatWereNotMeasuredAreAsDeclared) {
  PlannerInput input = Mixed();
  input.collectives.points.clear();
  const LiveInputs live = Described(input);
  EXPECT_EQ(live.cluster.nodes[0].device_link_bytes_per_second, 1e9);
  EXPECT_EQ(live.cluster.collective_efficiency, 1);
  EXPECT_THAT(live.cluster.notes, testing::Contains(HasSubstr("not measured together")));
  input.devices[2].link_bytes_per_second = 0;
  const absl::Status status = DescribeLive(input).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("submit it again"));
}

TEST(LiveInputs, LinksThatNobodyWaitsForArePredicted) {
  PlannerInput input = Mixed();
  for (DeviceDescription& device : input.devices) device.link_bytes_per_second = device.node_link_bytes_per_second = 0;
  // All but the last were measured, in a ring that goes through all.
  input.measured = input.collectives;
  input.measured.links.clear();
  input.measured.overlap.clear();
  input.measured.devices.clear();
  for (size_t d = 0; d + 1 < input.devices.size(); ++d) input.measured.devices.push_back(input.devices[d].id);
  PlannerInput alone = input;
  alone.devices.pop_back();
  alone.compute.pop_back();
  alone.collectives = input.measured;
  const LiveInputs known = Described(alone);
  input.collectives = CollectiveProfile();
  EXPECT_FALSE(DescribeLive(input).ok()) << "neither measured nor declared";
  input.predicts_links = true;
  const LiveInputs live = Described(input);
  EXPECT_EQ(live.cluster.nodes[0].device_link_bytes_per_second, known.cluster.nodes[0].device_link_bytes_per_second);
  EXPECT_EQ(live.cluster.nodes.back().device_link_latency_seconds, known.cluster.nodes[0].device_link_latency_seconds);
  EXPECT_THAT(live.cluster.notes, testing::Contains(HasSubstr("were not measured: they are predicted from those of 4")));
  EXPECT_TRUE(MakePlan(input).ok());
  input.measured.devices.back() = DeviceId("gone/gpu0");
  const LiveInputs nominal = Described(input);
  EXPECT_THAT(nominal.cluster.notes, testing::Contains(HasSubstr("or taken for 1 GB/s")));
  EXPECT_TRUE(MakePlan(input).ok());
}

TEST(LiveInputs, OneDeviceNeedsNoLinks) {
  PlannerInput input = MakeInput(SmallModel(), {{"n1/gpu0", "L4"}}, 8);
  input.collectives = {};
  EXPECT_EQ(AnswerPlan(*SettingFromTexts(input, {})).status(), absl::OkStatus());
}

TEST(LiveInputs, DeclaredTimesOfNothingAreEstimated) {
  PlannerInput input = Mixed();
  for (ComputePoint& point : input.compute[0].embedding.points) point.forward_seconds = 0;
  const LiveInputs live = Described(input);
  EXPECT_FALSE(live.profile.cards[0].embedding.has_value());
  EXPECT_TRUE(live.profile.cards[1].embedding.has_value());
  input.compute[0].layer.points[0].backward_seconds = 0;
  EXPECT_THAT(DescribeLive(input).status().message(), HasSubstr("profile of n1/gpu0, layer"));
}

TEST(LiveInputs, DevicesAndProfilesMustBelongTogether) {
  PlannerInput input = Mixed();
  input.compute.pop_back();
  EXPECT_EQ(DescribeLive(input).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DescribeLive({}).status().code(), absl::StatusCode::kInvalidArgument);
  const auto why = [](const PlannerInput& broken) { return std::string(DescribeLive(broken).status().message()); };
  EXPECT_THAT(why(input), HasSubstr("5 devices but 4 compute profiles"));
  input = Mixed();
  std::swap(input.compute[0], input.compute[1]);
  EXPECT_THAT(why(input), HasSubstr("is of n1/gpu1"));
  input = Mixed();
  input.compute[2].layer.points.clear();
  EXPECT_THAT(why(input), HasSubstr("n2/gpu0, layer: no points"));
  input = Mixed();
  input.compute[2].layer.points[1].microbatch = 1;
  EXPECT_THAT(why(input), HasSubstr("positive and ascending"));
  input = Mixed();
  input.compute[2].layer.points[1].backward_weight_seconds = -1;
  EXPECT_THAT(why(input), HasSubstr("n2/gpu0, layer: negative or infinite value at microbatch 2"));
  input = Mixed();
  input.compute[2].head.part = 1;
  EXPECT_THAT(why(input), HasSubstr("n2/gpu0, head: measured part 1 is not below 1"));
}

}  // namespace
}  // namespace motley::planner
