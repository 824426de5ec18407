// Commands that read or write files: config, plan, export.
#include <gtest/gtest.h>

#include "coordinator/client/card_facts.h"
#include "nlohmann/json.hpp"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

using nlohmann::json;

TEST(ConfigCommandTest, CheckAndShow) {
  TempFolder folder;
  FakeMotley fake;
  const std::string file =
      folder.Write("j.toml", "[training]\nsteps = 3\n[data]\npath = \"text\"\n[checkpoint]\nfolder = \"out\"\n");
  const Ran check = Motley(fake, {"config", "check", file});
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_NE(check.out.find("is valid"), std::string::npos);
  const Ran show = Motley(fake, {"config", "show", file, "--set", "optimizer.lr=0.5"});
  EXPECT_NE(show.out.find("steps = 3"), std::string::npos);
  EXPECT_NE(show.out.find("# " + file + ":2"), std::string::npos) << show.out;
  EXPECT_NE(show.out.find("# --set"), std::string::npos);
  EXPECT_NE(show.out.find("# default"), std::string::npos);
  bool found = false;
  const json parsed = json::parse(Motley(fake, {"-o", "json", "config", "show", file}).out);
  for (const json& value : parsed["values"]) {
    if (value["key"] != "training.steps") continue;
    found = true;
    EXPECT_EQ(value["value"], 3);
    EXPECT_EQ(value["origin"], file + ":2");
  }
  EXPECT_TRUE(found);
  folder.Write("j.toml", "[training]\nsteps = 0\nfoo = 1\n");
  const Ran bad = Motley(fake, {"config", "check", file});
  EXPECT_EQ(bad.code, 65);
  EXPECT_NE(bad.err.find("motley: " + file + ":3: unknown key 'foo'"), std::string::npos) << bad.err;
  EXPECT_NE(bad.err.find("motley: " + file + ":2: training.steps must be"), std::string::npos) << bad.err;
  folder.Write("j.toml", "[planner]\nstrategy = \"Zorse\"\npins = \"here\"\n[training]\nsteps = 0\n");
  const Ran words = Motley(fake, {"config", "check", file});
  EXPECT_EQ(words.code, 65);
  EXPECT_NE(words.err.find("motley: " + file + ":2: planner.strategy: "), std::string::npos) << words.err;
  EXPECT_NE(words.err.find("motley: " + file + ":3: planner.pins: 'here' must be"), std::string::npos) << words.err;
  EXPECT_NE(words.err.find("motley: " + file + ":5: training.steps must be"), std::string::npos) << words.err;
  EXPECT_EQ(Motley(fake, {"config", "check", folder / "absent"}).code, 66);
  EXPECT_EQ(Motley(fake, {"config", "check", folder / ""}).code, 66) << "a directory";
}

TEST(ConfigCommandTest, CheckRefusesWhatOnlyAShellReads) {
  TempFolder folder;
  FakeMotley fake;
  const std::string file = folder.Write("j.toml", "[data]\npath = \"text\"\n[checkpoint]\nfolder = \"$HOME/ck\"\n");
  const Ran check = Motley(fake, {"config", "check", file, "--set", "data.path=s3://b/x.txt"});
  EXPECT_EQ(check.code, 65);
  EXPECT_NE(check.err.find("checkpoint.folder: '$HOME/ck' holds a variable of the shell; write the whole path"),
            std::string::npos)
      << check.err;
  EXPECT_NE(check.err.find("data.path: 's3://b/x.txt' is a URL"), std::string::npos) << check.err;
  EXPECT_EQ(Motley(fake, {"submit", file}).code, 65);
}

// Behind an equals sign no shell replaces the home.
TEST(PathFlagsTest, HomesAndUrlsInFlags) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_RUNNING);
  const Ran wrong = Motley(fake, {"export", "j", "--out=~bob/x"});
  EXPECT_EQ(wrong.code, 64);
  EXPECT_NE(wrong.err.find("'~bob/x' begins with '~'; write the whole path"), std::string::npos) << wrong.err;
  EXPECT_EQ(Motley(fake, {"export", "j", "--out=s3://b/x"}).code, 64);
}

TEST(PlanCommandTest, TextExplanationProgramsTraceAndJson) {
  TempFolder folder;
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_RUNNING);
  fake.plan.set_epoch(2);
  fake.plan.set_plan_text("the plan\n");
  fake.plan.set_explanation("because\n");
  fake.plan.set_plan_json("{\"strategy\":\"cephalo\"}");
  fake.plan.set_trace_json("{\"traceEvents\":[]}");
  fake.plan.add_programs("program 6\n");
  EXPECT_EQ(Motley(fake, {"plan", "j"}).out, "the plan\n");
  EXPECT_EQ(Motley(fake, {"plan", "j", "--explain", "--programs"}).out, "because\n\nprogram 6\n");
  const std::string trace = folder / "trace.json";
  EXPECT_EQ(Motley(fake, {"plan", "j", "--trace", trace}).code, 0);
  EXPECT_EQ(TempFolder::Read(trace), "{\"traceEvents\":[]}");
  EXPECT_EQ(Motley(fake, {"plan", "j", "--trace", folder / "no/such/folder"}).code, 73);
  const json parsed = json::parse(Motley(fake, {"-o", "json", "plan", "j"}).out);
  EXPECT_EQ(parsed["plan"]["strategy"], "cephalo");
  EXPECT_EQ(parsed["programs"][0], "program 6\n");
}

TEST(PlanCommandTest, TheScheduleInForce) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_RUNNING);
  fake.plan.set_plan_text("the plan\n");
  fake.plan.set_plan_json(
      R"({"schema_version": 3, "schedule": "gpipe", "pipelines": [{"stages": [{"ministages": [[0, 3]], "units": [
      {"ranks": [{"device": "n1/gpu0", "shard_ratio": 0.5}], "microbatches": [2, 1]},
      {"ranks": [{"device": "n2/gpu0", "shard_ratio": 0.5}], "microbatches": []}]}]}],
      "schedules": {"training": [{"stage_of": [0], "stages": [{"actions": "0F0 0F1 0B0 0B1", "classes": [
        {"devices": ["n1/gpu0"], "microbatches": "2@0 1@2"}, {"devices": ["n2/gpu0"], "microbatches": ""}]}]}]}})");
  EXPECT_EQ(Motley(fake, {"plan", "j", "--schedule"}).out,
            "the plan\n\n"
            "training, gpipe\n"
            "  virtual stage 0: stage 0, layers 0-3, the embedding, the head\n"
            "  stage 0: 2 rounds, microbatch by microbatch\n"
            "    n1/gpu0  samples 2@0 1@2\n"
            "      0F0 0F1 0B0 0B1\n"
            "    n2/gpu0  computes nothing\n");
  fake.plan.set_plan_json(R"({"schema_version": 2, "pipelines": []})");
  EXPECT_EQ(Motley(fake, {"plan", "j", "--schedule"}).out,
            "the plan\n\nthe plan has no schedule: it was not finished, or made by an older motley\n");
}

// In the middle of a file: its size stays.
void FlipByte(const std::string& path) {
  std::string bytes = TempFolder::Read(path);
  ASSERT_FALSE(bytes.empty());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(ExportCommandTest, OfAJobItTakesItsOwn) {
  TempFolder root;
  FakeMotley fake;
  v1::Job& job = fake.AddJob("job-1", v1::JOB_STATE_RUNNING);
  ASSERT_TRUE(WriteTestCheckpoint(root / "c", 20, TinyModel(true), 0.5, NewestEpoch(3, kOneUid)).ok());
  ASSERT_TRUE(WriteTestCheckpoint(root / "c", 40, TinyModel(true), 0.5, NewestEpoch(4, kOtherUid)).ok());
  job.set_newest_checkpoint(root / ("c/" + NameOf(20)));
  job.set_uid(kOneUid.value());
  const Ran ran = Motley(fake, {"export", "job-1", "--out", root / "out"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("step 20 of job job-1"), std::string::npos) << ran.out;
  EXPECT_NE(ran.err.find("was made by job 'job-1' (uid 2222"), std::string::npos) << ran.err;
}

// Of another cluster from before uids, and a copy to a higher number.
TEST(ExportCommandTest, WithoutAUidItIsTheJobsWhereTheCoordinatorSaysSo) {
  TempFolder root;
  FakeMotley fake;
  v1::Job& job = fake.AddJob("job-1", v1::JOB_STATE_RUNNING);
  ASSERT_TRUE(WriteTestCheckpoint(root / "c", 20, TinyModel(true), 0.5, NewestEpoch(3, kOneUid)).ok());
  ASSERT_TRUE(WriteTestCheckpoint(root / "c", 40, TinyModel(true), 0.5, NewestEpoch(4)).ok());
  std::filesystem::copy(root / ("c/" + NameOf(20)), root / ("c/" + CheckpointFolderName(20, 9)),
                        std::filesystem::copy_options::recursive);
  job.set_newest_checkpoint(root / ("c/" + NameOf(20)));
  job.set_uid(kOneUid.value());
  const Ran ran = Motley(fake, {"export", "job-1", "--out", root / "own"});
  EXPECT_NE(ran.out.find("step 20 of job job-1"), std::string::npos) << ran.out << ran.err;
  EXPECT_NE(ran.err.find(CheckpointFolderName(20, 9) + " was renamed"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("was made by job 'job-1', and not by job 'job-1' (uid 1111"), std::string::npos) << ran.err;
  job.set_owns_unnamed_checkpoints(true);
  const Ran both = Motley(fake, {"export", "job-1", "--out", root / "both"});
  EXPECT_NE(both.out.find("step 40 of job job-1"), std::string::npos) << both.out << both.err;
}

TEST(ExportCommandTest, OfAJobThatFailedItSaysWhy) {
  TempFolder root;
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_FAILED)
      .set_reason("/c/j holds checkpoints of other jobs alone: job 'j' (uid 2222), newest step 3");
  const Ran none = Motley(fake, {"export", "j", "--out", root / "out"});
  EXPECT_EQ(none.code, 65);
  EXPECT_NE(none.err.find("job j has no checkpoint, it is FAILED: /c/j holds checkpoints of other jobs alone"), std::string::npos)
      << none.err;
  EXPECT_EQ(none.err.find("checkpoint.interval"), std::string::npos) << none.err;
}

TEST(ExportCommandTest, WritesTheNewestThatVerifies) {
  TempFolder root;
  FakeMotley fake;
  v1::Job& job = fake.AddJob("j", v1::JOB_STATE_RUNNING);
  const Ran none = Motley(fake, {"export", "j", "--out", root / "out"});
  EXPECT_EQ(none.code, 65);
  EXPECT_NE(none.err.find("no checkpoint yet"), std::string::npos);
  for (const int64_t step : {20, 40}) ASSERT_TRUE(WriteTestCheckpoint(root / "c", step, TinyModel(true), 0.5).ok());
  root.Write("c/" + NameOf(40) + "/rank-0.bin", "short");
  job.set_newest_checkpoint(root / ("c/" + NameOf(40)));
  const Ran ran = Motley(fake, {"export", "j", "--out", root / "out"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("rank-0.bin is cut off"), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("step 20 of job j"), std::string::npos) << ran.out;
  EXPECT_FALSE(TempFolder::Read(root / "out/model.safetensors").empty());
  EXPECT_EQ(Motley(fake, {"export", "j", "--out", root / "out"}).code, 73);
  root.Write("file", "somebody's");
  for (const char* out : {"file", "file/x"}) {
    const Ran taken = Motley(fake, {"export", "j", "--out", root / out});
    EXPECT_EQ(taken.code, 73) << taken.err;
    EXPECT_EQ(taken.err.find("run this where"), std::string::npos) << taken.err;
  }
  job.set_newest_checkpoint("/not/mounted/step-00000040-gen-3");
  const Ran elsewhere = Motley(fake, {"export", "j", "--out", root / "other"});
  EXPECT_EQ(elsewhere.code, 66);
  EXPECT_NE(elsewhere.err.find("run this where"), std::string::npos);
}

TEST(ExportCommandTest, AnAlteredCheckpointIsLeftOutForTheOneBefore) {
  TempFolder root;
  FakeMotley fake;
  for (const int64_t step : {20, 40}) ASSERT_TRUE(WriteTestCheckpoint(root / "c", step, TinyModel(true), 0.5).ok());
  FlipByte(root / ("c/" + NameOf(40) + "/rank-0.bin"));
  fake.AddJob("j", v1::JOB_STATE_SUCCEEDED).set_newest_checkpoint(root / ("c/" + NameOf(40)));
  const Ran ran = Motley(fake, {"export", "j", "--out", root / "out"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("left out: " + (root / ("c/" + NameOf(40))) + "/rank-0.bin was altered"), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("step 20 of job j"), std::string::npos) << ran.out;
  FlipByte(root / ("c/" + NameOf(20) + "/rank-0.bin"));
  const Ran none = Motley(fake, {"export", "j", "--out", root / "none"});
  EXPECT_EQ(none.code, 65);
  EXPECT_NE(none.err.find("rank-0.bin was altered"), std::string::npos) << none.err;
  EXPECT_FALSE(std::filesystem::exists(root / "none"));
}

TEST(ExportCommandTest, TheCardSaysWhatTheCoordinatorKnows) {
  TempFolder root;
  FakeMotley fake;
  ASSERT_TRUE(WriteTestCheckpoint(root / "c", 2, TinyModel(true), 0.5).ok());
  v1::Job& job = fake.AddJob("job-1", v1::JOB_STATE_SUCCEEDED);
  job.mutable_spec()->set_name("our books");
  job.mutable_spec()->mutable_training()->set_seq_len(8);
  job.mutable_spec()->mutable_training()->set_global_batch_size(4);
  job.mutable_spec()->mutable_data()->set_path("/data/books/");
  job.mutable_spec()->mutable_data()->set_validation_path("/data/held-out.txt");
  job.mutable_spec()->mutable_checkpoint()->set_initial("/models/models--Some--Model/snapshots/0a1b");
  fake.AddRun("job-1", 3);
  fake.updates["job-1"][0].mutable_step()->set_has_validation_loss(true);
  fake.updates["job-1"][0].mutable_step()->set_validation_loss(1.5);
  job.set_newest_checkpoint(root / ("c/" + NameOf(2)));
  const Ran ran = Motley(fake, {"export", "job-1", "--out", root / "out"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string card = TempFolder::Read(root / "out/README.md");
  for (const char* words :
       {"base_model: \"Some/Model\"\n", "\n# our books\n", "| job | job-1 |", "| exported | 20", "| base model | Some/Model |",
        "| data | books, digest ", "| validation data | held-out.txt |", "| steps | 2 |", "| tokens trained | 64 (",
        "| training loss | 3 at step 2 |", "| validation loss | 1.5 (perplexity 4.48169) at step 1 |"}) {
    EXPECT_NE(card.find(words), std::string::npos) << words << " in\n" << card;
  }
  // Of what it adopted the coordinator knows nothing.
  ASSERT_TRUE(WriteTestCheckpoint(root / "adopted", 2, TinyModel(true), 0.5, NewestEpoch(3, kOneUid)).ok());
  job.set_newest_checkpoint(root / ("adopted/" + NameOf(2)));
  job.set_uid(kOtherUid.value());
  ASSERT_EQ(Motley(fake, {"export", "job-1", "--out", root / "other"}).code, 0);
  EXPECT_EQ(TempFolder::Read(root / "other/README.md").find("books"), std::string::npos);
  const Ran alone = MotleyAlone({"export", "--checkpoint", root / "c", "--out", root / "alone"});
  ASSERT_EQ(alone.code, 0) << alone.err;
  const std::string offline = TempFolder::Read(root / "alone/README.md");
  EXPECT_NE(offline.find("\n# job-1\n"), std::string::npos) << offline;
  EXPECT_NE(offline.find("| exported | 20"), std::string::npos) << offline;
  for (const char* unknown : {"base_model", "loss", "tokens", "books"})
    EXPECT_EQ(offline.find(unknown), std::string::npos) << offline;
}

// A path of checkpoints or the id of a job names no model.
TEST(ExportCommandTest, TheBaseIsNamedByItsFolder) {
  TempFolder root;
  root.Write("qwen/config.json", "{}");
  ASSERT_TRUE(WriteTestCheckpoint(root / "chats", 2, TinyModel(true), 0.5).ok());
  EXPECT_EQ(BaseModelName(root / "qwen/"), "qwen");
  EXPECT_EQ(BaseModelName(root / "chats"), "");
  EXPECT_EQ(BaseModelName("chats"), "");
  EXPECT_EQ(BaseModelName(""), "");
  EXPECT_EQ(BaseModelName("/on/nodes/alone/Llama-3.2-1B"), "Llama-3.2-1B");
  EXPECT_EQ(BaseModelName("/hub/models--meta-llama--Llama-3.2-1B"), "meta-llama/Llama-3.2-1B");
}

TEST(ExportCommandTest, AFolderNeedsNoCoordinator) {
  TempFolder root;
  for (const int64_t step : {20, 40}) ASSERT_TRUE(WriteTestCheckpoint(root / "jobs/c", step, TinyModel(true), 0.5).ok());
  const auto offline = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "export");
    return MotleyAlone(arguments);
  };
  const Ran newest = offline({"--checkpoint", root / "jobs/c", "--out", root / "newest", "--json"});
  EXPECT_EQ(newest.code, 0) << newest.err;
  EXPECT_EQ(json::parse(newest.out),
            (json{{"job_id", "job-1"}, {"step", 40}, {"checkpoint", root / ("jobs/c/" + NameOf(40))}, {"out", root / "newest"}}));
  EXPECT_FALSE(TempFolder::Read(root / "newest/model.safetensors").empty());
  const Ran one = offline({"--checkpoint", root / ("jobs/c/" + NameOf(20)), "--out", root / "one"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_NE(one.out.find("step 20 of job job-1"), std::string::npos) << one.out;
  const Ran above = offline({"--checkpoint", root / "jobs", "--out", root / "above"});
  EXPECT_EQ(above.code, 66);
  EXPECT_NE(above.err.find("no checkpoint in " + (root / "jobs")), std::string::npos) << above.err;
  EXPECT_NE(above.err.find("give the folder of one job: " + (root / "jobs/c")), std::string::npos) << above.err;
  EXPECT_EQ(offline({"--checkpoint", root / "absent", "--out", root / "above"}).code, 66);
  // One checkpoint that was asked for is not exchanged for another.
  FlipByte(root / ("jobs/c/" + NameOf(40) + "/rank-0.bin"));
  const Ran altered = offline({"--checkpoint", root / ("jobs/c/" + NameOf(40)), "--out", root / "altered"});
  EXPECT_EQ(altered.code, 65);
  EXPECT_NE(altered.err.find("was altered"), std::string::npos) << altered.err;
  root.Write("jobs/c/" + NameOf(20) + "/manifest.json", "{");
  const Ran none = offline({"--checkpoint", root / "jobs/c", "--out", root / "none"});
  EXPECT_EQ(none.code, 65);
  EXPECT_NE(none.err.find("manifest.json"), std::string::npos) << none.err;
  EXPECT_FALSE(std::filesystem::exists(root / "none"));
}

TEST(ExportCommandTest, AJobOrAFolder) {
  FakeMotley fake;
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"export"}, {"export", "j", "--checkpoint", "c", "--out", "o"}, {"export", "--checkpoint", "c"}}) {
    EXPECT_EQ(Motley(fake, arguments).code, 64);
  }
}

}  // namespace
}  // namespace motley::client
