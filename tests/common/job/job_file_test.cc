#include "common/job/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "absl/strings/str_replace.h"
#include "tests/common/base/folders.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/model/published_configs.h"

namespace motley {
namespace {

constexpr char kPaths[] = "[data]\npath = \"/data/text\"\n[checkpoint]\nfolder = \"/checkpoints\"\n";

// The error's text; the paths that every job needs are appended.
std::string Error(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto file = ParseJobFile(text + kPaths, "job.toml", overrides);
  EXPECT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(file.status().message());
}

TEST(JobFileTest, ValuesAndWhereTheyCameFrom) {
  const std::string text =
      std::string("name = \"first\"\n[training]\nsteps = 1_000\nmax_norm = 2\n[optimizer]\nlr = 1e-3\n") + kPaths;
  auto file =
      ParseJobFile(text, "jobs/a.toml", {"training.steps=5", "training.steps=7", "optimizer.beta1=0.5", "model.flavor=debug"});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->config.name, "first");
  EXPECT_EQ(file->config.training.steps, 7);
  EXPECT_EQ(file->config.training.max_norm, 2.0);
  EXPECT_EQ(file->config.optimizer.lr, 1e-3);
  EXPECT_EQ(file->config.optimizer.beta1, 0.5);
  EXPECT_EQ(file->config.optimizer.beta2, OptimizerSection().beta2);
  EXPECT_EQ(file->origins["name"], "jobs/a.toml:1");
  EXPECT_EQ(file->origins["training.steps"], "--set");
  EXPECT_EQ(file->origins["training.max_norm"], "jobs/a.toml:4");
  EXPECT_EQ(file->origins["optimizer.lr"], "jobs/a.toml:6");
  EXPECT_EQ(file->origins["optimizer.beta2"], "default");
}

TEST(JobFileTest, UnknownNamesGiveLineAndNearest) {
  EXPECT_EQ(Error("[training]\nstesp = 3\n"), "job.toml:2: unknown key 'stesp' in [training]; did you mean 'steps'?");
  EXPECT_EQ(Error("\n[trainig]\nsteps = 3\n"), "job.toml:2: unknown section [trainig]; did you mean 'training'?");
  EXPECT_EQ(Error("[training]\nlr = 3\n"), "job.toml:2: unknown key 'lr' in [training]; it belongs to [optimizer]");
  EXPECT_EQ(Error("[planner]\nstate_bytes_per_parameter = 6\n"),
            "job.toml:2: unknown key 'state_bytes_per_parameter' in [planner]; jobs keep AdamW in float32, 16 bytes a parameter: "
            "'motley plan --state-bytes-per-parameter' asks what another optimizer would change");
  EXPECT_EQ(Error("", {"optimizer.state_bytes_per_parameter=6"}),
            "--set optimizer.state_bytes_per_parameter=6: unknown key 'optimizer.state_bytes_per_parameter'; jobs keep AdamW in "
            "float32, 16 bytes a parameter: 'motley plan --state-bytes-per-parameter' asks what another optimizer would change");
  EXPECT_EQ(Error("nmae = \"x\"\n"), "job.toml:1: unknown key 'nmae' outside a section; did you mean 'name'?");
  EXPECT_EQ(Error("", {"training.step=1"}), "--set training.step=1: unknown key 'training.step'; did you mean 'training.steps'?");
  EXPECT_NE(Error("[metrics]\nzzzzzzzzzzzz = 1\n").find("known are log_freq"), std::string::npos);
}

TEST(JobFileTest, TypesAndRangesGiveTheLine) {
  EXPECT_EQ(Error("[training]\nsteps = \"many\"\n"), "job.toml:2: training.steps must be an integer");
  EXPECT_EQ(Error("[training]\nsteps = 1.5\n"), "job.toml:2: training.steps must be an integer");
  EXPECT_EQ(Error("[model]\nname = 3\n"), "job.toml:2: model.name must be a string");
  EXPECT_EQ(Error("name = 3\n"), "job.toml:1: name must be a string");
  EXPECT_EQ(Error("[optimizer]\nlr = true\n"), "job.toml:2: optimizer.lr must be a number");
  EXPECT_EQ(Error("[training]\nsteps = 0\n"), "job.toml:2: training.steps must be at least 1, got 0");
  EXPECT_EQ(Error("", {"training.steps=x"}), "--set training.steps=x: training.steps must be an integer");
  EXPECT_EQ(Error("", {"training.steps"}), "--set training.steps: must have the form section.key=value");
  EXPECT_EQ(Error("", {"training.steps=-4"}), "--set: training.steps must be at least 1, got -4");
  EXPECT_EQ(Error("[training]\nsteps = [\n").rfind("job.toml:", 0), 0u);
  EXPECT_NE(Error("[model]\nflavor = \"huge\"\n").find("job.toml:2: model.name 'gpt2', model.flavor 'huge'"), std::string::npos);
}

TEST(JobFileTest, AllProblemsAtOnceInTheOrderOfTheFile) {
  EXPECT_EQ(Error("[training]\nstesp = 3\nseq_len = 0\n[optimizer]\nlr = \"x\"\n"),
            "job.toml:2: unknown key 'stesp' in [training]; did you mean 'steps'?\n"
            "job.toml:3: training.seq_len must be at least 1, got 0\n"
            "job.toml:5: optimizer.lr must be a number");
  // What only a whole file tells is among them: a model that is not known, a path that is missing.
  const absl::Status all =
      ParseJobFile(
          "name = \"n\"\n[planner]\npins_required = 3\nstrategy = \"zzz\"\n[training]\ndtype = \"fp16\"\nstep = 1\n"
          "[model]\nname = \"llama\"\n[data]\npath = 4\n",
          "job.toml", {"optimizer.lr=0", "training.step=1"},
          [](const JobConfig& config) { return std::vector<std::string>{"planner.strategy: " + config.planner.strategy}; })
          .status();
  EXPECT_THAT(std::string(all.message()),
              testing::MatchesRegex("job.toml:3: planner.pins_required must be true or false\n"
                                    "job.toml:4: planner.strategy: zzz\n"
                                    "job.toml:6: training.dtype must be one of float32, float64; got \"float16\"[^\n]*\n"
                                    "job.toml:7: unknown key 'step' in .training.; did you mean 'steps'.\n"
                                    "job.toml:9: model.name 'llama', model.flavor 'debug': [^\n]*\n"
                                    "job.toml:11: data.path must be a string\n"
                                    "--set training.step=1: unknown key 'training.step'; did you mean 'training.steps'.\n"
                                    "--set: optimizer.lr must be greater than 0, got 0.0"));
  EXPECT_EQ(all.code(), absl::StatusCode::kInvalidArgument);
}

TEST(JobFileTest, WhatIsNotTomlIsAllThatIsSaid) {
  const absl::Status broken = ParseJobFile("[training\nsteps = 0\n", "job.toml", {}).status();
  EXPECT_THAT(std::string(broken.message()), testing::StartsWith("job.toml:1: not TOML: "));
  EXPECT_THAT(std::string(broken.message()), testing::Not(testing::HasSubstr("\n")));
}

TEST(JobFileTest, ANumberWithAUnitIsToBeWrittenOut) {
  const auto said = [](const std::string& text) { return std::string(ParseJobFile(text, "job.toml", {}).status().message()); };
  EXPECT_THAT(said("[training]\nseq_len = 2k  # tokens\n"),
              testing::MatchesRegex("job.toml:2: not TOML: [^\n]*; numbers are written out: 2048 .or 2000. instead of 2k"));
  EXPECT_THAT(said("[training]\nseq_len = 2x\n"), testing::Not(testing::HasSubstr("written out")));
}

TEST(JobFileTest, TypesHaveTwoSpellings) {
  const std::string text =
      std::string("[training]\ndtype = \"fp32\"\nmixed_precision_param = \"bf16\"\nmixed_precision_reduce = \"fp32\"\n") + kPaths;
  auto file = ParseJobFile(text, "job.toml", {});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->config.training.dtype, "float32");
  EXPECT_EQ(file->config.training.mixed_precision_param, "bfloat16");
  EXPECT_EQ(file->config.training.mixed_precision_reduce, "float32");
  EXPECT_EQ(ParseJobFile(text, "job.toml", {"training.mixed_precision_param=fp16"})->config.training.mixed_precision_param,
            "float16");
  EXPECT_EQ(ParseJobFile(text, "job.toml", {"training.mixed_precision_param="})->config.training.mixed_precision_param, "");
}

TEST(JobFileTest, GptAsPublishedIsTrainedWithANote) {
  TempFolder folder;
  folder.Write("config.json", kGpt2Config);
  const std::string path = folder.Write("a.toml", std::string("[model]\nconfig = \"config.json\"\n") + kPaths);
  auto file = LoadJobFile(path, {});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->notes, testing::Contains(testing::HasSubstr("attn_pdrop 0.1: Motley trains without dropout")));
}

TEST(JobFileTest, AWindowIsTakenWithANoteWhereItLeavesTokensOut) {
  TempFolder folder;
  folder.Write("config.json", kMistralConfig);
  const std::string path = folder.Write("a.toml", std::string("[model]\nconfig = \"config.json\"\n") + kPaths);
  const auto words = testing::Contains(testing::HasSubstr("sliding_window 4096: attention is priced over all earlier tokens"));
  const auto held = LoadJobFile(path, {"training.seq_len=4096"}), longer = LoadJobFile(path, {"training.seq_len=8192"});
  ASSERT_TRUE(held.ok() && longer.ok()) << held.status() << longer.status();
  EXPECT_THAT(held->notes, testing::Not(words));
  EXPECT_THAT(longer->notes, words);
}

TEST(JobFileTest, RelativePaths) {
  TempFolder folder;
  const std::string path = folder.Write(
      "jobs/a.toml", "[data]\npath = \"../text/\"\nvalidation_path = \"held-out\"\n[checkpoint]\nfolder = \"out\"\n");
  auto file = LoadJobFile(path, {});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->config.data.path, folder / "text");
  EXPECT_EQ(file->config.data.validation_path, folder / "jobs/held-out");
  EXPECT_EQ(file->config.checkpoint.folder, folder / "jobs/out");
  file = LoadJobFile(path, {"checkpoint.folder=elsewhere"});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->config.checkpoint.folder, (std::filesystem::current_path() / "elsewhere").string());
}

// The home of whoever loads the file, for one test.
class Home {
 public:
  explicit Home(const std::string& folder) {
    if (const char* home = ::getenv("HOME"); home != nullptr) before_ = home;
    ::setenv("HOME", folder.c_str(), 1);
  }
  ~Home() { before_ ? ::setenv("HOME", before_->c_str(), 1) : ::unsetenv("HOME"); }

 private:
  std::optional<std::string> before_;
};

TEST(JobFileTest, TheHomeIsWhatPeopleMean) {
  TempFolder folder;
  const Home home(folder.path());
  folder.Write("m/config.json", ToHfConfig(*ModelFlavor("llama3", "debug")));
  const std::string path = folder.Write("jobs/a.toml",
                                        "[model]\nconfig = \"~/m/config.json\"\n[data]\npath = \"~/text/\"\n"
                                        "[checkpoint]\nfolder = \"~\"\ninitial = \"~/old\"\n");
  auto file = LoadJobFile(path, {});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->config.data.path, folder / "text");
  EXPECT_EQ(file->config.checkpoint.folder, folder.path());
  EXPECT_EQ(file->config.checkpoint.initial, folder / "old");
  EXPECT_EQ(ResolveModel(file->config)->num_layers, ModelFlavor("llama3", "debug")->num_layers);
  EXPECT_EQ(LoadJobFile(path, {"data.path=~/other"})->config.data.path, folder / "other");
}

TEST(JobFileTest, WhatIsNoPathIsRefusedByItsKey) {
  const std::string text = "[data]\npath = \"s3://b/x.txt\"\n[checkpoint]\nfolder = \"$HOME/ck\"\ninitial = \"~bob/ck\"\n";
  EXPECT_THAT(std::string(ParseJobFile(text, "job.toml", {}).status().message()),
              testing::MatchesRegex(
                  "job.toml:2: data.path: 's3://b/x.txt' is a URL [^\n]*\n"
                  "job.toml:4: checkpoint.folder: '.HOME/ck' holds a variable of the shell; write the whole path[^\n]*\n"
                  "job.toml:5: checkpoint.initial: '~bob/ck' begins with '~'; write the whole path[^\n]*"));
  EXPECT_THAT(Error("", {"data.path=/data/*.txt"}), testing::StartsWith("--set: data.path: '/data/*.txt' is a pattern (*)"));
  EXPECT_THAT(Error("", {"data.validation_path=gs://b/x"}),
              testing::StartsWith("--set: data.validation_path: 'gs://b/x' is a URL"));
  EXPECT_THAT(Error("[model]\nconfig = \"https://a.org/config.json\"\n"),
              testing::StartsWith("job.toml:2: model.config: 'https://a.org/config.json' is a URL"));
}

// A request that no client has read: what is absolute is a folder of that name in a job from before, and goes on.
TEST(JobFileTest, ProblemsOfWrittenPathsAreOfNewJobs) {
  JobConfig config;
  config.data.path = "/data/*.txt";
  config.checkpoint.folder = "/home/ada/~/ck";
  EXPECT_TRUE(Validate(config).ok()) << Validate(config);
  EXPECT_THAT(ProblemsOfWrittenPaths(config), testing::ElementsAre(testing::StartsWith("data.path: '/data/*.txt' is a pattern"),
                                                                   testing::StartsWith("checkpoint.folder: ")));
  config.data.path = "hf://datasets/x";
  EXPECT_THAT(std::string(Validate(config).message()), testing::StartsWith("data.path: 'hf://datasets/x' is a URL"));
}

TEST(JobFileTest, ModelConfigIsRead) {
  TempFolder folder;
  ModelShape shape = *ModelFlavor("llama3", "debug");
  shape.num_layers = 3;
  folder.Write("m/config.json", ToHfConfig(shape));
  const std::string path = folder.Write("a.toml", std::string("[model]\nconfig = \"m/config.json\"\n") + kPaths);
  auto file = LoadJobFile(path, {});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*ResolveModel(file->config), shape);
  EXPECT_EQ(file->origins["model.config_json"], folder / "m/config.json");
  folder.Write("m/config.json", "{\"model_type\": \"bert\"}");
  EXPECT_NE(std::string(LoadJobFile(path, {}).status().message()).find("m/config.json"), std::string::npos);
  const absl::Status missing =
      LoadJobFile(folder.Write("b.toml", std::string("[model]\nconfig = \"none.json\"\n") + kPaths), {}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(missing.message()).find("b.toml:2: model.config"), std::string::npos) << missing;
}

TEST(JobFileTest, AnEmptyModelConfigIsSaidToBeSo) {
  TempFolder folder;
  folder.Write("config.json", "");
  const std::string path = folder.Write("a.toml", std::string("[model]\nconfig = \"config.json\"\n") + kPaths);
  EXPECT_EQ(std::string(LoadJobFile(path, {}).status().message()),
            path + ":2: model.config " + (folder / "config.json") + ": it is empty; download it again");
}

TEST(JobFileTest, AnIdOfTheHubIsNoConfig) {
  const absl::Status status =
      ParseJobFile(std::string("[model]\nconfig = \"meta-llama/Llama-3.1-8B\"\n") + kPaths, "/nowhere/a.toml", {}).status();
  EXPECT_THAT(std::string(status.message()), testing::StartsWith("/nowhere/a.toml:2: model.config: "));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("download that file first (hf download ID config.json)"));
}

TEST(JobFileTest, EachReasonAgainstAModelIsALine) {
  TempFolder folder;
  folder.Write("config.json", kGemma2Config);
  const std::string path = folder.Write("a.toml", std::string("[model]\nconfig = \"config.json\"\n") + kPaths);
  const std::string file = path + ":2: model.config " + (folder / "config.json");
  EXPECT_THAT(std::string(LoadJobFile(path, {}).status().message()),
              testing::StartsWith(file + ": model_type \"gemma2\" can be planned but not trained"));
  std::string llama = kLlama32Config;
  llama.replace(llama.find("\"silu\""), 6, "\"gelu\"");
  llama.replace(llama.find("\"llama3\""), 8, "\"yarn\"");
  folder.Write("config.json", llama);
  EXPECT_THAT(std::string(LoadJobFile(path, {}).status().message()),
              testing::AllOf(testing::StartsWith(file + ": hidden_act \"gelu\""),
                             testing::HasSubstr("\n" + file + ": rope_scaling with rope_type \"yarn\"")));
}

TEST(JobFileTest, TheModelOfAHuggingFaceFolderIsItsOwn) {
  TempFolder folder;
  ModelShape shape = *ModelFlavor("llama3", "debug");
  shape.num_layers = 3;
  folder.Write("base/config.json", ToHfConfig(shape));
  const std::string begin = "[training]\nseq_len = 64\n[checkpoint]\ninitial = \"base/\"\nfolder = \"/c\"\n";
  const std::string path = folder.Write("a.toml", begin + "[data]\npath = \"/data/text\"\n");
  auto file = LoadJobFile(path, {});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*ResolveModel(file->config), shape);
  EXPECT_EQ(file->config.checkpoint.initial, folder / "base");
  EXPECT_EQ(file->config.model.config, folder / "base/config.json");
  EXPECT_EQ(file->origins["model.config"], path + ":4");
  // The same, said twice; and another one.
  folder.Write("same.json", ToHfConfig(shape));
  EXPECT_TRUE(LoadJobFile(path, {"model.config=" + (folder / "same.json")}).ok());
  absl::Status status = LoadJobFile(path, {"model.name=llama3", "model.flavor=debug"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::StartsWith(path + ":4: checkpoint.initial: " + (folder / "base/config.json") +
                                                 " is of another model, with "),
                             testing::HasSubstr(": it has num_hidden_layers 3 and not 2; leave out [model]")));
  status = LoadJobFile(path, {"model.name=gpt2", "model.flavor=124M"}).status();
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(": it has model_type \"llama\" and not \"gpt2\"; leave out"));
  // What is wrong with the folder's model is said of the key.
  folder.Write("base/config.json", R"({"model_type": "gemma3", "text_config": {}})");
  EXPECT_THAT(std::string(LoadJobFile(path, {}).status().message()),
              testing::StartsWith(path + ":4: checkpoint.initial: " + (folder / "base/config.json") + " has a text_config"));
  folder.Write("base/config.json", absl::StrReplaceAll(ToHfConfig(shape), {{R"("mlp_bias": false)", R"("mlp_bias": true)"}}));
  EXPECT_THAT(std::string(LoadJobFile(path, {}).status().message()), testing::StartsWith(path + ":4: model.config "));
}

TEST(JobFileTest, FoldersThatAreNotSeenHereAndCheckpointsSayNoModel) {
  TempFolder folder;
  folder.Write("job/step-00000040-gen-3/manifest.json", "{}");
  folder.Write("job/config.json", "{}");
  for (const std::string& initial : {std::string("/nowhere/base"), folder / "job", folder / "job/step-00000040-gen-3"}) {
    const auto file = ParseJobFile(kPaths, "job.toml", {"checkpoint.initial=" + initial});
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->config.model, ModelSection());
    const std::vector<std::string> notes = {
        "checkpoint.initial: /nowhere/base is not here, and the job says no model, so that it is gpt2's debug; correct the path, "
        "or "
        "say the model (model.config: a copy of its config.json)"};
    EXPECT_EQ(file->notes, initial == "/nowhere/base" ? notes : std::vector<std::string>());
  }
  // A sequence that is too long for a model that nobody asked for.
  EXPECT_THAT(Error("", {"checkpoint.initial=/nowhere/base", "training.seq_len=1024"}),
              testing::AllOf(testing::HasSubstr("training.seq_len must be at most 256"),
                             testing::HasSubstr("checkpoint.initial: /nowhere/base is not here")));
  EXPECT_THAT(Error("", {"checkpoint.initial=/nowhere/base", "training.seq_len=1024", "model.name=gpt2"}),
              testing::Not(testing::HasSubstr("is not here")));
  folder.Write("hub/blobs/a", "x"), folder.Write("hub/snapshots/one/config.json", "{}");
  folder.Write("hub/snapshots/two/config.json", "{}");
  EXPECT_THAT(Error("", {"checkpoint.initial=" + (folder / "hub")}), testing::HasSubstr("holds 2 revisions of one model"));
}

TEST(JobFileTest, MissingFileIsNamed) {
  const absl::Status status = LoadJobFile("/nowhere/job.toml", {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(status.message()).find("/nowhere/job.toml"), std::string::npos);
}

TEST(JobFileTest, ExamplesAreValid) {
  for (const char* name : {"gpt-text.toml", "llama-text.toml"}) {
    auto file = LoadJobFile(SourceFolder() + "/deploy/examples/" + name, {});
    EXPECT_TRUE(file.ok()) << file.status();
  }
}

}  // namespace
}  // namespace motley
