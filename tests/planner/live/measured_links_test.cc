#include "planner/live/measured_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "planner/cluster/cluster_file.h"
#include "planner/cluster/cluster_text.h"
#include "planner/cluster/links.h"
#include "planner/live/planner.h"
#include "tests/planner/cluster_fixture.h"
#include "tests/planner/live/described.h"

namespace motley::planner {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// Two devices on each of four nodes in two rooms, a and b; nothing is declared.
std::vector<DeviceSetup> TwoRooms() {
  std::vector<DeviceSetup> devices;
  for (const char* node : {"a1", "a2", "b1", "b2"}) {
    for (const char* gpu : {"/gpu0", "/gpu1"}) devices.push_back({std::string(node) + gpu, "L4", 1e9, int64_t{64} << 20});
  }
  return devices;
}

// Both ways of what the profiler measures; rate(a, b) and latency(a, b) by device.
template <typename Rate, typename Latency>
void Measure(PlannerInput* input, Rate rate, Latency latency) {
  const auto& devices = input->devices;
  const auto first_of_node = [&](size_t d) { return d == 0 || NodeOf(devices[d].id) != NodeOf(devices[d - 1].id); };
  for (size_t a = 0; a < devices.size(); ++a) {
    for (size_t b = a + 1; b < devices.size(); ++b) {
      const bool inside = NodeOf(devices[a].id) == NodeOf(devices[b].id);
      if (!first_of_node(a) || (inside ? b != a + 1 : !first_of_node(b))) continue;
      const int from = static_cast<int>(a), to = static_cast<int>(b);
      input->collectives.links.push_back({from, to, latency(from, to), rate(from, to)});
      input->collectives.links.push_back({to, from, latency(to, from), 1.02 * rate(to, from)});
    }
  }
}

constexpr double kInside = 2e9, kInRoom = 1e9, kBetweenRooms = 2e6;

PlannerInput Rooms(const ModelShape& model = SmallModel(), int64_t batch = 32) {
  // The ring is as fast as its slowest hop.
  PlannerInput input = MakeInput(model, TwoRooms(), batch, kBetweenRooms);
  const auto room = [](int device) { return device / 4; };
  Measure(
      &input,
      [&](int a, int b) {
        // Noise of some percent, by pair.
        const double noise = 1 - 0.01 * ((std::min(a, b) + 3 * std::max(a, b)) % 5);
        return noise * (a / 2 == b / 2 ? kInside : room(a) == room(b) ? kInRoom : kBetweenRooms);
      },
      [&](int a, int b) { return room(a) == room(b) ? 2e-5 : 1e-3; });
  return input;
}

TEST(MeasuredLinks, NodesAndPairsAreAsMeasured) {
  const Cluster cluster = Described(Rooms()).cluster;
  const Links links(cluster);
  EXPECT_NEAR(links.Rate(0, 1), kInside, 0.05 * kInside);
  EXPECT_NEAR(links.Rate(1, 3), kInRoom, 0.05 * kInRoom);
  EXPECT_NEAR(links.Rate(0, 4), kBetweenRooms, 0.05 * kBetweenRooms);
  EXPECT_NEAR(links.PointToPoint(0, 1, 1).latency_seconds, 2e-5, 1e-9);
  EXPECT_NEAR(links.PointToPoint(0, 2, 1).latency_seconds, 2e-5, 1e-9);
  EXPECT_NEAR(links.PointToPoint(0, 4, 1).latency_seconds, 1e-3, 1e-9);
  EXPECT_EQ(cluster.nodes[0].device_link_bytes_per_second, cluster.nodes[3].device_link_bytes_per_second)
      << "noise makes no difference between nodes";
  EXPECT_EQ(cluster.nodes[0].nic_bytes_per_second, cluster.nodes[3].nic_bytes_per_second);
  EXPECT_EQ(cluster.node_bytes_per_second[0][1], 0) << "the NICs say it";
  EXPECT_THAT(cluster.notes, Contains(HasSubstr("links are as measured: inside nodes")));
  EXPECT_TRUE(cluster.collectives.links.empty());
  const auto read = ParseCluster(ToToml(cluster), "c.toml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_NEAR(Links(*read).Rate(0, 4) / links.Rate(0, 4), 1, 1e-9);
}

std::vector<std::set<std::string>> RoomsOfStages(const Plan& plan) {
  std::vector<std::set<std::string>> rooms;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (const StagePlan& stage : pipeline.stages) {
      std::set<std::string>& of_stage = rooms.emplace_back();
      for (const UnitPlan& unit : stage.units) {
        for (const RankPlan& rank : unit.ranks) of_stage.insert(rank.device.value().substr(0, 1));
      }
    }
  }
  return rooms;
}

TEST(MeasuredLinks, GroupsDoNotCrossTheSlowLink) {
  for (const char* strategy : {"zorse", "auto"}) {
    PlannerInput input = Rooms(SmallModel(true, 8));
    input.config.planner.strategy = strategy;
    const auto result = MakePlan(input);
    ASSERT_TRUE(result.ok()) << result.status();
    const std::vector<std::set<std::string>> rooms = RoomsOfStages(result->plan);
    EXPECT_GT(rooms.size(), 1u) << strategy;
    for (const std::set<std::string>& of_stage : rooms)
      EXPECT_EQ(of_stage.size(), 1u) << strategy << "\n" << ToText(result->plan);
  }
}

TEST(MeasuredLinks, ADeviceAloneHasItsNetworkCard) {
  PlannerInput input = MakeInput(SmallModel(), {{"a/gpu0", "L4"}, {"b/gpu0", "L4"}, {"c/gpu0", "L4"}}, 8);
  Measure(
      &input, [](int a, int b) { return std::max(a, b) == 2 ? 1e8 : 1e9; }, [](int, int) { return 1e-4; });
  const Cluster cluster = Described(input).cluster;
  EXPECT_NEAR(cluster.nodes[0].device_link_bytes_per_second, 1e9, 1);
  EXPECT_NEAR(cluster.nodes[0].nic_bytes_per_second, 1e9, 1);
  EXPECT_NEAR(cluster.nodes[2].nic_bytes_per_second, 1e8, 1);
  EXPECT_TRUE(cluster.node_bytes_per_second.empty()) << "the slow node's NIC says it";
}

TEST(MeasuredLinks, OneNodeHasItsDevicesLinks) {
  PlannerInput input = MakeInput(SmallModel(), {{"a/gpu0", "L4"}, {"a/gpu1", "L4"}, {"a/gpu2", "L4"}}, 8);
  Measure(
      &input, [](int, int) { return 3e9; }, [](int, int) { return 5e-6; });
  const Cluster cluster = Described(input).cluster;
  EXPECT_NEAR(Links(cluster).Rate(0, 2), 3e9, 1);
  EXPECT_NEAR(cluster.nodes[0].device_link_latency_seconds, 5e-6, 1e-12);
}

// Four cards of one node: by NVLink 0 and 1, 2 and 3; through the host's memory the others.
TEST(MeasuredLinks, DevicesOfANodeHaveTheirClassesRates) {
  PlannerInput input = MakeInput(SmallModel(), {{"a/gpu0", "L4"}, {"a/gpu1", "L4"}, {"a/gpu2", "L4"}, {"a/gpu3", "L4"}}, 8);
  for (int d = 0; d < 4; ++d) {
    input.devices[d].card.bus = "bus" + std::to_string(d);
    input.devices[d].card.nvlink_peers = {"bus" + std::to_string(d ^ 1)};
  }
  const auto both_ways = [&](int a, int b, double rate, double latency) {
    input.collectives.links.push_back({a, b, latency, rate});
    input.collectives.links.push_back({b, a, latency, rate});
  };
  both_ways(0, 1, 100e9, 5e-6);
  both_ways(2, 3, 98e9, 5e-6);
  both_ways(0, 2, 9e9, 2e-5);
  both_ways(1, 3, 8e9, 2e-5);
  const Cluster cluster = Described(input).cluster;
  const Links links(cluster);
  EXPECT_NEAR(links.Rate(0, 1), 98e9, 1);
  EXPECT_NEAR(links.Rate(3, 2), 98e9, 1);
  EXPECT_NEAR(links.Rate(0, 3), 8e9, 1) << "of its class, though it was not measured itself";
  EXPECT_NEAR(links.PointToPoint(1, 2, 1).latency_seconds, 2e-5, 1e-12);
  EXPECT_THAT(cluster.notes,
              Contains(HasSubstr("inside nodes by NVLink 98 to 98 GB/s, inside nodes by host memory 8 to 8 GB/s")));
  const auto read = ParseCluster(ToToml(cluster), "c.toml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_NEAR(Links(*read).Rate(0, 3), 8e9, 1);
  // Classes that measure alike are one.
  for (MeasuredLink& link : input.collectives.links) link.bytes_per_second = 9e9 + 1e8 * link.from;
  EXPECT_TRUE(Described(input).cluster.nodes[0].slow_pairs.empty());
}

TEST(MeasuredLinks, DeclaredLinksStand) {
  PlannerInput input = Rooms();
  for (DeviceDescription& device : input.devices) {
    device.link_bytes_per_second = kInside;
    device.node_link_bytes_per_second = kBetweenRooms;
  }
  PlannerInput without = input;
  without.collectives.links.clear();
  // Everything is as fast as declared or faster: not a word changes.
  EXPECT_EQ(ToToml(Described(input).cluster), ToToml(Described(without).cluster));
  // The slowest link is named, and changes nothing but that.
  for (MeasuredLink& link : input.collectives.links) {
    if (link.from == 2 && link.to == 6) link.bytes_per_second = 0.4 * kBetweenRooms;
  }
  Cluster cluster = Described(input).cluster;
  EXPECT_THAT(cluster.notes,
              Contains(HasSubstr("the link from a2/gpu0 to b2/gpu0 measures 0.0008 GB/s, 0.40 of what is declared")));
  std::erase_if(cluster.notes, [](const std::string& note) { return note.find("of what is declared") != std::string::npos; });
  EXPECT_EQ(ToToml(cluster), ToToml(Described(without).cluster));
}

TEST(MeasuredLinks, NodesThatDeclareNothingAreMeasuredBesideThoseThatDo) {
  PlannerInput input = Rooms();
  for (size_t d = 0; d < 4; ++d) {
    input.devices[d].link_bytes_per_second = 5e9;
    input.devices[d].node_link_bytes_per_second = 4e9;
  }
  const Cluster cluster = Described(input).cluster;
  EXPECT_EQ(cluster.nodes[0].device_link_bytes_per_second, 5e9);
  EXPECT_EQ(cluster.nodes[0].nic_bytes_per_second, 4e9);
  EXPECT_NEAR(cluster.nodes[2].device_link_bytes_per_second, kInside, 0.05 * kInside);
  EXPECT_NEAR(Links(cluster).Rate(0, 4), kBetweenRooms, 0.05 * kBetweenRooms);
}

TEST(MeasuredLinks, AnOldProfileHasNone) {
  PlannerInput input = Rooms();
  input.collectives.links.clear();
  const Cluster cluster = Described(input).cluster;
  EXPECT_EQ(Links(cluster).Rate(0, 1), Links(cluster).Rate(0, 4)) << "one ring cannot tell its links apart";
  input = Rooms();
  input.collectives.devices.pop_back();
  input.collectives.links.resize(2);
  EXPECT_EQ(ToToml(Described(input).cluster), ToToml(cluster)) << "links of other devices";
}

TEST(MeasuredLinks, LinksThatMakeNoSenseAreNamed) {
  for (const MeasuredLink& bad : {MeasuredLink{0, 8, 0, 1e9}, MeasuredLink{-1, 1, 0, 1e9}, MeasuredLink{3, 3, 0, 1e9},
                                  MeasuredLink{0, 1, 0, 0}, MeasuredLink{0, 1, -1, 1e9}}) {
    PlannerInput input = Rooms();
    input.collectives.links.push_back(bad);
    const absl::Status status = DescribeLive(input).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), HasSubstr("profile the collectives again"));
  }
}

}  // namespace
}  // namespace motley::planner
