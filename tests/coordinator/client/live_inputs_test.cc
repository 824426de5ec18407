// motley plan JOB with the flags of offline planning: through a fake coordinator that hands out what the planner describes.
#include "coordinator/client/live_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "nlohmann/json.hpp"
#include "planner/strategies/catalog.h"
#include "tests/coordinator/client/live_job.h"

namespace motley::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class LivePlanTest : public testing::Test {
 protected:
  LivePlanTest() {
    fake_.plan.set_plan_text("the plan in force\n");
    fake_.plan.set_explanation("why it is in force\n");
    fake_.plan.clear_programs();
    fake_.plan.clear_inputs();  // an older coordinator's
  }
  Ran Plan(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"plan", "j"});
    return Motley(fake_, arguments);
  }

  LiveJob job_;
  FakeMotley& fake_ = job_.fake;
  TempFolder folder_;
  const double live_seconds_ = job_.plan.plan.predicted.step_seconds;
};

TEST_F(LivePlanTest, AloneItShowsThePlanInForce) {
  EXPECT_EQ(Plan({}).out, "the plan in force\n");
  EXPECT_EQ(Plan({"--explain"}).out, "why it is in force\n");
}

TEST_F(LivePlanTest, StrategiesPlanWithTheClustersOwnNumbers) {
  const Ran ran = Plan({"--strategy", "cephalo", "--explain", "-o", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json document = json::parse(ran.out), plan = document["plan"];
  EXPECT_EQ(plan["cluster"], "cluster-of-j");
  EXPECT_EQ(plan["global_batch"], 32);
  EXPECT_NEAR(plan["predicted"]["step_seconds"].get<double>() / live_seconds_, 1, 1e-9);
  EXPECT_FALSE(plan["predicted"].value("estimated", false));
  EXPECT_THAT(document["report"]["explanation"].get<std::string>(), HasSubstr("job j: layers[0]"));
}

// What was planned from comes with the plan: it is priced, explained, compared and drawn as any other, and is still the plan in
// force.
TEST_F(LivePlanTest, ThePlanInForceIsShownAsAnyOther) {
  *fake_.plan.mutable_inputs() = fake_.inputs;
  fake_.plan.mutable_inputs()->mutable_planner()->set_strategy("cephalo");
  const std::string svg = folder_ / "step.svg", trace = folder_ / "step.json";
  const Ran ran = Plan({"--svg", svg, "--trace", trace, "--explain", "--compare"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("plan generation 3 cephalo batch 32 seq 32 float32"));
  EXPECT_THAT(ran.out, HasSubstr("other strategies' plans:"));
  EXPECT_THAT(ran.out, HasSubstr("RUNS HERE"));
  EXPECT_THAT(TempFolder::Read(svg), HasSubstr("<svg"));
  EXPECT_THAT(TempFolder::Read(trace), HasSubstr("traceEvents"));
  const json document = json::parse(Plan({"--explain", "-o", "json"}).out);
  EXPECT_TRUE(document.contains("generation"));
  EXPECT_EQ(document["report"]["runnable"]["ok"], true);
  EXPECT_GT(document["report"]["sensitivity"]["relaxations"].size(), 0u);
  EXPECT_GT(document["report"]["worth"]["without"].size(), 0u);
  EXPECT_NEAR(document["plan"]["predicted"]["step_seconds"].get<double>(), live_seconds_, 1e-12);
  for (const json& row : document["report"]["comparison"]) {
    if (row["strategy"] == "cephalo") EXPECT_NEAR(row["step_seconds"].get<double>() / live_seconds_, 1, 1e-9);
  }
}

// The same plan has the same seconds in force, in a table, planned again with flags, and simulated.
TEST(LivePlan, OnePlanHasOnePrice) {
  for (const char* strategy : {"megatron", "zorse"}) {
    LiveJob job(strategy);
    const auto plan = [&job](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), {"plan", "j"});
      arguments.insert(arguments.end(), {"-o", "json"});
      const Ran ran = Motley(job.fake, arguments);
      EXPECT_EQ(ran.code, 0) << ran.err;
      return json::parse(ran.out);
    };
    const json in_force = plan({"--compare"}), again = plan({"--strategy", strategy});
    const double seconds = job.plan.plan.predicted.step_seconds;
    EXPECT_NEAR(in_force["plan"]["predicted"]["step_seconds"].get<double>() / seconds, 1, 1e-9) << strategy;
    EXPECT_NEAR(again["plan"]["predicted"]["step_seconds"].get<double>() / seconds, 1, 1e-9) << strategy;
    EXPECT_EQ(again["plan"]["predicted"]["as_run"], true) << strategy;
    for (const json& row : in_force["report"]["comparison"]) {
      if (row["strategy"] == strategy) EXPECT_NEAR(row["step_seconds"].get<double>() / seconds, 1, 1e-9) << strategy;
    }
    // Of the whole language, where that is asked for, in the same seconds.
    const json open = plan({"--strategy", strategy, "--no-runnable"});
    EXPECT_EQ(open["plan"]["predicted"]["as_run"], true) << strategy;
    const json& runs = open["report"]["runnable"];
    if (runs["ok"] == true) EXPECT_EQ(runs["step_seconds"], open["plan"]["predicted"]["step_seconds"]) << strategy;
  }
}

// Without them: what the coordinator rendered when it planned.
TEST_F(LivePlanTest, APlanOfAnOlderCoordinatorIsNotDrawn) {
  const Ran ran = Plan({"--svg", folder_ / "step.svg"});
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.err, HasSubstr("was made by an older coordinator"));
}

TEST_F(LivePlanTest, AutoIsPlannedWhereNoStrategyIsNamed) {
  const Ran ran = Plan({"--max-tp", "4"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("plan auto batch 32 seq 32 float32"));
  EXPECT_THAT(ran.out, HasSubstr("\nruns here: "));
}

TEST_F(LivePlanTest, OnlyWhatRunsWhereThatIsAskedFor) {
  const json open = json::parse(Plan({"--strategy", "fsdp", "--dtype", "bf16", "--no-runnable", "-o", "json"}).out);
  EXPECT_EQ(open["report"]["runnable"]["ok"], true);
  const Ran half = Plan({"--strategy", "fsdp", "--dtype", "bf16", "--runnable"});
  EXPECT_EQ(half.code, 0) << half.err;
  for (const char* strategy : {"fsdp", "baton", "zorse"}) {
    const json plan = json::parse(Plan({"--strategy", strategy, "-o", "json"}).out);
    EXPECT_EQ(plan["report"]["runnable"]["ok"], true) << strategy << ": of a job it is the default";
  }
  const json best = json::parse(Plan({"--runnable", "--recompute", "full", "-o", "json"}).out);
  EXPECT_EQ(best["report"]["runnable"]["ok"], true);
  for (const json& rank : best["report"]["ranks"]) EXPECT_EQ(rank["recompute"], "full");
}

TEST_F(LivePlanTest, CompareHasARowForEachStrategy) {
  const Ran ran = Plan({"--strategy", "even", "--compare", "-o", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["report"]["comparison"].size(), planner::Catalog().size());
}

TEST_F(LivePlanTest, FlagsOfTheRequestAndTheWorkloadHold) {
  const Ran ran =
      Plan({"--strategy", "cephalo", "--exclude", "n3", "--global-batch", "16", "--memory-reserve", "30%", "-o", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json document = json::parse(ran.out);
  EXPECT_EQ(document["plan"]["global_batch"], 16);
  EXPECT_THAT(ran.out, HasSubstr("excluded by request (n3)"));
  EXPECT_EQ(Plan({"--exclude", "n9"}).code, 66);
}

TEST_F(LivePlanTest, SavedInputsGiveTheSamePlanWithoutTheCluster) {
  const std::string saved = folder_ / "deep/saved";
  const Ran live = Plan({"--save-inputs", saved, "--strategy", "cephalo", "-o", "json"});
  ASSERT_EQ(live.code, 0) << live.err;
  EXPECT_THAT(live.err,
              HasSubstr("motley plan --cluster " + saved + "/cluster.toml --model " + saved + "/config.json --profiles " + saved +
                        "/profiles.json --global-batch 32 --seq-len 32 --dtype float32 --runnable"));
  std::ostringstream out, err;
  ASSERT_EQ(RunCli({"--coordinator", "127.0.0.1:1", "plan", "--cluster", saved + "/cluster.toml", "--model",
                    saved + "/config.json", "--profiles", saved + "/profiles.json", "--global-batch", "32", "--seq-len", "32",
                    "--strategy", "cephalo", "--runnable", "-o", "json"},
                   out, err, {}),
            0)
      << err.str();
  json a = json::parse(live.out)["plan"], b = json::parse(out.str());
  EXPECT_EQ(a["predicted"], b["predicted"]);
  EXPECT_EQ(a["pipelines"], b["pipelines"]);
}

TEST_F(LivePlanTest, TheCommandOfSavedInputsCanBePasted) {
  const std::string saved = folder_ / "it's mine";
  EXPECT_THAT(Plan({"--save-inputs", saved, "--strategy", "even"}).err, HasSubstr("it'\\''s mine/cluster.toml' --model '"));
}

TEST_F(LivePlanTest, AFolderThatCannotBeMadeIs73) {
  const std::string file = folder_.Write("file", "text");
  const Ran ran = Plan({"--save-inputs", file + "/below"});
  EXPECT_EQ(ran.code, 73);
  EXPECT_THAT(ran.err, HasSubstr("cannot make folder"));
}

TEST_F(LivePlanTest, WarningsOfTheCoordinatorAreSaid) {
  fake_.inputs.add_warnings("n4/gpu0: not measured");
  const Ran ran = Plan({"--strategy", "even", "-o", "json"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.err, HasSubstr("motley: warning: n4/gpu0: not measured"));
  EXPECT_EQ(json::parse(ran.out)["report"]["warnings"][0], "n4/gpu0: not measured");
}

TEST_F(LivePlanTest, ContradictionsAreWrongUsage) {
  const Ran cluster = Plan({"--cluster", "cephalo-a", "--compare"});
  EXPECT_EQ(cluster.code, 64);
  EXPECT_THAT(cluster.err, HasSubstr("give JOB, or --cluster and --model"));
  EXPECT_EQ(Plan({"--model", "llama-7b"}).code, 64);
  EXPECT_EQ(Plan({"--programs", "--strategy", "even"}).code, 64);
  const Ran schedule = Plan({"--schedule", "--strategy", "even"});
  EXPECT_EQ(schedule.code, 64);
  EXPECT_THAT(schedule.err, HasSubstr("--schedule shows that of the plan in force"));
  EXPECT_EQ(Plan({"--strategy", "cephalos"}).code, 64);
  EXPECT_EQ(Plan({"--dtype", "int4"}).code, 64);
  EXPECT_EQ(Motley(fake_, {"plan", "--save-inputs", "x"}).code, 64);
  EXPECT_EQ(Motley(fake_, {"plan", "--compare"}).code, 64);
}

TEST_F(LivePlanTest, WhatTheCoordinatorAnswersIsSaid) {
  const Ran unknown = Motley(fake_, {"plan", "x", "--compare"});
  EXPECT_EQ(unknown.code, 66);
  EXPECT_EQ(unknown.err, "motley: no job 'x'\n");
  fake_.refusal = {grpc::StatusCode::FAILED_PRECONDITION, "none of the 2 devices was measured; wait"};
  const Ran early = Plan({"--strategy", "even"});
  EXPECT_EQ(early.code, 65);
  EXPECT_EQ(early.err, "motley: none of the 2 devices was measured; wait\n");
  fake_.Stop();
  std::ostringstream out, err;
  EXPECT_EQ(RunCli({"--coordinator", fake_.address(), "plan", "j", "--strategy", "even"}, out, err,
                   {.connect = absl::Milliseconds(100)}),
            69);
  EXPECT_THAT(err.str(), HasSubstr("no coordinator answers"));
}

TEST_F(LivePlanTest, TextsOfAnotherVersionAreRefused) {
  fake_.inputs.set_profile_json(R"({"motley_profile": 99, "layers": []})");
  const Ran ran = Plan({"--strategy", "even"});
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.err, HasSubstr("job j: motley_profile must be"));
}

}  // namespace
}  // namespace motley::client
