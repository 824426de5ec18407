// resume, wait, delete and the listing's filters.
#include <gtest/gtest.h>

#include <filesystem>

#include "nlohmann/json.hpp"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

using nlohmann::json;

v1::Job& AddStopped(FakeMotley& fake) {
  v1::Job& job = fake.AddJob("j", v1::JOB_STATE_STOPPED);
  job.set_step(2);
  job.set_newest_checkpoint("/c/j/step-00000002-gen-3");
  job.mutable_spec()->mutable_data()->set_path("/data");
  job.mutable_spec()->mutable_checkpoint()->set_folder("/c");
  return job;
}

TEST(ResumeTest, SendsTheChangedSettings) {
  FakeMotley fake;
  AddStopped(fake);
  const Ran ran = Motley(fake, {"resume", "--set", "training.steps=9", "j", "--set", "checkpoint.interval=4"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "job j goes on from /c/j/step-00000002-gen-3 to step 9\n");
  ASSERT_EQ(fake.resumed.size(), 1u);
  EXPECT_EQ(fake.resumed[0].changes().training().steps(), 9);
  EXPECT_EQ(fake.resumed[0].changes().checkpoint().interval(), 4);
  EXPECT_EQ(fake.resumed[0].changes().data().path(), "/data");
}

// As at submit, and the job's own stay letter by letter.
TEST(ResumeTest, PathsAfterSetCountFromTheCurrentFolder) {
  FakeMotley fake;
  AddStopped(fake).mutable_spec()->mutable_data()->set_path("/data/");
  ASSERT_EQ(Motley(fake, {"resume", "j", "--set", "checkpoint.folder=c/../d/"}).code, 0);
  const v1::JobSpec& changes = fake.resumed.at(0).changes();
  EXPECT_EQ(changes.checkpoint().folder(), std::filesystem::current_path() / "d");
  EXPECT_EQ(changes.data().path(), "/data/");
}

TEST(ResumeTest, WithoutSettingsItSendsNone) {
  FakeMotley fake;
  AddStopped(fake);
  EXPECT_EQ(Motley(fake, {"resume", "j"}).out, "job j goes on from /c/j/step-00000002-gen-3 to step 3\n");
  EXPECT_FALSE(fake.resumed.at(0).has_changes());
}

// What it begins with is found when its turn has come.
TEST(ResumeTest, OfAJobWithoutACheckpointItSaysWhatMayBeAdopted) {
  FakeMotley fake;
  v1::Job& job = AddStopped(fake);
  job.clear_newest_checkpoint();
  EXPECT_EQ(Motley(fake, {"resume", "j"}).out,
            "job j begins again from the initial weights to step 3, unless /c/j/adopt names a checkpoint\n");
  job.set_state(v1::JOB_STATE_FAILED);
  job.mutable_spec()->mutable_checkpoint()->set_initial("/old");
  EXPECT_EQ(Motley(fake, {"resume", "j"}).out,
            "job j begins again from the weights of /old to step 3, unless /c/j/adopt names a checkpoint\n");
  job.set_state(v1::JOB_STATE_FAILED);
  job.mutable_spec()->clear_checkpoint();
  EXPECT_EQ(Motley(fake, {"resume", "j"}).out, "job j begins again from the initial weights to step 3\n");
}

TEST(ResumeTest, SaysBehindWhomItWaits) {
  FakeMotley fake;
  AddStopped(fake).set_reason("waits for job other, which has the cluster");
  const Ran ran = Motley(fake, {"resume", "j"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("\nit is queued: waits for job other, which has the cluster\n"), std::string::npos) << ran.out;
}

TEST(ResumeTest, MistakesAreNamed) {
  FakeMotley fake;
  AddStopped(fake);
  const Ran key = Motley(fake, {"resume", "j", "--set", "training.stesp=9"});
  EXPECT_EQ(key.code, 65);
  EXPECT_NE(key.err.find("did you mean 'training.steps'?"), std::string::npos) << key.err;
  EXPECT_TRUE(fake.resumed.empty());
  EXPECT_EQ(Motley(fake, {"resume", "nobody"}).code, 66);
  fake.refusal = {grpc::StatusCode::INVALID_ARGUMENT, "training.seed of a job may not change"};
  const Ran refused = Motley(fake, {"resume", "j", "--set", "training.seed=9"});
  EXPECT_EQ(refused.code, 65);
  EXPECT_NE(refused.err.find("training.seed"), std::string::npos);
  fake.refusal = grpc::Status::OK;
  fake.jobs["j"].set_state(v1::JOB_STATE_RUNNING);
  const Ran running = Motley(fake, {"resume", "j"});
  EXPECT_EQ(running.code, 1);
  EXPECT_EQ(running.err, "motley: job j has not ended: running at step 2 of 3\n");
}

TEST(WaitTest, ExitsAsTheJobEnds) {
  FakeMotley fake;
  fake.AddJob("good", v1::JOB_STATE_SUCCEEDED);
  fake.AddRun("good", 3);
  fake.AddJob("bad", v1::JOB_STATE_FAILED).set_reason("loss is NaN");
  fake.AddRun("bad", 1);
  const Ran good = Motley(fake, {"wait", "good"});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(good.out, "job good succeeded at step 3 of 3, loss 2.0000\n");
  const Ran bad = Motley(fake, {"wait", "bad", "--timeout", "100"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_NE(bad.err.find("loss is NaN"), std::string::npos);
  EXPECT_EQ(json::parse(Motley(fake, {"-o", "json", "wait", "good"}).out)["state"], "succeeded");
  EXPECT_EQ(Motley(fake, {"wait", "nobody"}).code, 66);
}

TEST(WaitTest, GivesUpAfterTheTimeout) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_RUNNING).set_step(2);
  fake.AddRun("j", 2);
  const Ran ran = Motley(fake, {"wait", "j", "--timeout", "0.01"});
  EXPECT_EQ(ran.code, 75);
  EXPECT_NE(ran.err.find("job j has not ended within 0.010 s: running at step 2 of 3\n"), std::string::npos) << ran.err;
  EXPECT_EQ(Motley(fake, {"wait", "j", "--timeout", "-1"}).code, 64);
}

TEST(WaitTest, AnEarlierEndOfAResumedJobIsNotItsEnd) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_STOPPED);
  fake.AddRun("j", 1);
  fake.jobs["j"].set_state(v1::JOB_STATE_RUNNING);
  fake.AddRun("j", 2);
  fake.jobs["j"].set_state(v1::JOB_STATE_SUCCEEDED);
  fake.breaks = {{5, grpc::Status::OK}};  // behind the state RUNNING: the coordinator went down
  fake.AddRun("j", 3);
  EXPECT_EQ(Motley(fake, {"wait", "j"}).code, 0);
  EXPECT_EQ(fake.watch_cursors.size(), 2u) << "the first stream had shown the old end and what came after it";
}

TEST(StatusTest, AJobThatWasResumedSaysWhen) {
  FakeMotley fake;
  v1::Job& job = AddStopped(fake);
  job.set_submitted_unix_ms(1000);
  job.set_started_unix_ms(2000);
  EXPECT_NE(Motley(fake, {"status", "j"}).out.find("\nsubmitted   "), std::string::npos);
  job.set_submitted_unix_ms(3000);
  const std::string out = Motley(fake, {"status", "j"}).out;
  EXPECT_NE(out.find("\nresumed     "), std::string::npos) << out;
  EXPECT_EQ(out.find("submitted"), std::string::npos) << out;
}

TEST(StatusTest, SaysWhatWaitsInTheHostsMemory) {
  FakeMotley fake;
  v1::StepRecord& step = *AddStopped(fake).mutable_last_step();
  step.set_step(2);
  EXPECT_EQ(Motley(fake, {"status", "j"}).out.find("host memory"), std::string::npos);
  EXPECT_EQ(json::parse(Motley(fake, {"status", "j", "-o", "json"}).out)["last_step"]["host_memory_bytes"], nullptr);
  step.set_host_memory_bytes(3 << 20);
  step.set_planned_host_memory_bytes(4 << 20);
  const std::string out = Motley(fake, {"status", "j"}).out;
  EXPECT_NE(out.find("\nhost memory 3.0 MiB for what waits there (planned 4.0 MiB), of all ranks together\n"), std::string::npos)
      << out;
  const json parsed = json::parse(Motley(fake, {"status", "j", "-o", "json"}).out)["last_step"];
  EXPECT_EQ(parsed["host_memory_bytes"], 3 << 20);
  EXPECT_EQ(parsed["planned_host_memory_bytes"], 4 << 20);
}

TEST(DeleteTest, NamesWhatStays) {
  FakeMotley fake;
  AddStopped(fake);
  const Ran ran = Motley(fake, {"delete", "j"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "job j is deleted\nits checkpoints stay in /checkpoints/j, and 'motley export --checkpoint' exports them\n"
            "a new job of this id is refused there, but goes on from them after: echo 0a1b >'/checkpoints/j/adopt'\n");
  EXPECT_EQ(Motley(fake, {"delete", "j"}).code, 66);
  AddStopped(fake).clear_newest_checkpoint();
  EXPECT_EQ(Motley(fake, {"delete", "j"}).out, "job j is deleted\n") << "it never wrote one";
  AddStopped(fake);
  fake.lose_answers = 1;
  EXPECT_EQ(Motley(fake, {"delete", "j"}).code, 0) << "its own retry finds nothing any more";
  fake.refusal = {grpc::StatusCode::FAILED_PRECONDITION, "job j has not ended"};
  EXPECT_EQ(Motley(fake, {"delete", "j"}).code, 65);
}

TEST(ListTest, AsksForStatesAndTheNewest) {
  FakeMotley fake;
  for (const char* id : {"a", "b", "c", "d"}) fake.AddJob(id, v1::JOB_STATE_FAILED);
  const Ran ran = Motley(fake, {"list", "--state", "failed", "--state", "stopped", "--limit", "3"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  ASSERT_EQ(fake.listed.size(), 2u) << "pages of two";
  EXPECT_EQ(fake.listed[0].states(0), v1::JOB_STATE_FAILED);
  EXPECT_EQ(fake.listed[0].states(1), v1::JOB_STATE_STOPPED);
  EXPECT_TRUE(fake.listed[0].newest_first());
  EXPECT_EQ(fake.listed[0].page_size(), 3);
  EXPECT_EQ(fake.listed[1].page_size(), 1);
  EXPECT_LT(ran.out.find("\nb "), ran.out.find("\na ")) << "oldest first, as always";
  EXPECT_EQ(Motley(fake, {"list", "--state", "lost"}).code, 64);
}

}  // namespace
}  // namespace motley::client
