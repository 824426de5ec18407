// What a worker says of generations and of the store when it dials in: what the coordinator gave counts, what is invented does
// nothing.
#include <tuple>

#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class Greetings : public ClusterTest {
 protected:
  // Two nodes, running, one step done. Returns the epoch.
  int64_t Train(int64_t steps = 10) {
    n1_ = Join("n1");
    n2_ = Join("n2");
    EXPECT_TRUE(Submit("a", MakeConfig(steps)).ok());
    const auto ranks = n1_->WaitForStart();
    EXPECT_FALSE(ranks.empty() || n2_->WaitForStart().empty());
    if (ranks.empty()) return 0;
    for (FakeWorker* worker : {n1_.get(), n2_.get()}) worker->SendAll(v1::RankEvent::KIND_READY);
    Step(1);
    return ranks[0].epoch();
  }
  void Step(int64_t step) {
    n1_->StepTo(step);
    n2_->StepTo(step);
    Watch("a", [&](const v1::JobUpdate& update) { return update.has_step() && update.step().step() >= step; });
  }
  // A stranger, who is let in as any node is and never passes its probe.
  std::unique_ptr<FakeWorker> Stranger(const std::function<void(v1::Hello&)>& claim) {
    FakeWorker::Options options;
    options.answer_storage = false;
    options.on_hello = claim;
    return Join("x1", options);
  }
  static void ClaimEpoch(v1::Hello& hello, const std::string& job, int64_t epoch) {
    v1::JobEpoch* newest = hello.add_newest_epochs();
    newest->set_job_id(job);
    newest->set_epoch(epoch);
  }

  std::unique_ptr<FakeWorker> n1_, n2_;
};

TEST_F(Greetings, InventedGenerationsEndNothing) {
  const int64_t epoch = Train();
  int64_t step = 1;
  for (const int64_t claimed : {epoch + 5, epoch + 6, int64_t{1'000'000'000'000}, int64_t{1'000'000'000'000'001}}) {
    Stranger([&](v1::Hello& hello) { ClaimEpoch(hello, "a", claimed); });
    Step(++step);
    EXPECT_EQ(GetJob("a").epoch(), epoch) << claimed;
    EXPECT_FALSE(n1_->HasStopped(claimed));
  }
  EXPECT_EQ(GetJob("a").step(), step);
}

TEST_F(Greetings, AnInventedMarkRaisesNothing) {
  const int64_t epoch = Train();
  v1::StoreMark mark = n1_->mark();
  ASSERT_FALSE(mark.store_id().empty());
  for (const int64_t commits : {mark.commits() + 1000, int64_t{1'000'000'000'000'000}, int64_t{1} << 62}) {
    mark.set_commits(commits);
    Stranger([&](v1::Hello& hello) { *hello.mutable_store_mark() = mark; });
  }
  Step(2);
  EXPECT_EQ(GetJob("a").epoch(), epoch);
  Start();
  auto n1 = Join("n1"), n2 = Join("n2");
  EXPECT_LT(n1->mark().commits(), 1'000'000);
}

TEST_F(Greetings, WhatTheCoordinatorGaveComesBackThroughRedialsAndRestarts) {
  const int64_t epoch = Train();
  Stranger([&](v1::Hello& hello) { ClaimEpoch(hello, "a", int64_t{1'000'000'000'000}); });
  FakeWorker::Options again;
  again.seen = n1_->seen();
  ASSERT_EQ(again.seen.size(), 1u);
  EXPECT_EQ(again.seen[0].epoch(), epoch);
  const v1::StoreMark mark = n1_->mark();
  again.on_hello = [&mark](v1::Hello& hello) { *hello.mutable_store_mark() = mark; };
  n1_->Drop();
  n1_ = Join("n1", again);
  Start();
  n1_ = Join("n1", again);
  n2_ = Join("n2", again);
  const auto ranks = n1_->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_LT(ranks[0].epoch(), epoch + 10);
}

// The worker has seen generations of a job of this name that another store gave: they fence nothing of the new one's.
TEST_F(Greetings, AnEmptyStoreBeginsAtTheBeginning) {
  const int64_t epoch = Train();
  FakeWorker::Options again;
  again.seen = {n1_->seen()};
  server_.reset();
  std::filesystem::remove_all(config_.state_folder);
  std::filesystem::remove_all(folder_ + "/checkpoints");
  Start();
  n1_ = Join("n1", again);
  n2_ = Join("n2", again);
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const auto ranks = n1_->WaitForStart();
  ASSERT_FALSE(ranks.empty() || n2_->WaitForStart().empty());
  EXPECT_LE(ranks[0].epoch(), epoch);
}

// Ranks leave alone what a newer generation wrote: a new store goes on above what the folder holds, if a coordinator can have
// given it.
TEST_F(Greetings, AnEmptyStoreGoesOnAboveTheCheckpoints) {
  Train();
  v1::RankAssignment rank = n1_->ranks()[0];
  std::filesystem::create_directories(folder_ + "/checkpoints/a");
  Adopt("a", rank.job_uid());
  const auto begin_again = [&](int64_t step, int64_t above, int64_t below) {
    n1_.reset(), n2_.reset(), server_.reset();
    std::filesystem::remove_all(config_.state_folder);
    Start();
    n1_ = Join("n1");
    n2_ = Join("n2");
    ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
    const auto ranks = n1_->WaitForStart();
    ASSERT_FALSE(ranks.empty());
    EXPECT_EQ(ranks[0].start_step(), step);
    EXPECT_TRUE(ranks[0].epoch() > above && ranks[0].epoch() < below) << ranks[0].epoch();
  };
  rank.set_epoch(40);
  Save(rank, 5);
  begin_again(5, 40, 50);
  rank.set_epoch(int64_t{1} << 62);
  Save(rank, 6);
  begin_again(5, 40, 50);  // nobody gave that number
  const std::filesystem::path folder = folder_ + "/checkpoints/a";
  std::filesystem::rename(folder / CheckpointFolderName(6, rank.epoch()), folder / "step-00000006");  // of an older build
  std::filesystem::remove_all(folder / CheckpointFolderName(5, 40));
  begin_again(6, 0, 10);
}

// Whoever names a number must not get it back as one that the coordinator gave.
TEST_F(Greetings, AReportOfALaterGenerationIsNotAnswered) {
  const int64_t epoch = Train(2);
  Step(2);
  for (FakeWorker* worker : {n1_.get(), n2_.get()}) worker->SendAll(v1::RankEvent::KIND_FINISHED);
  WaitForState("a", v1::JOB_STATE_SUCCEEDED);
  auto stranger = Stranger([](v1::Hello&) {});
  for (const int64_t claimed : {epoch + 7, epoch}) {  // the second, which is answered, comes after the first
    v1::WorkerMessage report;
    report.mutable_step_report()->set_job_id("a");
    report.mutable_step_report()->set_epoch(claimed);
    report.mutable_step_report()->mutable_record()->set_step(1);
    stranger->Send(report);
  }
  EXPECT_TRUE(stranger->WaitForStop(epoch));
  EXPECT_FALSE(stranger->HasStopped(epoch + 7));
}

}  // namespace
}  // namespace motley::coordinator
