#include "coordinator/page/page_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "nlohmann/json.hpp"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

using nlohmann::json;

class PageFeedTest : public CoreTest {
 protected:
  PageFeedTest() { AddNode("n1"); }
  JobRecord& AddJob(const std::string& id, JobPhase phase) {
    JobRecord& job = core_->state.jobs[JobId(id)];
    job.id = JobId(id);
    job.uid = JobUid(std::string(32, 'a'));
    job.phase = phase;
    job.config.training.steps = 10;
    return job;
  }
  // What a page with this cursor sees after the next half second.
  json Look(const std::string& topic, int64_t after = 0) {
    (void)board_.Read(topic, after, "life");
    clock_.Advance(PageFeed::kEvery);
    feed_.UpdatePages();
    const auto text = board_.Read(topic, after, "life");
    EXPECT_TRUE(text.ok()) << text.status();
    return !text.ok() || *text == nullptr ? json() : json::parse(**text);
  }
  void Step(const std::string& job, int64_t number, double loss) {
    StepStats step;
    step.step = number;
    step.loss = loss;
    core_->journal.PublishStep(JobId(job), step);
  }
  int printed_ = 0;
  PageBoard board_{clock_, "life", "digest"};
  PageFeed feed_{*core_, board_, [this](std::function<void()> task) {
                   ++printed_;
                   task();
                 }};
};

TEST_F(PageFeedTest, NothingIsMadeWhileNobodyLooks) {
  feed_.UpdatePages();
  EXPECT_EQ(printed_, 0);
  Look("cluster");
  EXPECT_EQ(printed_, 1);
  feed_.UpdatePages();
  EXPECT_EQ(printed_, 1) << "twice a second at most";
  clock_.Advance(PageBoard::kLookedAt + absl::Seconds(1));
  feed_.UpdatePages();
  EXPECT_EQ(printed_, 1);
}

TEST_F(PageFeedTest, TheClusterHasNodesAndJobs) {
  AddJob("a", JobPhase::kQueued);
  AddJob("b", JobPhase::kFailed).reason = "<b>\xff";
  const json first = Look("cluster");
  EXPECT_EQ(first["rows"]["node:n1"]["name"], "n1");
  EXPECT_EQ(first["rows"]["job:a"]["state"], "JOB_STATE_QUEUED");
  EXPECT_EQ(first["rows"]["job:a"]["spec"]["training"]["steps"], "10");
  EXPECT_EQ(first["rows"]["job:b"]["reason"], "<b>\\xff");
  // What stays the same is not told again; an ended job, a heartbeat.
  core_->state.nodes[NodeName("n1")].last_seen_unix_ms += 1000;
  EXPECT_FALSE(Look("cluster", first["cursor"]).contains("rows"));
  core_->state.jobs[JobId("b")].phase = JobPhase::kQueued;
  EXPECT_EQ(Look("cluster", first["cursor"])["rows"]["job:b"]["state"], "JOB_STATE_QUEUED");
  core_->state.jobs.erase(JobId("b"));
  core_->state.nodes[NodeName("n1")].connected = false;
  const json later = Look("cluster", first["cursor"]);
  EXPECT_EQ(later["gone"], json::parse(R"(["job:b"])"));
  EXPECT_TRUE(later["rows"].contains("node:n1"));
}

TEST_F(PageFeedTest, AJobHasItsStepsEventsAndLines) {
  JobRecord& job = AddJob("a", JobPhase::kQueued);
  ASSERT_TRUE(core_->SetPhase(job, JobPhase::kRunning, "training").ok());
  Step("a", 1, 5.5);
  core_->journal.AddLog(JobId("a"), "n1", "a line", 1);
  const json first = Look("job/a");
  EXPECT_EQ(first["rows"]["job"]["reason"], "training");
  EXPECT_EQ(first["rows"]["spec"]["training"]["steps"], "10");
  ASSERT_EQ(first["steps"].size(), 1u);
  EXPECT_EQ(first["steps"][0]["loss"], 5.5);
  ASSERT_EQ(first["events"].size(), 1u);
  EXPECT_EQ(first["events"][0]["kind"], "job_state");
  EXPECT_EQ(first["logs"].back()["text"], "a line");
  EXPECT_EQ(first["history"]["last_step"], "1");
  Step("a", 2, std::numeric_limits<double>::quiet_NaN());
  const json next = Look("job/a", first["cursor"]);
  ASSERT_EQ(next["steps"].size(), 1u);
  EXPECT_EQ(next["steps"][0]["loss"], "NaN");
  EXPECT_FALSE(next.contains("logs"));
  EXPECT_FALSE(next.contains("events"));
}

TEST_F(PageFeedTest, ALongRunIsToldByItsHistoryAndItsNewestSteps) {
  AddJob("a", JobPhase::kRunning);
  for (int64_t s = 1; s <= 3000; ++s) Step("a", s, 1);
  const json first = Look("job/a");
  EXPECT_EQ(first["steps"].size(), PageBoard::kMostEntries);
  EXPECT_EQ(first["steps"].back()["step"], "3000");
  EXPECT_EQ(first["history"]["steps_per_bucket"], "8");
  EXPECT_EQ(first["history"]["loss"].size(), 375u);
}

TEST_F(PageFeedTest, AJobThatIsNotThereIsSaid) {
  EXPECT_EQ(Look("job/gone")["rows"]["missing"], true);
  AddJob("a", JobPhase::kQueued);
  const json first = Look("job/a");
  core_->state.jobs.erase(JobId("a"));
  const json later = Look("job/a", first["cursor"]);
  EXPECT_EQ(later["rows"]["missing"], true);
  // Another job of this id is told from its begin.
  AddJob("a", JobPhase::kQueued).uid = JobUid(std::string(32, 'b'));
  Step("a", 1, 2);
  const json other = Look("job/a", later["cursor"]);
  EXPECT_EQ(other["from"], 0);
  EXPECT_EQ(other["steps"].size(), 1u);
  EXPECT_FALSE(other["rows"].contains("missing"));
}

TEST_F(PageFeedTest, TheNewestEventsComeFirst) {
  AddJob("a", JobPhase::kRunning);
  Batch batch;
  for (int i = 0; i < 1200; ++i) {
    EventRecord event;
    event.job = JobId("a");
    event.kind = kind::kCheckpoint;
    event.message = std::to_string(i);
    batch.events.push_back(event);
  }
  ASSERT_TRUE(store_->Commit(batch).ok());
  const json first = Look("job/a");
  ASSERT_EQ(first["events"].size(), 500u);
  EXPECT_EQ(first["events"].back()["message"], "1199");
  EXPECT_EQ(first["events"].front()["message"], "700");
  EXPECT_FALSE(Look("job/a", first["cursor"]).contains("events"));
}

TEST_F(PageFeedTest, NothingIsGatheredWhileTheLastIsPrinted) {
  std::vector<std::function<void()>> waiting;
  PageFeed feed(*core_, board_, [&](std::function<void()> task) { waiting.push_back(std::move(task)); });
  (void)board_.Read("cluster", 0, "life");
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(PageFeed::kEvery);
    feed.UpdatePages();
  }
  ASSERT_EQ(waiting.size(), 1u);
  waiting[0]();
  clock_.Advance(PageFeed::kEvery);
  feed.UpdatePages();
  EXPECT_EQ(waiting.size(), 2u);
  waiting[1]();
}

TEST_F(PageFeedTest, JobsThatWaitAreNoNewsByThemselves) {
  AddRun("first");
  for (int i = 0; i < 50; ++i) AddJob("waits-" + std::to_string(i), JobPhase::kQueued);
  const json first = Look("cluster");
  EXPECT_EQ(first["rows"]["job:waits-7"]["reason"], "waits for first");
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(absl::Seconds(5));
    EXPECT_FALSE(Look("cluster", first["cursor"]).contains("rows"));
  }
}

TEST_F(PageFeedTest, AMeasuredStepOfAJobThatDoesNotTrainIsRefusedInWords) {
  AddJob("a", JobPhase::kQueued);
  EXPECT_NE(Look("measured/a")["rows"]["end"]["error"], nullptr);
}

}  // namespace
}  // namespace motley::coordinator
