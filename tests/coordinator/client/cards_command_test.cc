// motley cards: the device table, as a listing and one card at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/device/device_table.h"
#include "nlohmann/json.hpp"
#include "planner/cluster/cluster_file.h"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Lines(const std::string& text) { return absl::StrSplit(text, '\n'); }

Ran Cards(std::vector<std::string> arguments, size_t width = 0) {
  arguments.insert(arguments.begin(), "cards");
  return MotleyAlone(std::move(arguments), Screen{.width = width});
}

TEST(CardsCommandTest, LongErrorsAreFoldedOnATerminal) {
  std::ostringstream out, err;
  EXPECT_EQ(RunCli({"cards", "toaster"}, out, err, {}, Screen{.error_width = 80}), 66);
  EXPECT_GT(err.str().size(), 200u);
  std::istringstream lines(err.str());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  std::ostringstream whole;
  RunCli({"cards", "toaster"}, out, whole, {}, Screen{});
  const std::string text = whole.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << "what is piped stays one line";
}

TEST(Cards, ListsTheWholeTable) {
  const Ran ran = Cards({});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("CARD "), HasSubstr("TFLOP/s"), HasSubstr("one direction")));
  for (const GpuSpec& gpu : GpuTable())
    EXPECT_THAT(ran.out, HasSubstr(absl::StrCat("\n", std::string(gpu.name), " "))) << gpu.name;
  for (const std::string& line : Lines(ran.out)) {
    if (line.starts_with("V100-16GB ")) {
      EXPECT_THAT(line, AllOf(HasSubstr(" 14.1 "), HasSubstr(" - "), HasSubstr("16 GiB")));
    }
  }
}

TEST(Cards, RowsFitATerminal) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{}, {"MI250"}, {"RTX 4000 Ada"}}) {
    const Ran ran = Cards(arguments, 80);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, Not(HasSubstr("..."))) << "nothing is cut";
    for (const std::string& line : Lines(ran.out)) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(Cards, ShowsOneWithItsSource) {
  const Ran ran = Cards({"NVIDIA RTX A5000"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::StartsWith("A5000\n"));
  EXPECT_THAT(ran.out, AllOf(HasSubstr("111.1 TFLOP/s"), HasSubstr("24 GiB at 768 GB/s"), HasSubstr("RTX A5000 data sheet")));
  const Ran old = Cards({"P40"});
  EXPECT_THAT(old.out, HasSubstr("fp16    none\n"));
  EXPECT_THAT(Cards({"H100"}).out, AllOf(HasSubstr("450 GB/s"), HasSubstr("host    63 GB/s"), Not(HasSubstr("peers "))));
  EXPECT_THAT(Cards({"4090"}).out, AllOf(HasSubstr("peers   through the host's memory"), HasSubstr("reaches 0.9 of the halved")));
}

TEST(Cards, ItsLinesCanBeUsed) {
  const json card = json::parse(Cards({"mi250", "-o", "json"}).out);
  const std::string in_cluster = card["cluster_file"], in_worker = card["worker_file"];
  EXPECT_THAT(Cards({"mi250"}).out, AllOf(HasSubstr(in_cluster), HasSubstr(in_worker)));
  const auto cluster = planner::ParseCluster(absl::StrCat("[[node]]\n", in_cluster, "\n"), "c.toml");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->kinds[0].name, "MI250-GCD");
}

TEST(Cards, JsonHasBaseUnits) {
  const json cards = json::parse(Cards({"-o", "json"}).out)["cards"];
  EXPECT_EQ(cards.size(), GpuTable().size());
  const json v100 = json::parse(Cards({"V100", "--json"}).out);
  EXPECT_EQ(v100["name"], "V100-16GB");
  EXPECT_DOUBLE_EQ(v100["fp32_flops"].get<double>(), 14.1e12);
  EXPECT_TRUE(v100["bf16_flops"].is_null());
  EXPECT_EQ(v100["memory_bytes"], int64_t{16} << 30);
  EXPECT_EQ(v100["memory_bytes_per_second"], 900e9);
  EXPECT_EQ(v100["link_bytes_per_second"], 150e9);
  EXPECT_EQ(v100["pcie_bytes_per_second"], 15.75e9);
  EXPECT_FALSE(v100["source"].get<std::string>().empty());
  EXPECT_EQ(v100["family"], "other");
  EXPECT_EQ(v100["matrix_part"], 0.52);
  EXPECT_EQ(v100["peer_access"], true);
  for (const json& card : cards) {
    if (card["name"] != "V100-16GB") continue;
    for (const auto& [key, value] : card.items()) EXPECT_EQ(v100[key], value) << key;
  }
}

TEST(Cards, AnUnknownNameIs66WithTheNearest) {
  const Ran ran = Cards({"A600"});
  EXPECT_EQ(ran.code, 66);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr("did you mean 'A6000'?"));
  EXPECT_THAT(Cards({"Tesla M40 24GB"}).out, HasSubstr("memory  22.5 GiB at 288 GB/s"));
  const Ran lacking = Cards({"NVIDIA GB10"});
  EXPECT_EQ(lacking.code, 66);
  EXPECT_THAT(lacking.err, testing::AllOf(testing::Not(HasSubstr("did you mean")), HasSubstr("a cluster file's [[card]]")));
  EXPECT_EQ(Cards({"A100", "H100"}).code, 64) << "one at a time";
}

}  // namespace
}  // namespace motley::client
