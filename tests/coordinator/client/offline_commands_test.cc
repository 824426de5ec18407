// Commands that plan without a coordinator: plan --cluster, plan diff, estimate, simulate, clusters, models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/model/model.h"
#include "nlohmann/json.hpp"
#include "planner/plan/plan.h"
#include "planner/strategies/catalog.h"
#include "tests/coordinator/client/offline_fixture.h"

namespace motley::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST_F(OfflineTest, PlansWithoutACoordinator) {
  const Ran ran = Plan({"--strategy", "cephalo"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("plan cephalo batch 24 seq 128 float32 layered cluster mixed"));
  EXPECT_THAT(ran.out, testing::AllOf(HasSubstr("n1/gpu0 A6000"), HasSubstr("\nbound by "), HasSubstr("above the bound: ")));
  EXPECT_THAT(ran.out, testing::ContainsRegex("^[^\n]* a step, [^\n]*\nbound by [^\n]*\n[^\n]*\nruns here: yes\n\nplan "))
      << "four lines say what most people ask";
  const Ran explained = Plan({"--strategy", "cephalo", "--explain"});
  EXPECT_THAT(explained.out, testing::ContainsRegex("latencies:\n  A6000: .*\nother strategies' plans:\n  .*% more; bound by "));
  EXPECT_THAT(explained.out, testing::Not(HasSubstr("\n  cephalo: ")));
}

TEST_F(OfflineTest, EveryStrategyAnswersOrSaysWhyNot) {
  for (const planner::CatalogEntry& entry : planner::Catalog()) {
    const Ran ran = Plan({"--strategy", std::string(entry.name), "-o", "json"});
    EXPECT_THAT(ran.code, testing::AnyOf(0, 65)) << entry.name << ran.err;
    if (ran.code != 0) continue;
    EXPECT_EQ(json::parse(ran.out)["global_batch"], 24) << entry.name;
  }
}

TEST_F(OfflineTest, TheDocumentIsThePlanAndTheSameEveryTime) {
  const Ran ran = Plan({"--strategy", "cephalo", "--compare", "--explain", "-o", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Plan({"--strategy", "cephalo", "--compare", "--explain", "-o", "json"}).out, ran.out);
  const auto plan = planner::PlanFromJson(ran.out);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->cluster, "mixed");
  const json document = json::parse(ran.out);
  EXPECT_EQ(document["schema_version"], planner::kPlanSchemaVersion);
  const json& report = document["report"];
  EXPECT_EQ(report["comparison"].size(), planner::Catalog().size());
  EXPECT_FALSE(report.contains("planning_seconds"));
  EXPECT_GT(report["lower_bound"]["seconds"], 0.0);
  int64_t batch = 0;
  for (const json& rank : report["ranks"]) {
    batch += rank["batch"].get<int64_t>();
    for (const char* key : {"device", "pipeline", "stage", "layers", "microbatches", "shard_ratio", "tp_share", "zero_stage",
                            "recompute", "offload", "busy_seconds", "peak_bytes", "memory"}) {
      EXPECT_TRUE(rank.contains(key)) << key;
    }
  }
  EXPECT_EQ(batch, 24);
  EXPECT_TRUE(json::parse(Plan({"--strategy", "cephalo", "--timing", "-o", "json"}).out)["report"].contains("planning_seconds"));
}

// The row of a strategy in the comparison of a document.
json RowOf(const json& document, const std::string& strategy) {
  for (const json& row : document["report"]["comparison"]) {
    if (row["strategy"] == strategy) return row;
  }
  return {};
}

TEST_F(OfflineTest, OnePlanHasOnePriceOnEveryWay) {
  for (const char* dtype : {"fp32", "fp16"}) {
    for (const char* runnable : {"--runnable", "--no-runnable"}) {
      for (const std::string strategy : {"auto", "megatron", "hexiscale"}) {
        const std::string what = absl::StrCat(strategy, " ", dtype, " ", runnable);
        const Ran ran = Plan({"--strategy", strategy, "--dtype", dtype, runnable, "--compare", "-o", "json"});
        ASSERT_EQ(ran.code, 0) << what << ran.err;
        const json document = json::parse(ran.out), row = RowOf(document, strategy);
        EXPECT_EQ(row["step_seconds"], document["predicted"]["step_seconds"]) << what;
        EXPECT_EQ(row["binding_constraint"], document["predicted"]["binding_constraint"]) << what;
        EXPECT_EQ(row["runnable"], document["report"]["runnable"]) << what;
        const std::string file = folder_.Write("plan.json", ran.out);
        const Ran simulated = Run({"simulate", file, "--cluster", cluster_, "--model", model_, "-o", "json"});
        ASSERT_EQ(simulated.code, 0) << what << simulated.err;
        EXPECT_EQ(json::parse(simulated.out)["predicted"]["step_seconds"], document["predicted"]["step_seconds"]) << what;
        if (document["report"]["runnable"]["ok"] == false) continue;
        // What `runs here` says is what it comes to where that is asked for.
        const Ran as_run = Run({"simulate", file, "--cluster", cluster_, "--model", model_, "--runnable", "-o", "json"});
        EXPECT_EQ(json::parse(as_run.out)["predicted"]["step_seconds"], document["report"]["runnable"]["step_seconds"]) << what;
      }
    }
  }
}

// As published every rank keeps all state; the same plan by hand is tuned.
TEST_F(OfflineTest, PublishedReplicasHaveOnePriceToo) {
  const Ran ran = Plan({"--strategy", "poplar", "--fidelity", "published", "--zero-stage", "0", "-o", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  json document = json::parse(ran.out);
  EXPECT_EQ(document["pipelines"][0]["stages"][0]["zero_stage"], 0);
  const auto simulated = [&] {
    const std::string file = folder_.Write("plan.json", document.dump());
    return json::parse(Run({"simulate", file, "--cluster", cluster_, "--model", model_, "-o", "json"}).out);
  };
  EXPECT_EQ(simulated()["predicted"]["step_seconds"], document["predicted"]["step_seconds"]);
  document.erase("predicted");
  const json by_hand = simulated();
  EXPECT_EQ(by_hand["pipelines"][0]["stages"][0]["zero_stage"], 1);
  EXPECT_THAT(by_hand["predicted"]["notes"].dump(), HasSubstr("ZeRO 1 in even shares"));
}

TEST_F(OfflineTest, CompareHasARowForEachStrategy) {
  const Ran ran = Plan({"--strategy", "even", "--compare"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const planner::CatalogEntry& entry : planner::Catalog())
    EXPECT_THAT(ran.out, HasSubstr(absl::StrCat("\n", std::string(entry.name), " ")));
}

TEST_F(OfflineTest, WritesTimelineAndPicture) {
  const std::string trace = folder_ / "step.json", svg = folder_ / "step.svg";
  const Ran ran = Plan({"--strategy", "even", "--trace", trace, "--svg", svg});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(json::parse(TempFolder::Read(trace)).contains("traceEvents"));
  EXPECT_THAT(TempFolder::Read(svg), HasSubstr("<svg"));
  EXPECT_EQ(Plan({"--strategy", "even", "--svg", folder_ / "no/such/folder"}).code, 73);
  EXPECT_EQ(Plan({"--strategy", "even", "--trace", folder_ / "no/such/folder"}).code, 73);
}

TEST_F(OfflineTest, FollowsTheRequest) {
  const json document = json::parse(Plan({"--strategy", "cephalo", "--exclude", "n2", "-o", "json"}).out);
  EXPECT_EQ(document["unused"].size(), 2u);
  EXPECT_EQ(document["unused"][0]["device"], "n2/gpu0");
  EXPECT_THAT(document["unused"][0]["because"].get<std::string>(), HasSubstr("excluded"));
  const Ran pinned = Plan({"--strategy", "even", "--pin", "stage1=n2"});
  EXPECT_EQ(pinned.code, 65);
  EXPECT_THAT(pinned.err, HasSubstr("stage1"));
  EXPECT_EQ(Plan({"--strategy", "cephalo", "--memory-reserve", "10%", "--budget-nodes", "1e5", "--max-tp", "2"}).code, 0);
}

TEST_F(OfflineTest, WrongFlagsAre64) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"plan"}, "give JOB"},
      {{"plan", "j", "--cluster", cluster_}, "'j' is taken for JOB, and a job has its own cluster"},
      {{"plan", "--cluster", cluster_, "--exclude", "n1", "n2"}, "; if it is a place, --exclude takes several with commas"},
      {{"plan", "--cluster", cluster_}, "--model is missing"},
      {{"plan", "--model", model_}, "--cluster is missing"},
      {{"plan", "--cluster", cluster_, "--model", model_}, "--global-batch is missing"},
      {{"plan", "--cluster", cluster_, "--model", model_, "--global-batch", "8"}, "--seq-len is missing"},
      {With("plan", {"--strategy", "cephalos"}), "did you mean 'cephalo'?"},
      {With("plan", {"--fidelity", "exact"}), "fidelity"},
      {With("plan", {"--dtype", "fp8"}), "--dtype"},
      {With("plan", {"--zero-stage", "4"}), "zero-stage"},
      {With("plan", {"--max-tp", "0"}), "max-tp"},
      {With("plan", {"--pin", "n1"}), "must be STAGE=NODE"},
      {With("plan", {"--pin", "stage0=n1", "--pin", "stage0=n2"}), "a stage has one pin"},
      {With("plan", {"--memory-reserve", "120%"}), "--memory-reserve"},
      {With("plan", {"--memory-reserve", "some"}), "--memory-reserve"},
      {With("plan", {"--budget-nodes", "0"}), "--budget-nodes"},
      {With("plan", {"--budget-nodes", "nan"}), "--budget-nodes"},
      {With("plan", {"--deadline", "soon"}), "--deadline"},
      {With("plan", {"--deadline", "-1s"}), "--deadline"},
      {{"plan", "--cluster", cluster_, "--model", model_, "--global-batch", "0", "--seq-len", "8"}, "global-batch"},
      {{"plan", "--cluster", cluster_, "--model", model_, "--global-batch", "8", "--seq-len", "-8"}, "seq-len"},
      {With("plan", {"--pin", "first=n1"}), "must be a stage, as in stage0=n1"},
      {With("plan", {"--max-tp", "-3"}), "must be a whole number and at least 1, got -3"},
      {{"plan", "--cluster", cluster_}, "--seq-len is missing"},
      {{"plan", "--cluster", cluster_, "--dtype", "fp8"}, "--dtype"},
      {With("plan", {"--profiles", "a.json", "b.json"}), "if it is a profile, give --profiles again"},
      {{"plan", "diff", "one"}, "B"},
      {{"simulate"}, "PLAN"},
  };
  for (const auto& [arguments, what] : cases) {
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.code, 64) << testing::PrintToString(arguments) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(what)) << testing::PrintToString(arguments);
  }
}

TEST_F(OfflineTest, WhatIsNotThereIs66) {
  EXPECT_EQ(Run({"plan", "--cluster", folder_ / "no.toml", "--model", model_, "--global-batch", "8", "--seq-len", "8"}).code, 66);
  const Ran preset = Run({"plan", "--cluster", "cephalo-c", "--model", model_, "--global-batch", "8", "--seq-len", "8"});
  EXPECT_EQ(preset.code, 66);
  EXPECT_THAT(preset.err, HasSubstr("cephalo-"));
  const Ran model = Run({"plan", "--cluster", cluster_, "--model", "llama-7", "--global-batch", "8", "--seq-len", "8"});
  EXPECT_EQ(model.code, 66);
  EXPECT_THAT(model.err, HasSubstr("llama-7b"));
  EXPECT_EQ(Plan({"--profiles", folder_ / "no.json"}).code, 66);
  EXPECT_EQ(Run({"plan", "--cluster", "cephalo-c"}).code, 66) << "before what is missing";
  // Directories are no files.
  const std::string folder = folder_ / "";
  EXPECT_EQ(Plan({"--profiles", folder}).code, 66);
  EXPECT_EQ(Run({"simulate", folder}).code, 66);
  EXPECT_EQ(Run({"plan", "--cluster", folder, "--model", model_, "--global-batch", "8", "--seq-len", "8"}).code, 66);
  EXPECT_EQ(Run({"plan", "--cluster", cluster_, "--model", folder, "--global-batch", "8", "--seq-len", "8"}).code, 66);
  EXPECT_EQ(Plan({"--exclude", "n7"}).code, 66);
  EXPECT_EQ(Plan({"--pin", "stage0=n7"}).code, 66);
  EXPECT_EQ(Run({"simulate", folder_ / "no.json"}).code, 66);
  EXPECT_EQ(Run({"plan", "diff", folder_ / "no.json", folder_ / "no.json"}).code, 66);
}

TEST_F(OfflineTest, WrongContentsAre65) {
  folder_.Write("mixed.toml", "name = \"x\"\n[[node]]\nname = \"n1\"\ngpus = [\"A600\"]\n");
  const Ran card = Plan({});
  EXPECT_EQ(card.code, 65);
  EXPECT_THAT(card.err, HasSubstr("A600"));
  folder_.Write("mixed.toml", kCluster);
  EXPECT_EQ(Plan({"--profiles", folder_.Write("p.json", "{")}).code, 65);
  EXPECT_EQ(Plan({"--exclude", "n1", "--exclude", "n2"}).code, 65);
  EXPECT_EQ(Plan({"--exclude", "n1, n2"}).code, 65) << "both, as planner.exclude has them";
  EXPECT_EQ(Plan({"--pin", "stage0=n1", "--pin", "stage1=n1"}).code, 65);
  EXPECT_EQ(Plan({"--pin", "stage99=n1"}).code, 65);
  const Ran longer = Run({"plan", "--cluster", cluster_, "--model", model_, "--global-batch", "8", "--seq-len", "512"});
  EXPECT_EQ(longer.code, 65);
  EXPECT_THAT(longer.err, HasSubstr("256"));
  const std::string moe = folder_.Write("moe.json", R"({"model_type": "mixtral", "num_local_experts": 8})");
  EXPECT_EQ(Run({"plan", "--cluster", cluster_, "--model", moe, "--global-batch", "8", "--seq-len", "8"}).code, 65);
}

TEST_F(OfflineTest, WhatDoesNotFitSaysWhatWould) {
  const Ran ran = Run({"plan", "--cluster", cluster_, "--model", "llama-65b", "--global-batch", "8", "--seq-len", "512",
                       "--strategy", "cephalo"});
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.err, HasSubstr(" are missing"));
  EXPECT_THAT(ran.err, HasSubstr("what would fit, the cheapest first:")) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("more "));
}

TEST_F(OfflineTest, AProfileOfWhichNothingIsUsedIsNamed) {
  const std::string profile = folder_.Write("far.json", R"({"motley_profile": 1, "layers": []})");
  const Ran ran = Plan({"--strategy", "even", "--profiles", profile});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr(absl::StrCat("no entry of ", profile, " was used")));
  EXPECT_EQ(Plan({"--strategy", "even"}).err, "");
}

TEST_F(OfflineTest, DiffSaysWhatChangesAndWhatMoves) {
  const std::string a = PlanFile("a.json", "even"), b = PlanFile("b.json", "cephalo");
  const Ran same = Run({"plan", "diff", a, a});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("nothing changes\n"));
  EXPECT_THAT(same.out, HasSubstr("bytes to move: 0 B"));
  const Ran text = Run({"plan", "diff", a, b});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("strategy even -> cephalo\n"));
  const json parsed = json::parse(Run({"plan", "diff", a, b, "-o", "json"}).out);
  EXPECT_EQ(parsed["plan"][0]["what"], "strategy");
  EXPECT_GT(parsed["moved_bytes"], 0);
  int64_t total = 0;
  for (const json& move : parsed["moves"]) total += move["bytes"].get<int64_t>();
  EXPECT_EQ(parsed["moved_bytes"], total);
  // Without names and owned ranges the sizes are not known; that is said, and the rest is shown.
  json nameless = json::parse(TempFolder::Read(a));
  nameless["model"] = "";
  const std::string c = folder_.Write("c.json", nameless.dump());
  EXPECT_THAT(Run({"plan", "diff", c, c}).out, HasSubstr("give the model"));
  EXPECT_EQ(Run({"plan", "diff", c, c, "--model", "llama-7b"}).code, 65) << "of other layers";
}

TEST_F(OfflineTest, EstimateSaysWhereTheBytesGo) {
  const Ran ran = Run(With("estimate", {}));
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* part : {": fits\n", "OPTIMIZER", "A6000", "largest global batch: ", "longest sequence: 256",
                           "fewest cards that hold it: 1 of 4: A6000 n1/gpu0"}) {
    EXPECT_THAT(ran.out, HasSubstr(part)) << ran.out;
  }
  EXPECT_THAT(ran.out, HasSubstr("\noffload: no node offers host memory")) << "one line, no table";
  EXPECT_THAT(ran.out, testing::Not(HasSubstr("cards alone")));
  const Ran few = Run({"estimate", "--cluster", cluster_, "--model", model_, "--global-batch", "2", "--strategy", "cephalo",
                       "--fidelity", "published"});
  EXPECT_EQ(few.code, 65);
  EXPECT_THAT(few.out, HasSubstr(": no plan\n")) << "memory is not the matter";
  EXPECT_THAT(few.out, HasSubstr("does not give each of 4 devices")) << few.out;
  const Ran big = Run({"estimate", "--cluster", cluster_, "--model", "llama-65b", "-o", "json"});
  EXPECT_EQ(big.code, 65);
  const json parsed = json::parse(big.out);
  EXPECT_EQ(parsed["fits"], false);
  EXPECT_EQ(parsed["seq_len"], 2048);
  EXPECT_EQ(parsed["largest_global_batch"]["value"], 0);
  EXPECT_FALSE(parsed["missing"].empty());
  EXPECT_GT(parsed["kinds"][0]["memory"]["optimizer"], 0);
  EXPECT_EQ(json::parse(Run(With("estimate", {"--strategy", "even", "-o", "json"})).out)["fits"], true);
}

TEST_F(OfflineTest, EstimateSaysWhatRunsHereAndWhatLiesInTheHosts) {
  const std::string one =
      folder_.Write("one.toml", "name = \"one\"\n[[node]]\nname = \"ada\"\ngpus = [\"5090\"]\nhost_memory_gib = 64\n");
  const std::vector<std::string> asked = {"estimate", "--cluster", one, "--model", "llama-3b", "--dtype", "bf16"};
  const auto with = [&asked](std::vector<std::string> more) {
    std::vector<std::string> all = asked;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Ran ran = Run(with({}));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr(": fits (with "));
  EXPECT_THAT(ran.out, HasSubstr(" in the hosts' memory)\n"));
  EXPECT_THAT(ran.out, Not(HasSubstr("runs here: no")));
  EXPECT_THAT(ran.out, HasSubstr("largest global batch: any"));
  EXPECT_EQ(Run(with({"--offload", "parameters,optimizer"})).code, 0);
  EXPECT_EQ(Run(with({"--offload", "activations"})).code, 65) << "its state does";
  const Ran wrong = Run(with({"--offload", "optimzer"}));
  EXPECT_EQ(wrong.code, 64);
  EXPECT_THAT(wrong.err, HasSubstr("--offload: 'optimzer' is not known; did you mean 'optimizer'?"));
  EXPECT_THAT(ran.out,
              testing::ContainsRegex("fewest cards that hold it: 1 of 1: RTX-5090 ada/gpu0 .with .* in the hosts' memory"));
  const json parsed = json::parse(Run(with({"-o", "json"})).out);
  EXPECT_EQ(parsed["runs_here"]["ok"], true);
  EXPECT_GT(parsed["host_bytes"], 0);
  EXPECT_EQ(parsed["largest_global_batch"]["any"], true);
  EXPECT_THAT(ran.out, testing::ContainsRegex("cards alone +lacks [^\n]*\nwith offload +yes +[^\n]*optimizer"));
  EXPECT_THAT(ran.out, testing::ContainsRegex("\non hosts: ada [0-9.]+ GiB of 64.0 GiB\n"));
  EXPECT_EQ(parsed["on_cards"]["fits"], false);
  EXPECT_GT(parsed["on_cards"]["lacking_bytes"], 0);
  EXPECT_TRUE(parsed["on_cards"]["step_seconds"].is_null());
  EXPECT_EQ(parsed["with_offload"]["fits"], true);
  EXPECT_GT(parsed["with_offload"]["step_seconds"], 0);
  EXPECT_THAT(parsed["with_offload"]["offloads"], testing::Contains("optimizer"));
  EXPECT_EQ(parsed["with_offload"]["hosts"][0]["node"], "ada");
  EXPECT_TRUE(parsed["no_offload_because"].is_null());
  EXPECT_EQ(Run(with({"--runnable"})).code, 0);
  const Ran cards = Run(with({"--offload", "never"}));
  EXPECT_EQ(cards.code, 65);
  const Ran plan = Run({"plan", "--cluster", one, "--model", "llama-3b", "--dtype", "bf16", "--global-batch", "1", "--seq-len",
                        "2048", "--offload", "never"});
  EXPECT_EQ(plan.code, 65);
  const std::string miss = cards.out.substr(cards.out.find("the nearest miss"));
  EXPECT_THAT(plan.err, HasSubstr(miss.substr(0, miss.find('\n')))) << "one sentence";
}

TEST_F(OfflineTest, EstimateWithoutAModelHasARowForEachPreset) {
  const Ran ran = Run({"estimate", "--cluster", cluster_, "--dtype", "fp16", "--global-batch", "8"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* part : {"on mixed, batch 8, sequence 2048", "MODEL", "RUNS HERE", "TOKENS/S", "llama2-70b", "lacks "}) {
    EXPECT_THAT(ran.out, HasSubstr(part)) << ran.out;
  }
  const json parsed = json::parse(Run({"estimate", "--cluster", cluster_, "--dtype", "fp16", "-o", "json"}).out);
  EXPECT_EQ(parsed["global_batch"], 64);
  ASSERT_EQ(parsed["models"].size(), json::parse(Run({"models", "-o", "json"}).out)["models"].size());
  const json &first = parsed["models"].front(), &last = parsed["models"].back();
  EXPECT_EQ(first["runs_here"]["ok"], true);
  EXPECT_GT(first["tokens_per_second"], 0);
  EXPECT_EQ(last["fits"], false);
  EXPECT_TRUE(last["tokens_per_second"].is_null());
  EXPECT_EQ(Run({"estimate", "--cluster", "nowhere"}).code, 66);
  EXPECT_EQ(Run({"estimate"}).code, 64);
  EXPECT_EQ(Run({"estimate", "--cluster", cluster_, "--strategy", "none"}).code, 64);
}

TEST_F(OfflineTest, StateBytesAskWhatAnotherOptimizerWouldChange) {
  const auto state = [this](const std::string& bytes, std::vector<std::string> more) {
    more.insert(more.end(), {"--state-bytes-per-parameter", bytes});
    return Plan(more);
  };
  for (const char* wrong : {"0", "-3", "1e9", "1000000000", "65", "many"}) {
    const Ran ran = state(wrong, {"--dtype", "fp16"});
    EXPECT_EQ(ran.code, 64) << wrong;
    EXPECT_THAT(ran.err, HasSubstr("must be a whole number of bytes from 1 to 64 (16 is AdamW in float32")) << ran.err;
  }
  EXPECT_THAT(state("6", {}).err, HasSubstr("must be 8 to 64 in float32, whose parameters and gradients take 8, got 6"));
  const Ran both = state("6", {"--dtype", "fp16", "--runnable"});
  EXPECT_NE(both.code, 0);
  EXPECT_THAT(both.err, HasSubstr("jobs keep AdamW in float32"));
  const auto optimizer = [](const Ran& ran) {
    EXPECT_EQ(ran.code, 0) << ran.err;
    int64_t bytes = 0;
    const json parsed = json::parse(ran.out);
    for (const json& rank : parsed["report"]["ranks"]) bytes += rank["memory"]["optimizer"].get<int64_t>();
    return bytes;
  };
  const std::vector<std::string> asked = {"--dtype", "fp16", "--strategy", "cephalo", "-o", "json"};
  const Ran six = state("6", asked);
  EXPECT_NEAR(static_cast<double>(optimizer(six)) / static_cast<double>(optimizer(Plan(asked))), 2.0 / 12, 0.01);
  const json runs = json::parse(six.out)["report"]["runnable"];
  EXPECT_EQ(runs["ok"], false);
  EXPECT_THAT(runs["why"].get<std::string>(), HasSubstr("jobs keep AdamW in float32"));
  EXPECT_THAT(Run(With("estimate", {"--dtype", "fp16", "--state-bytes-per-parameter", "6"})).out,
              HasSubstr("runs here: no: jobs keep AdamW in float32"));
}

TEST_F(OfflineTest, PresetsAreListedAndPrinted) {
  const Ran clusters = Run({"clusters"});
  EXPECT_EQ(clusters.code, 0) << clusters.err;
  EXPECT_THAT(clusters.out, HasSubstr("cephalo-a"));
  EXPECT_GE(json::parse(Run({"clusters", "-o", "json"}).out)["clusters"].size(), 8u);
  const std::string own = folder_.Write("own.toml", Run({"clusters", "cephalo-a"}).out);
  EXPECT_EQ(
      Run({"plan", "--cluster", own, "--model", model_, "--global-batch", "24", "--seq-len", "128", "--strategy", "even"}).code,
      0);
  EXPECT_EQ(Run({"clusters", "cefalo-a"}).code, 66);
  EXPECT_THAT(Run({"models"}).out, HasSubstr("llama-7b"));
  EXPECT_GT(json::parse(Run({"models", "-o", "json"}).out)["models"][0]["parameters"], 0);
  EXPECT_TRUE(ParseHfConfig(Run({"models", "llama-7b"}).out, "llama-7b").ok());
  EXPECT_EQ(Run({"models", "lama-7b"}).code, 66);
}

}  // namespace
}  // namespace motley::client
