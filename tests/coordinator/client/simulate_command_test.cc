// motley simulate: plans that were written to files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/model/model.h"
#include "nlohmann/json.hpp"
#include "planner/plan/plan.h"
#include "planner/strategies/catalog.h"
#include "tests/coordinator/client/offline_fixture.h"

namespace motley::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST_F(OfflineTest, SimulatePricesAPlanThatWasWritten) {
  for (const char* strategy : {"cephalo", "even"}) {
    const std::string file = PlanFile("plan.json", strategy);
    const json written = json::parse(TempFolder::Read(file));
    const Ran ran = Run({"simulate", file, "--cluster", cluster_, "--model", model_, "-o", "json"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    const json priced = json::parse(ran.out);
    EXPECT_EQ(priced["predicted"], written["predicted"]) << "the same simulator";
    EXPECT_EQ(priced["pipelines"], written["pipelines"]);
    EXPECT_TRUE(priced["report"]["broken_rules"].empty());
  }
}

// Whose state it is stands in the file; what else is asked for, or stands there, changes no number.
TEST_F(OfflineTest, AFileHasOnePrice) {
  for (const bool published : {true, false}) {
    const json written = json::parse(
        Plan({"--strategy", "cephalo", "--dtype", "fp16", "--fidelity", published ? "published" : "tuned", "-o", "json"}).out);
    EXPECT_EQ(written["predicted"].contains("as_published"), published);
    json changed = written;
    changed["predicted"]["as_run"] = false;
    const auto seconds = [&](const json& plan, std::vector<std::string> more) {
      std::vector<std::string> all = {
          "simulate", folder_.Write("p.json", plan.dump()), "--cluster", cluster_, "--model", model_, "-o", "json"};
      all.insert(all.end(), more.begin(), more.end());
      const Ran ran = Run(all);
      EXPECT_EQ(ran.code, 0) << ran.err;
      return json::parse(ran.out)["predicted"]["step_seconds"].get<double>();
    };
    const auto expected = written["predicted"]["step_seconds"].get<double>();
    EXPECT_DOUBLE_EQ(seconds(written, {}), expected);
    EXPECT_DOUBLE_EQ(seconds(changed, {}), expected);
    EXPECT_DOUBLE_EQ(seconds(written, {"--no-runnable"}), expected);
    if (!published) EXPECT_DOUBLE_EQ(seconds(written, {"--runnable"}), expected);
  }
}

// It has its number all the same.
TEST_F(OfflineTest, APlanThatOffloadsIsPricedAndRuns) {
  json plan = json::parse(TempFolder::Read(PlanFile("plan.json", "even")));
  plan["pipelines"][0]["stages"][0]["units"][0]["ranks"][0]["offload"] = {"optimizer"};
  const std::string cluster = TempFolder::Read(cluster_);
  const std::string roomy =
      folder_.Write("roomy.toml", absl::StrReplaceAll(cluster, {{"[[node]]", "[[node]]\nhost_memory_gib = 64"}}));
  const Ran ran = Run({"simulate", folder_.Write("away.json", plan.dump()), "--cluster", roomy, "--model", model_});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("\nruns here: yes"));
}

TEST_F(OfflineTest, SimulateNamesTheRuleThatAPlanBreaks) {
  json plan = json::parse(TempFolder::Read(PlanFile("plan.json", "cephalo")));
  const auto simulate = [&](const json& changed, std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"simulate", folder_.Write("changed.json", changed.dump()), "--cluster", cluster_, "--model",
                                    model_};
    all.insert(all.end(), more.begin(), more.end());
    return Run(all);
  };
  json changed = plan;
  changed["pipelines"][0]["stages"][0]["units"][0]["ranks"][0]["shard_ratio"] = 0.999;
  Ran ran = simulate(changed);
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.err, HasSubstr("breaks a rule: pipeline 0 stage 0: the shard ratios add up to"));
  EXPECT_THAT(ran.out, HasSubstr(" a step, ")) << "priced all the same";
  changed = plan;
  changed["global_batch"] = 30;
  ran = simulate(changed);
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.err, HasSubstr("the ranks' microbatches add up to 24, the global batch is 30; priced with 24"));
  EXPECT_THAT(ran.out, HasSubstr(" a step, "));
  changed = plan;
  changed["pipelines"][0]["stages"][0]["ministages"] = {{0, 2}};
  ran = simulate(changed);
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.err, HasSubstr("ministages end before layer 3"));
  changed = plan;
  changed["pipelines"][0]["stages"][0]["units"][0]["ranks"][0]["device"] = "n7/gpu0";
  ran = simulate(changed);
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.err, HasSubstr("changed.json: plan: rank 0 (n7/gpu0): cluster mixed has no such device"));
  changed = plan;
  changed["schema_version"] = 6;
  ran = simulate(changed);
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.err, HasSubstr("schema_version 6 is not known"));
  ran = simulate(plan, {"--seq-len", "64"});
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.err, HasSubstr("the plan's is 128, --seq-len says 64"));
  EXPECT_EQ(simulate(plan, {"--dtype", "bf16"}).code, 65);
  EXPECT_EQ(simulate(plan, {"--dtype", "fp32"}).code, 0) << "another name of the same";
}

TEST_F(OfflineTest, APlanThatDoesNotFitIsPricedAllTheSame) {
  const std::string file = PlanFile("plan.json", "cephalo");
  const Ran ran = Run({"simulate", file, "--cluster", cluster_, "--model", model_, "--memory-reserve", "99.5%"});
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.err, HasSubstr("does not fit: n1/gpu0"));
  EXPECT_THAT(ran.out, HasSubstr(" a step, "));
}

TEST_F(OfflineTest, SimulateWarnsOfOtherCards) {
  const std::string plan = PlanFile("plan.json", "even");
  std::string other = kCluster;
  other.replace(other.find("mixed"), 5, "other");
  other.replace(other.find("A6000"), 5, "A100");
  const Ran ran = Run({"simulate", plan, "--cluster", folder_.Write("other.toml", other), "--model", model_, "-o", "json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("warning: plan says A6000 for n1/gpu0 and was made for mixed; here it is A100-40GB of other"));
  EXPECT_EQ(json::parse(ran.out)["report"]["warnings"].size(), 1u);
}

TEST_F(OfflineTest, PlanFilesThatAreNone) {
  EXPECT_THAT(Run({"simulate", folder_.Write("list", "[1]"), "--cluster", cluster_, "--model", model_}).err,
              HasSubstr("expected a JSON object"));
  const auto simulate = [&](const std::string& text) {
    return Run({"simulate", folder_.Write("p", text), "--cluster", cluster_, "--model", model_});
  };
  for (const char* text : {"", "{", "[1]", "{}", "nonsense", "plan x batch"}) EXPECT_EQ(simulate(text).code, 65) << text;
  EXPECT_THAT(simulate("nonsense").err, HasSubstr("p: plan: is not JSON"));
  const std::string huge = folder_ / "huge.json";
  std::ofstream(huge).close();
  std::filesystem::resize_file(huge, uintmax_t{1} << 30);  // sparse
  const Ran ran = Run({"simulate", huge, "--cluster", cluster_, "--model", model_});
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.err, HasSubstr("huge.json"));
  const Ran profile = Plan({"--profiles", huge});
  EXPECT_EQ(profile.code, 65);
  EXPECT_THAT(profile.err, HasSubstr("huge.json"));
}

// As it is printed, with what stands above it, and by itself; whichever command takes a plan.
TEST_F(OfflineTest, APlansTextIsNoPlanFile) {
  const std::string printed = Plan({"--strategy", "cephalo"}).out;
  const std::string file = PlanFile("plan.json", "cephalo");
  for (const std::string& text : {printed, printed.substr(printed.find("plan cephalo"))}) {
    const std::string path = folder_.Write("plan.txt", text);
    for (const auto& command : {std::vector<std::string>{"simulate", path}, {"plan", "diff", file, path}}) {
      const Ran ran = Run(command);
      EXPECT_EQ(ran.code, 65) << ran.out;
      EXPECT_EQ(ran.err, absl::StrCat("motley: ", path, ": this is a plan's text, which is for reading; write the plan as JSON: ",
                                      "`motley plan ... -o json > plan.json`\n"));
    }
  }
}

TEST_F(OfflineTest, NoTextIsReadBackSoNoneIsExact) {
  const Ran ran = Plan({"--exact"});
  EXPECT_EQ(ran.code, 64);
  EXPECT_THAT(ran.err,
              HasSubstr("'motley plan' has no option --exact: a plan's text is for reading; -o json has all of the plan"));
}

// The cluster's file has a name of its own, which is no path.
TEST_F(OfflineTest, SimulateFindsTheFilesThatThePlanCameFrom) {
  const std::string file = PlanFile("plan.json", "cephalo");
  const json written = json::parse(TempFolder::Read(file));
  EXPECT_EQ(written["cluster"], "mixed");
  EXPECT_EQ(written["cluster_file"], cluster_);
  const Ran ran = Run({"simulate", file, "-o", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["predicted"], written["predicted"]);
}

TEST_F(OfflineTest, SimulateLooksBesideThePlanForItsFiles) {
  json plan = json::parse(TempFolder::Read(PlanFile("plan.json", "cephalo")));
  plan["cluster_file"] = "mixed.toml";
  plan["model"] = "config.json";
  EXPECT_EQ(Run({"simulate", folder_.Write("moved.json", plan.dump())}).code, 0);
  plan["cluster_file"] = "gone.toml";
  const Ran ran = Run({"simulate", folder_.Write("moved.json", plan.dump())});
  EXPECT_EQ(ran.code, 66);
  EXPECT_THAT(ran.err, HasSubstr("moved.json: its cluster is mixed, read from gone.toml, which is neither here nor beside the "
                                 "plan; give it with --cluster\n"));
}

}  // namespace
}  // namespace motley::client
