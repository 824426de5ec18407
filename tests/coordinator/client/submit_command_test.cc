#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/job/job_file.h"
#include "common/wire/job.h"
#include "nlohmann/json.hpp"
#include "tests/common/base/temp_folder.h"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

using nlohmann::json;

class SubmitTest : public testing::Test {
 protected:
  TempFolder folder_;
  FakeMotley fake_;
  std::string file_ =
      folder_.Write("My Job.toml", "[training]\nsteps = 3\n[data]\npath = \"text\"\n[checkpoint]\nfolder = \"out\"\n");
};

TEST_F(SubmitTest, SendsWhatTheFileSays) {
  const Ran ran = Motley(fake_, {"submit", "--set", "optimizer.lr=0.5", file_, "--job-id", "j-1", "--set", "training.seed=9"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "submitted job j-1\n");
  ASSERT_EQ(fake_.submitted.size(), 1u);
  EXPECT_EQ(fake_.submitted[0].job_id(), "j-1");
  const auto expected = LoadJobFile(file_, {"optimizer.lr=0.5", "training.seed=9"});
  EXPECT_EQ(wire::FromProto(fake_.submitted[0].spec()), expected->config);
  EXPECT_EQ(fake_.submitted[0].spec().data().path(), folder_ / "text");
  EXPECT_EQ(json::parse(Motley(fake_, {"-o", "json", "submit", file_, "--id", "j-2"}).out)["id"], "j-2");
}

// By itself, and as the answer of `motley plan JOB -o json` has it.
TEST_F(SubmitTest, TakesAPlanFromAFile) {
  const std::string plan = R"({"schedule": "1f1b", "cluster_file": "lab.toml", "pipelines": [{"stages": [{"units": [)"
                           R"({"ranks": [{"device": "n1/gpu0"}], "microbatches": [8]}]}]}]})";
  for (const std::string& text : {plan, absl::StrCat("{\"plan\": ", plan, "}")}) {
    const Ran ran = Motley(fake_, {"submit", file_, "--id", "j", "--plan", folder_.Write("plan.json", text)});
    EXPECT_EQ(ran.code, 0) << ran.err;
    const json sent = json::parse(fake_.submitted.back().spec().planner().plan_json());
    EXPECT_EQ(sent["schedule"], "1f1b");
    EXPECT_FALSE(sent.contains("cluster_file")) << "a path of this machine";
    EXPECT_EQ(sent["pipelines"][0]["stages"][0]["units"][0]["ranks"][0]["device"], "n1/gpu0");
  }
  const size_t before = fake_.submitted.size();
  const Ran wrong = Motley(fake_, {"submit", file_, "--plan", folder_.Write("wrong.json", R"({"pipelines": 3})")});
  EXPECT_EQ(wrong.code, 65);
  EXPECT_NE(wrong.err.find("wrong.json: "), std::string::npos) << wrong.err;
  EXPECT_EQ(Motley(fake_, {"submit", file_, "--plan", folder_ / "absent.json"}).code, 66);
  const std::string text = folder_.Write("plan.txt", "plan even batch 8 seq 32 float32 layered\n");
  const Ran printed = Motley(fake_, {"submit", file_, "--plan", text});
  EXPECT_EQ(printed.code, 65);
  EXPECT_NE(printed.err.find("plan.txt: this is a plan's text"), std::string::npos) << printed.err;
  EXPECT_EQ(fake_.submitted.size(), before);
}

TEST_F(SubmitTest, GeneratesDifferentValidIds) {
  std::set<std::string> ids;
  for (int i = 0; i < 20; ++i) ASSERT_EQ(Motley(fake_, {"submit", file_}).code, 0);
  for (const auto& request : fake_.submitted) ids.insert(request.job_id());
  EXPECT_EQ(ids.size(), 20u);
  for (const std::string& id : ids) EXPECT_TRUE(std::regex_match(id, std::regex("my-job-[a-z0-9]{6}"))) << id;
}

TEST_F(SubmitTest, BadFilesNeverReachTheCoordinator) {
  const Ran wrong = Motley(fake_, {"submit", file_, "--set", "training.stesp=1"});
  EXPECT_EQ(wrong.code, 65);
  EXPECT_NE(wrong.err.find("did you mean 'training.steps'?"), std::string::npos) << wrong.err;
  EXPECT_EQ(Motley(fake_, {"submit", folder_ / "absent.toml"}).code, 66);
  EXPECT_EQ(Motley(fake_, {"submit", folder_ / ""}).code, 66) << "a directory";
  EXPECT_TRUE(fake_.submitted.empty());
}

TEST_F(SubmitTest, RefusalsKeepTheCoordinatorsSentence) {
  fake_.refusal = {grpc::StatusCode::ALREADY_EXISTS, "job id 'j' is used by another job"};
  const Ran used = Motley(fake_, {"submit", file_, "--job-id", "j"});
  EXPECT_EQ(used.code, 65);
  EXPECT_EQ(used.err, "motley: job id 'j' is used by another job\n");
  fake_.refusal = {grpc::StatusCode::INVALID_ARGUMENT, "training.steps must be at least 1, got 0"};
  EXPECT_EQ(Motley(fake_, {"submit", file_}).code, 65);
}

TEST_F(SubmitTest, AJobThatIsTooLargeIsBadInputAndAFullDiskPasses) {
  fake_.refusal = {grpc::StatusCode::RESOURCE_EXHAUSTED, "Received message larger than max (90 vs. 64)"};
  EXPECT_EQ(Motley(fake_, {"submit", file_}).code, 65);
  fake_.refusal = {grpc::StatusCode::RESOURCE_EXHAUSTED, "the disk is full; free space on its disk"};
  EXPECT_EQ(Motley(fake_, {"submit", file_}).code, 75);
}

TEST_F(SubmitTest, ASecondSubmitOfAnEndedJobSaysSoAndHowToGoOn) {
  v1::Job& job = fake_.AddJob("j", v1::JOB_STATE_STOPPED);
  job.set_step(2);
  const Ran stopped = Motley(fake_, {"submit", file_, "--job-id", "j"});
  EXPECT_EQ(stopped.code, 1);
  EXPECT_EQ(stopped.out, "");
  EXPECT_EQ(stopped.err,
            "motley: job j exists: stopped at step 2 of 3\n"
            "motley: to go on with it: motley resume j; to begin anew: another --id\n");
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  const Ran done = Motley(fake_, {"submit", file_, "--job-id", "j"});
  EXPECT_NE(done.err.find("motley resume j --set training.steps=N"), std::string::npos) << done.err;
  job.set_state(v1::JOB_STATE_RUNNING);
  const Ran running = Motley(fake_, {"submit", file_, "--job-id", "j"});
  EXPECT_EQ(running.code, 0);
  EXPECT_EQ(running.out, "job j exists already: running at step 2 of 3\n");
}

TEST_F(SubmitTest, ItsOwnRetryIsNoSecondSubmit) {
  fake_.lose_answers = 1;
  const Ran ran = Motley(fake_, {"submit", file_, "--job-id", "j"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "submitted job j\n");
  EXPECT_EQ(fake_.submitted.size(), 2u);
}

TEST_F(SubmitTest, TheFirstVerdictIsTheCommandsOwnError) {
  const std::vector<std::pair<absl::StatusCode, int>> cases = {
      {absl::StatusCode::kNotFound, 66},          {absl::StatusCode::kPermissionDenied, 77},
      {absl::StatusCode::kResourceExhausted, 65}, {absl::StatusCode::kInvalidArgument, 65},
      {absl::StatusCode::kDataLoss, 65},          {absl::StatusCode::kOk, 1}};
  for (const auto& [code, exit] : cases) {
    const std::string id = absl::StrCat("j-", exit, "-", static_cast<int>(code));
    v1::JobUpdate& update = fake_.updates[id].emplace_back();
    update.set_cursor(1);
    update.mutable_job()->set_id(id);
    update.mutable_job()->set_state(v1::JOB_STATE_FAILED);
    update.mutable_job()->set_reason("node n1: no such file");
    update.mutable_job()->set_error_code(static_cast<int>(code));
    const Ran ran = Motley(fake_, {"submit", file_, "--job-id", id});
    EXPECT_EQ(ran.code, exit);
    EXPECT_EQ(ran.err, "motley: job " + id + " failed: node n1: no such file\n") << "once";
  }
}

TEST_F(SubmitTest, AJobThatWaitsSaysForWhat) {
  v1::JobUpdate& update = fake_.updates["j"].emplace_back();
  update.set_cursor(1);
  update.mutable_job()->set_state(v1::JOB_STATE_WAITING);
  update.mutable_job()->set_reason("no worker is connected");
  const Ran ran = Motley(fake_, {"submit", file_, "--job-id", "j"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "submitted job j\nit waits: no worker is connected\n");
}

// By what was asked, and not by a clock: nothing is to be heard of it before the other job has ended.
TEST_F(SubmitTest, AJobBehindAnotherIsNotWatchedForAVerdict) {
  fake_.reason_of_new = "waits for job other, which has the cluster: one job trains at a time";
  const Ran ran = Motley(fake_, {"submit", file_, "--id", "j"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "submitted job j\nit is queued: waits for job other, which has the cluster: one job trains at a time\n");
  EXPECT_TRUE(fake_.watch_cursors.empty());
}

TEST_F(SubmitTest, WaitShowsStepsAndTheEnd) {
  fake_.AddJob("j", v1::JOB_STATE_SUCCEEDED);
  fake_.AddRun("j", 3);
  const Ran ran = Motley(fake_, {"submit", file_, "--job-id", "j", "--wait"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* part : {"step 1/3  loss 4.0000", "step 3/3  loss 2.0000", "job j succeeded at step 3 of 3, loss 2.0000"}) {
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
  }
  EXPECT_EQ(json::parse(Motley(fake_, {"-o", "json", "submit", file_, "--job-id", "j", "--wait"}).out)["state"], "succeeded");
}

TEST_F(SubmitTest, WaitForAFailedJobExitsWithOne) {
  fake_.AddJob("j", v1::JOB_STATE_FAILED).set_reason("loss is NaN in layer 3");
  fake_.AddRun("j", 1);
  const Ran ran = Motley(fake_, {"submit", file_, "--job-id", "j", "--wait"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("loss is NaN in layer 3"), std::string::npos);
  EXPECT_EQ(ran.out.find("loss is NaN"), std::string::npos) << "told once: " << ran.out;
}

}  // namespace
}  // namespace motley::client
