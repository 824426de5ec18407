#include "planner/cluster/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/job/job.h"
#include "tests/common/base/temp_folder.h"
#include "tests/planner/cluster/parsed_cluster.h"

namespace motley::planner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& toml) {
  const absl::Status status = ParseCluster(toml, "c.toml").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << toml;
  return std::string(status.message());
}

constexpr char kTwo[] = R"(
[defaults]
nic_gbit_per_second = 50

[[node]]
name = "n1"
gpus = [{card = "A6000", count = 2}, "L4"]

[[node]]
name = "n2"
gpus = ["p40"]
)";

TEST(ClusterFile, DefaultsComeFromTheDeviceTable) {
  const Cluster cluster = Parsed(kTwo);
  ASSERT_EQ(cluster.devices.size(), 4u);
  EXPECT_EQ(cluster.devices[2].id, DeviceId("n1/gpu2"));
  EXPECT_EQ(cluster.devices[3].id, DeviceId("n2/gpu0"));
  ASSERT_EQ(cluster.kinds.size(), 3u);
  EXPECT_EQ(cluster.kinds[0].name, "A6000");
  EXPECT_EQ(cluster.kinds[2].name, "P40");
  EXPECT_EQ(cluster.kinds[0].memory_bytes, int64_t{48} << 30);
  EXPECT_DOUBLE_EQ(cluster.nodes[0].device_link_bytes_per_second, 31.5e9);   // PCIe 4
  EXPECT_DOUBLE_EQ(cluster.nodes[1].device_link_bytes_per_second, 15.75e9);  // PCIe 3
  EXPECT_DOUBLE_EQ(cluster.nodes[0].host_link_bytes_per_second, 31.5e9);
  EXPECT_DOUBLE_EQ(cluster.nodes[0].nic_bytes_per_second, 6.25e9);
  EXPECT_EQ(cluster.nodes[0].host_memory_bytes, 0);
  EXPECT_EQ(cluster.name, "c.toml");
  EXPECT_EQ(cluster.regions.size(), 1u);
  EXPECT_DOUBLE_EQ(cluster.usable_memory, 1 - PlannerSection().memory_reserve) << "a job's";
}

TEST(ClusterFile, EveryKey) {
  const Cluster cluster = Parsed(R"(
name = "lab"
notes = ["one"]
overlap_efficiency = 0.9
collective_efficiency = 0.8
usable_memory = 0.85

[defaults]
nic_gb_per_second = 12.5
nic_latency_us = 30

[[card]]
name = "mine"
fp32_tflops = 10
fp16_tflops = 20
memory_gib = 8
memory_gb_per_second = 300
link_gb_per_second = 16

[[card]]
name = "small A6000"
like = "A6000"
memory_gib = 24

[[node]]
name = "n"
count = 2
region = "east"
gpus = [{card = "mine", count = 4}]
device_link_gb_per_second = 20
device_link_latency_us = 7
host_link_gb_per_second = 10
host_memory_gib = 256
pcie_roots = [[0, 1], [2, 3]]
usd_per_hour = 1.5

[[node]]
name = "west"
region = "west"
gpus = ["small A6000"]
nic_gbit_per_second = 10

[[link]]
nodes = ["n1", "west"]
gbit_per_second = 5
latency_us = 40

[[region_link]]
regions = ["east", "west"]
gb_per_second = 0.25
latency_us = 20000
)");
  EXPECT_EQ(cluster.name, "lab");
  EXPECT_EQ(cluster.notes, std::vector<std::string>{"one"});
  EXPECT_DOUBLE_EQ(cluster.overlap_efficiency, 0.9);
  EXPECT_DOUBLE_EQ(cluster.collective_efficiency, 0.8);
  EXPECT_DOUBLE_EQ(cluster.usable_memory, 0.85);
  ASSERT_EQ(cluster.nodes.size(), 3u);
  const ClusterNode& second = cluster.nodes[1];
  EXPECT_EQ(second.name, NodeName("n2"));
  EXPECT_EQ(second.pcie_roots, (std::vector<std::vector<int>>{{4, 5}, {6, 7}}));
  EXPECT_DOUBLE_EQ(second.device_link_bytes_per_second, 20e9);
  EXPECT_DOUBLE_EQ(second.device_link_latency_seconds, 7e-6);
  EXPECT_DOUBLE_EQ(second.nic_latency_seconds, 30e-6);
  EXPECT_DOUBLE_EQ(second.host_link_bytes_per_second, 10e9);
  EXPECT_EQ(second.host_memory_bytes, int64_t{256} << 30);
  EXPECT_DOUBLE_EQ(cluster.price_per_hour(), 3);
  EXPECT_DOUBLE_EQ(cluster.nodes[2].nic_bytes_per_second, 1.25e9);
  EXPECT_EQ(cluster.kinds[1].memory_bytes, int64_t{24} << 30);
  EXPECT_DOUBLE_EQ(cluster.kinds[1].fp32_flops, 38.7e12);
  EXPECT_DOUBLE_EQ(cluster.FlopsPerSecond(0, DType::kFloat16), 20e12);
  EXPECT_DOUBLE_EQ(cluster.FlopsPerSecond(0, DType::kBFloat16), 10e12);  // has no such unit
  EXPECT_DOUBLE_EQ(cluster.node_bytes_per_second[0][2], 0.625e9);
  EXPECT_DOUBLE_EQ(cluster.node_bytes_per_second[2][0], 0.625e9);
  EXPECT_DOUBLE_EQ(cluster.node_bytes_per_second[1][2], 0);
  EXPECT_DOUBLE_EQ(cluster.node_latency_seconds[0][2], 40e-6);
  EXPECT_DOUBLE_EQ(cluster.region_bytes_per_second[1][0], 0.25e9);
  EXPECT_DOUBLE_EQ(cluster.region_latency_seconds[0][1], 0.02);
}

TEST(ClusterFile, Matrix) {
  const Cluster cluster = Parsed(std::string(kTwo) + R"(
[matrix]
nodes = ["n2", "n1"]
gbit_per_second = [[0, 8],
                   [8, 0]]
latency_us = [[0, 50], [50, 0]]
)");
  EXPECT_DOUBLE_EQ(cluster.node_bytes_per_second[0][1], 1e9);
  EXPECT_DOUBLE_EQ(cluster.node_latency_seconds[1][0], 50e-6);
}

TEST(ClusterFile, CopiesOfANodeAreNumbered) {
  EXPECT_EQ(Parsed("[[node]]\nname = \"t4\"\ngpus = [\"T4\"]\ncount = 1\n").nodes[0].name, NodeName("t4-1"));
  EXPECT_EQ(Parsed("[[node]]\ngpus = [\"T4\"]\n").nodes[0].name, NodeName("n1"));
}

// Where the file is wrong: file, line, key and remedy.
TEST(ClusterFile, ErrorsNameFileLineKeyAndRemedy) {
  EXPECT_THAT(ErrorOf("[[node]]\nname = \"n1\"\ngpus = [\"A600\"]\n"),
              HasSubstr("c.toml:3: node.gpus: GPU model 'A600' is not in the device "
                        "table; did you mean 'A6000'?"));
  EXPECT_THAT(ErrorOf("[[node]]\ngpus = [\"T4\"]\nnic_gbps = 5\n"),
              HasSubstr("c.toml:3: node.nic_gbps: unknown key; did you mean 'nic_gbit_per_second'?"));
  EXPECT_THAT(ErrorOf("[[node]]\ngpus = [\"T4\"]\nnic_gbyte_per_second = 5\n"),
              HasSubstr("node.nic_gbyte_per_second: unknown key; did you mean 'nic_gb_per_second'?"));
  EXPECT_THAT(ErrorOf("[[node]]\ngpus = [\"T4\"]\nhost_memory_gb = 5\n"), HasSubstr("did you mean 'host_memory_gib'?"));
  EXPECT_THAT(ErrorOf("[[nodes]]\ngpus = [\"T4\"]\n"), HasSubstr("c.toml:1: nodes: unknown key; did you mean 'node'?"));
  EXPECT_THAT(ErrorOf("[[node]]\ngpus = [{card = \"T4\", cont = 2}]\n"),
              HasSubstr("gpus.cont: unknown key; did you mean 'count'?"));
  EXPECT_THAT(ErrorOf("[[node]\n"), HasSubstr("c.toml:1: not TOML"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("c.toml:1: node: the file has no node; add [[node]]"));
}

TEST(ClusterFile, NumbersThatMakeNoSense) {
  const auto node = [](const std::string& line) { return "[[node]]\ngpus = [\"T4\"]\n" + line + "\n"; };
  for (const char* value : {"0", "-5", "nan", "inf", "200000", "\"50\"", "true"}) {
    EXPECT_THAT(ErrorOf(node(std::string("nic_gbit_per_second = ") + value)), HasSubstr("c.toml:3: node.nic_gbit_per_second"))
        << value;
  }
  // 25 TB/s
  EXPECT_THAT(ErrorOf(node("nic_gb_per_second = 25000")),
              HasSubstr("is 25000, but must lie between 1e-06 and 2000; is it in this unit?"));
  EXPECT_THAT(ErrorOf(node("device_link_gb_per_second = -1")), HasSubstr("device_link_gb_per_second"));
  EXPECT_THAT(ErrorOf(node("nic_latency_us = -1")), HasSubstr("nic_latency_us"));
  EXPECT_THAT(ErrorOf(node("host_memory_gib = 0")), HasSubstr("host_memory_gib"));
  EXPECT_THAT(ErrorOf(node("usd_per_hour = -3")), HasSubstr("usd_per_hour"));
  EXPECT_THAT(ErrorOf("[[card]]\nname = \"x\"\nlike = \"L4\"\nlaunches_ahead = 1\n" + node("")),
              HasSubstr("c.toml:4: card.launches_ahead: must be true or false"));
  EXPECT_THAT(ErrorOf(node("count = 0")), HasSubstr("node.count: must be a whole number from 1"));
  EXPECT_THAT(ErrorOf(node("nic_gb_per_second = 1\nnic_gbit_per_second = 8")), HasSubstr("says the same as"));
  EXPECT_THAT(ErrorOf("usable_memory = 80\n" + node("")), HasSubstr("usable_memory"));
  EXPECT_THAT(ErrorOf("collective_efficiency = 0\n" + node("")), HasSubstr("collective_efficiency"));
  EXPECT_THAT(ErrorOf("overlap_efficiency = nan\n" + node("")), HasSubstr("overlap_efficiency"));
}

TEST(ClusterFile, CardsOfOnesOwn) {
  const std::string use = "[[node]]\ngpus = [\"mine\"]\n";
  EXPECT_THAT(ErrorOf("[[card]]\nname = \"mine\"\nfp32_tflops = 10\n" + use),
              AllOf(HasSubstr("card.memory_gib: is missing"), HasSubstr("card.link_gb_per_second: is missing")));
  const std::string whole = "[[card]]\nname = \"mine\"\nfp32_tflops = 10\nmemory_gib = 8\nmemory_gb_per_second = 300\n";
  const Cluster pcie = Parsed(whole + "pcie_gb_per_second = 12\n" + use);
  EXPECT_EQ(pcie.nodes[0].device_link_bytes_per_second, 12e9) << "PCIe stands for the link";
  EXPECT_EQ(pcie.nodes[0].host_link_bytes_per_second, 12e9);
  EXPECT_EQ(Parsed(whole + "link_gb_per_second = 20\npcie_gb_per_second = 12\n" + use).nodes[0].device_link_bytes_per_second,
            20e9);
  EXPECT_THAT(ErrorOf("[[card]]\nname = \"mine\"\nlike = \"A7000\"\n" + use), HasSubstr("card.like: GPU model 'A7000'"));
  EXPECT_THAT(ErrorOf("[[card]]\nname = \"mine\"\nlike = \"T4\"\nmemory_gib = 0\n" + use), HasSubstr("card.memory_gib"));
  EXPECT_THAT(ErrorOf("[[card]]\nname = \"mine\"\nlike = \"T4\"\nfp32_tflops = 1e9\n" + use), HasSubstr("card.fp32_tflops"));
  EXPECT_THAT(ErrorOf("[[card]]\nname = \"mine\"\nlike = \"T4\"\n[[card]]\nname = \"mine\"\nlike = \"L4\"\n" + use),
              HasSubstr("card 'mine' is there twice"));
}

TEST(ClusterFile, PartsOfACard) {
  const std::string use = "[[node]]\ngpus = [\"mine\"]\n", like = "[[card]]\nname = \"mine\"\nlike = \"RTX-4090\"\n";
  EXPECT_EQ(Parsed(like + use).kinds[0].parts, RowOf(CardFamily::kGeForceRtx).parts);
  const CardParts own =
      Parsed(like + "matrix_part = 0.7\nattention_part = 0.3\nattention_tokens = 99\nmemory_part = 0.6\ndeviation = 0.1\n" + use)
          .kinds[0]
          .parts;
  EXPECT_EQ(own, (CardParts{.matrix = 0.7, .attention = 0.3, .attention_tokens = 99, .memory = 0.6, .deviation = 0.1}));
  for (const char* key : {"matrix_part", "attention_part", "memory_part"}) {
    for (const char* value : {"0", "1.01", "90", "-0.5", "nan"}) {
      EXPECT_THAT(ErrorOf(like + key + " = " + value + "\n" + use),
                  HasSubstr(std::string("c.toml:4: card.") + key + ": is " + value + ", but must lie between 0.001 and 1"));
    }
  }
}

// Rates of a data sheet are those of a stream; collectives reach a part of them, and boards without peer access a quarter.
TEST(ClusterFile, LinksOfTheDataSheetByTier) {
  const auto node = [](const std::string& card, const std::string& more = "") {
    return Parsed(more.starts_with("[") || more.find("efficiency") != std::string::npos
                      ? more + "[[node]]\ngpus = [{card = \"" + card + "\", count = 2}]\n"
                      : "[[node]]\ngpus = [{card = \"" + card + "\", count = 2}]\n" + more)
        .nodes[0];
  };
  EXPECT_EQ(node("A100").device_link_bytes_per_second, 300e9);
  EXPECT_LT(node("A100").collective_part, 1);
  EXPECT_LT(node("A100").hidden_part, 1);
  EXPECT_EQ(node("L4").device_link_bytes_per_second, 31.5e9);
  EXPECT_EQ(node("L4").collective_part, 1) << "no run of such cards was compared";
  EXPECT_EQ(node("L4").hidden_part, 1);
  EXPECT_EQ(node("V100").collective_part, 1) << "likewise, with NVLink";
  EXPECT_EQ(node("V100").hidden_part, 1);
  EXPECT_EQ(node("RTX-4090").device_link_bytes_per_second, 31.5e9 / 4) << "through the host's memory";
  EXPECT_EQ(Parsed("[[node]]\ngpus = [\"RTX-4090\"]\n").nodes[0].device_link_bytes_per_second, 31.5e9) << "to the network alone";
  EXPECT_EQ(node("RTX-4090").collective_part, 1);
  EXPECT_LT(node("RTX-4090").hidden_part, 1);
  EXPECT_EQ(node("RTX-4090").host_link_bytes_per_second, 31.5e9);
  EXPECT_EQ(node("bridged", "[[card]]\nname = \"bridged\"\nlike = \"RTX-3090\"\nlink_gb_per_second = 56\n")
                .device_link_bytes_per_second,
            56e9)
      << "a bridge";
  // What the file says of a link is taken as it is.
  const ClusterNode given = node("RTX-4090", "device_link_gb_per_second = 20\n");
  EXPECT_EQ(given.device_link_bytes_per_second, 20e9);
  EXPECT_EQ(given.collective_part, 1);
  EXPECT_EQ(given.hidden_part, 1);
  const ClusterNode parts = node("A100", "collective_part = 0.9\nhidden_part = 0.1\n");
  EXPECT_EQ(parts.collective_part, 0.9);
  EXPECT_EQ(parts.hidden_part, 0.1);
  EXPECT_EQ(node("A100", "overlap_efficiency = 1\n").hidden_part, 1);
  EXPECT_LT(node("A100", "overlap_efficiency = 1\n").collective_part, 1);
  EXPECT_EQ(node("A100", "collective_efficiency = 0.9\n").collective_part, 1);
  EXPECT_THAT(ErrorOf("[[node]]\ngpus = [\"T4\"]\ncollective_part = 0\n"), HasSubstr("c.toml:3: node.collective_part: is 0"));
  EXPECT_THAT(ErrorOf("[[node]]\ngpus = [\"T4\"]\nhidden_part = 2\n"), HasSubstr("c.toml:3: node.hidden_part: is 2"));
}

TEST(ClusterFile, ANicIsANodesOrACards) {
  const auto nic = [](const std::string& line, const std::string& defaults = "") {
    return Parsed((defaults.empty() ? "" : "[defaults]\n" + defaults + "\n") +
                  "[[node]]\ngpus = [{card = \"H100\", count = 4}]\n" + line + "\n")
        .nodes[0]
        .nic_bytes_per_second;
  };
  EXPECT_EQ(nic("nic_gbit_per_second = 400"), 50e9);
  EXPECT_EQ(nic("node_nic_gbit_per_second = 400"), 50e9);
  EXPECT_EQ(nic("card_nic_gbit_per_second = 400"), 200e9);
  EXPECT_EQ(nic("card_nic_gb_per_second = 50"), 200e9);
  EXPECT_EQ(nic("", "card_nic_gbit_per_second = 100"), 50e9);
  EXPECT_EQ(nic("node_nic_gb_per_second = 3", "card_nic_gbit_per_second = 100"), 3e9) << "the node's own";
  EXPECT_EQ(nic("card_nic_gb_per_second = 3", "nic_gbit_per_second = 100"), 12e9);
  const std::string node = "[[node]]\ngpus = [\"H100\"]\n";
  EXPECT_THAT(
      ErrorOf(node + "card_nic_gbit_per_second = 3200\n"),
      HasSubstr("c.toml:3: node.card_nic_gbit_per_second: is 3200 Gbit/s for each card, and no card's NIC has more than 800; is "
                "it the node's sum? Then it is node_nic_gbit_per_second"));
  EXPECT_THAT(ErrorOf(node + "card_nic_gb_per_second = 400\n"), HasSubstr("node.card_nic_gb_per_second: is 3200 Gbit/s"));
  EXPECT_THAT(ErrorOf("[defaults]\ncard_nic_gbit_per_second = 3200\n" + node), HasSubstr("c.toml:2: defaults.card_nic"));
  EXPECT_THAT(ErrorOf(node + "nic_gbit_per_second = 100\ncard_nic_gbit_per_second = 100\n"), HasSubstr("leave one of them out"));
  EXPECT_THAT(ErrorOf(node + "nic_gbit_per_second = 100\nnode_nic_gbit_per_second = 100\n"), HasSubstr("says the same as"));
  EXPECT_THAT(ErrorOf(node + node), HasSubstr("card_nic_gbit_per_second for each card")) << "nodes without a network";
}

TEST(ClusterFile, NodesMustReachEachOther) {
  EXPECT_THAT(
      ErrorOf("[[node]]\nname = \"a\"\ngpus = [\"T4\"]\n[[node]]\nname = \"b\"\ngpus = [\"T4\"]\nnic_gb_per_second = 1\n"),
      HasSubstr("c.toml:1: node.nic_gbit_per_second: no link between nodes 'a' and 'b'; give"));
  const std::string many = ErrorOf("[[node]]\nname = \"a\"\ncount = 64\ngpus = [\"T4\"]\n");
  EXPECT_THAT(many, HasSubstr("no link between nodes 'a1' and 'a2'; give"));
  EXPECT_EQ(std::count(many.begin(), many.end(), '\n'), 0) << "a section says it once: " << many;
  EXPECT_EQ(Parsed("[[node]]\nname = \"a\"\ngpus = [\"T4\"]\n[[node]]\nname = \"b\"\ngpus = [\"T4\"]\n"
                   "[[link]]\nnodes = [\"a\", \"b\"]\ngb_per_second = 1\n")
                .nodes.size(),
            2u);
}

TEST(ClusterFile, LinksAndMatricesThatAreWrong) {
  const std::string two = kTwo;
  EXPECT_THAT(ErrorOf(two + "[[link]]\nnodes = [\"n1\", \"n3\"]\ngb_per_second = 1\n"),
              HasSubstr("link.nodes: there is no 'n3'; did you mean 'n1'?"));
  EXPECT_THAT(ErrorOf(two + "[[link]]\nnodes = [\"n1\", \"n1\"]\ngb_per_second = 1\n"),
              HasSubstr("must name two different ones"));
  EXPECT_THAT(ErrorOf(two + "[[link]]\nnodes = [\"n1\", \"n2\"]\n"), HasSubstr("is missing"));
  EXPECT_THAT(
      ErrorOf(two +
              "[[link]]\nnodes = [\"n1\", \"n2\"]\ngb_per_second = 1\n[[link]]\nnodes = [\"n2\", \"n1\"]\ngb_per_second = 2\n"),
      HasSubstr("given before with another number"));
  EXPECT_THAT(ErrorOf(two + "[matrix]\ngbit_per_second = [[0, 8], [9, 0]]\n"),
              HasSubstr("c.toml:13: matrix.gbit_per_second: is not symmetric: n1 to n2 is 8, back it is 9; give the slower of "
                        "the two both ways"));
  EXPECT_THAT(ErrorOf(two + "[matrix]\ngbit_per_second = [[0, 8]]\n"), HasSubstr("has 1 rows for 2 nodes"));
  EXPECT_THAT(ErrorOf(two + "[matrix]\ngbit_per_second = [[0], [8, 0]]\n"), HasSubstr("row 1 has 1 numbers for 2 nodes"));
  EXPECT_THAT(ErrorOf(two + "[matrix]\ngbit_per_second = [[0, nan], [8, 0]]\n"), HasSubstr("row 1, column 2"));
  EXPECT_THAT(ErrorOf(two + "[[region_link]]\nregions = [\"x\", \"y\"]\ngb_per_second = 1\n"),
              HasSubstr("region_link.regions: there is no 'x'"));
}

TEST(ClusterFile, NamesThatClash) {
  EXPECT_THAT(ErrorOf("[defaults]\nnic_gb_per_second = 1\n[[node]]\nname = \"n1\"\ngpus = [\"T4\"]\n[[node]]\nname = "
                      "\"n1\"\ngpus = [\"T4\"]\n"),
              HasSubstr("two nodes have this name"));
  // Without NICs too: the link that n1 lacks to n1 is not the matter.
  const std::string twins = ErrorOf("[[node]]\nname = \"n1\"\ngpus = [\"T4\"]\n[[node]]\nname = \"n1\"\ngpus = [\"T4\"]\n");
  EXPECT_THAT(twins, HasSubstr("c.toml:4: node.name: node 'n1': two nodes have this name; give each its own"));
  EXPECT_THAT(twins, Not(HasSubstr("no link")));
  for (const char* name : {"a/b", "a b", "a,b"}) {
    EXPECT_THAT(ErrorOf(std::string("[[node]]\nname = \"") + name + "\"\ngpus = [\"T4\"]\n"),
                HasSubstr("may have letters, digits"));
  }
  EXPECT_THAT(ErrorOf("[[node]]\ngpus = [\"T4\"]\npcie_roots = [[0, 1]]\n"), HasSubstr("has no gpu1"));
  EXPECT_THAT(ErrorOf("[[node]]\ngpus = [\"T4\"]\npcie_roots = [[0], [0]]\n"), HasSubstr("twice"));
}

TEST(ClusterFile, LinksOfTwoDevices) {
  const std::string nodes =
      "[defaults]\nnic_gb_per_second = 1\n[[node]]\nname = \"a\"\ngpus = [\"T4\", \"T4\"]\n"
      "[[node]]\nname = \"b\"\ngpus = [\"T4\"]\n[[device_link]]\n";
  EXPECT_THAT(ErrorOf(nodes + "devices = [\"a/gpu0\", \"a/gpu1\"]\n"), HasSubstr("device_link.gb_per_second: is missing"));
  EXPECT_THAT(ErrorOf(nodes + "devices = [\"a/gpu0\", \"b/gpu0\"]\ngb_per_second = 1\n"), HasSubstr("are of two nodes"));
  EXPECT_THAT(ErrorOf(nodes + "devices = [\"a/gpu0\", \"a/gpu0\"]\ngb_per_second = 1\n"), HasSubstr("two different ones"));
  EXPECT_THAT(ErrorOf(nodes + "devices = [\"a/gpu0\", \"a/gpu1\"]\ngb_per_second = 1\n[[device_link]]\n"
                              "devices = [\"a/gpu1\", \"a/gpu0\"]\ngb_per_second = 2\n"),
              HasSubstr("this link was given before"));
}

// A slip in a count must not take all memory.
TEST(ClusterFile, HugeClustersAreRefused) {
  EXPECT_THAT(ErrorOf("[defaults]\nnic_gb_per_second = 1\n[[node]]\ncount = 12500\ngpus = [{card = \"T4\", count = 8}]\n"),
              HasSubstr("node.count: makes 100000 devices; at most 16384"));
  EXPECT_THAT(ErrorOf("[[node]]\ngpus = [{card = \"T4\", count = 9000000000000000000}]\n"),
              HasSubstr("gpus.count: must be a whole number"));
}

TEST(ClusterFile, ALongFileIsRefusedBeforeItIsRead) {
  const TempFolder folder;
  const std::string path = folder.path() + "/big.toml";
  { std::ofstream(path) << "name = \"big\"\n"; }
  std::filesystem::resize_file(path, uintmax_t{1} << 30);  // sparse
  EXPECT_THAT(std::string(LoadCluster(path).status().message()), HasSubstr("big.toml"));
  EXPECT_FALSE(ParseCluster(std::string(kLargestClusterFileBytes + 1, ' '), "c.toml").ok());
}

TEST(ClusterFile, AllProblemsAtOnce) {
  EXPECT_THAT(ErrorOf("usable_memory = 2\n[[node]]\ngpus = [\"T4\"]\ncount = 0\nnic_gbit_per_second = -1\n"),
              AllOf(HasSubstr("c.toml:1:"), HasSubstr("c.toml:4:"), HasSubstr("c.toml:5:")));
}

}  // namespace
}  // namespace motley::planner
