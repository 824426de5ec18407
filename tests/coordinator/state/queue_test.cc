#include "coordinator/state/queue.h"

#include "tests/coordinator/state/decide_fixture.h"

namespace motley::coordinator {
namespace {

class QueueTest : public DecideTest {
 protected:
  JobRecord& Add(const std::string& id, int64_t submitted_unix_ms) {
    JobRecord& added = state_.jobs[JobId(id)];
    added.id = JobId(id);
    added.submitted_unix_ms = submitted_unix_ms;
    return added;
  }
};

TEST_F(QueueTest, SaysForWhomSinceWhenAndHowLong) {
  job().phase = JobPhase::kRunning;
  job().step = 39;
  run().typical_step_seconds = 5;
  const JobRecord& first = Add("k", 1000);
  const JobRecord& second = Add("l", 2000);
  EXPECT_EQ(QueueSentence(61'000, state_, first),
            "waits for job j, which has the cluster: one job trains at a time; j has 61 of 100 steps left, about 5 min 05 s; "
            "queued for 1 min");
  EXPECT_EQ(QueueSentence(61'000, state_, second),
            "waits for job j, which has the cluster: one job trains at a time; j has 61 of 100 steps left, about 5 min 05 s; "
            "queued for 59 s, behind 1 other job");
}

TEST_F(QueueTest, APredictionServesUntilAStepWasMeasured) {
  const JobRecord& waiting = Add("k", 1000);
  EXPECT_NE(QueueSentence(1000, state_, waiting).find("100 of 100 steps left, and has not been planned yet; queued for 0"),
            std::string::npos);
  job().predicted_step_seconds = 0.5;
  EXPECT_NE(QueueSentence(1000, state_, waiting).find("about 50 s"), std::string::npos);
}

TEST_F(QueueTest, WhoeverHasTheClusterOrHasEndedWaitsForNobody) {
  EXPECT_EQ(QueueSentence(1000, state_, job()), "");
  JobRecord& ended = Add("k", 1000);
  ended.phase = JobPhase::kStopped;
  EXPECT_EQ(QueueSentence(1000, state_, ended), "");
}

// It neither gets the cluster nor keeps others from it, and says what lacks.
TEST_F(QueueTest, OthersPassAJobThatAwaitsItsInputs) {
  state_.run.reset();
  state_.jobs.clear();
  Add("a", 1), Add("b", 2);
  state_.awaits_inputs[JobId("a")] = "words.txt lies on no node";
  QueueDecision decision = DecideQueue(state_);
  EXPECT_EQ(decision.activate, JobId("b"));
  ASSERT_EQ(decision.waiting.size(), 1u);
  EXPECT_EQ(decision.waiting[0], std::pair(JobId("a"), std::string("words.txt lies on no node")));
  state_.jobs.at(JobId("b")).phase = JobPhase::kSucceeded;
  decision = DecideQueue(state_);
  EXPECT_FALSE(decision.activate.has_value());
  ASSERT_EQ(decision.waiting.size(), 1u);
  state_.jobs.at(JobId("a")).stop_requested = true;
  EXPECT_EQ(DecideQueue(state_).stopped, std::vector<JobId>{JobId("a")});
}

TEST_F(QueueTest, WhoAwaitsItsInputsDoesNotWaitForAJob) {
  const JobRecord& waiting = Add("k", 1000);
  state_.awaits_inputs[waiting.id] = "words.txt lies on no node";
  EXPECT_EQ(QueueSentence(1000, state_, waiting), "");
}

TEST(DecideQueue, OneJobHasTheClusterAndTheOthersSayWhyTheyWait) {
  ClusterState state;
  for (const auto& [id, time] : {std::pair("a", 2), std::pair("b", 1), std::pair("c", 3)}) {
    JobRecord job;
    job.id = JobId(id);
    job.submitted_unix_ms = time;
    state.jobs[job.id] = job;
  }
  state.jobs.at(JobId("c")).stop_requested = true;
  const QueueDecision decision = DecideQueue(state);
  EXPECT_EQ(*decision.activate, JobId("b"));
  EXPECT_EQ(decision.stopped, std::vector<JobId>{JobId("c")});
  ASSERT_EQ(decision.waiting.size(), 1u);
  EXPECT_EQ(decision.waiting[0].second, "waits for job b, which has the cluster: one job trains at a time");
}

TEST(DecideQueue, AJobThatHadTheClusterKeepsIt) {
  ClusterState state;
  JobRecord old_job, new_job;
  old_job.id = JobId("z");
  old_job.submitted_unix_ms = 5;
  old_job.phase = JobPhase::kRunning;
  new_job.id = JobId("a");
  state.jobs[old_job.id] = old_job;
  state.jobs[new_job.id] = new_job;
  EXPECT_EQ(*DecideQueue(state).activate, JobId("z"));
  state.jobs.at(JobId("z")).phase = JobPhase::kWaiting;
  EXPECT_EQ(*DecideQueue(state).activate, JobId("a")) << "it had no ranks: by age";
}

}  // namespace
}  // namespace motley::coordinator
