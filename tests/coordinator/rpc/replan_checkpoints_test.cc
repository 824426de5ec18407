// What is found in the folder of checkpoints when a job plans again.
#include <sys/stat.h>

#include "tests/coordinator/rpc/replan_fixture.h"

namespace motley::coordinator {
namespace {

TEST_F(Replan, AnAlteredCheckpointIsSkippedAndTheOneBeforeIsUsed) {
  auto n1 = Join("n1", Saving()), n2 = Join("n2", Saving());
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  Save(n1->ranks()[0], 1);
  Save(n1->ranks()[0], 2);
  std::filesystem::resize_file(folder_ + "/checkpoints/a/" + CheckpointFolderName(2, epoch) + "/rank-0.bin", 100);
  n2->Drop();
  const auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 1);
  EXPECT_NE(WaitForEvent("a", "checkpoint_skipped").find(CheckpointFolderName(2, epoch)), std::string::npos);
}

TEST_F(Replan, WhatOthersPutIntoTheFolderIsSkipped) {
  const std::string folder = folder_ + "/checkpoints/a";
  std::filesystem::create_directories(folder + "/step-00000099");  // empty, and before the job has a checkpoint of its own
  auto n1 = Join("n1", Saving()), n2 = Join("n2", Saving());
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  EXPECT_NE(WaitForEvent("a", "checkpoint_skipped").find("step-00000099"), std::string::npos);
  std::filesystem::remove_all(folder + "/step-00000099");
  Save(n1->ranks()[0], 2);
  v1::RankAssignment theirs = n1->ranks()[0];
  theirs.set_job_id("b");
  Save(theirs, 7);
  Save(n1->ranks()[0], 8);
  const std::string manifest = folder + "/" + CheckpointFolderName(8, epoch) + "/manifest.json";
  std::filesystem::remove(manifest);
  ASSERT_EQ(::mkfifo(manifest.c_str(), 0666), 0);
  n2->Drop();
  const auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 2);
  std::string said;
  Watch("a", [&](const v1::JobUpdate& update) {
    if (update.has_event() && update.event().kind() == "checkpoint_skipped") said += update.event().message() + "\n";
    return said.find("was made by job 'b'") != std::string::npos && said.find("is a named pipe") != std::string::npos;
  });
}

// As behind a store that was put back: the folder is ahead of it.
TEST_F(Replan, OfAStepThatTheStoreDoesNotKnowNoLossIsShown) {
  auto n1 = Join("n1", Saving()), n2 = Join("n2", Saving());
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  EXPECT_EQ(GetJob("a").last_step().step(), 2);
  Save(n1->ranks()[0], 10);
  n2->Drop();
  const auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 10);
  EXPECT_EQ(GetJob("a").step(), 10);
  EXPECT_FALSE(GetJob("a").has_last_step());
}

// By a rank that was stopped in the middle of its save, while the job went on elsewhere.
TEST_F(Replan, WhatAnOlderEpochPublishesLateIsNotGoneOnFrom) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  const v1::RankAssignment late = n1->ranks()[0];
  Save(late, 2);
  n2->Drop();
  auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 2);
  n1->SendAll(v1::RankEvent::KIND_READY);
  n1->StepTo(4);
  Save(late, 9);
  Save(ranks[0], 3);
  n1->SendAll(v1::RankEvent::KIND_DIED, "signal 9");
  ranks = n1->WaitForStart(ranks[0].epoch());
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 3);
}

// A store that is new does not know that they were written; nobody may publish under a name that is taken.
TEST_F(Replan, AnEpochIsAboveAllNamesInTheFolder) {
  std::filesystem::create_directories(folder_ + "/checkpoints/a/" + CheckpointFolderName(99, 40));
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  EXPECT_GT(Train(*n1, *n2, 2), 40);
}

TEST_F(Replan, WithoutACheckpointThatVerifiesTheJobDoesNotBeginAgain) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  Save(n1->ranks()[0], 2);
  std::filesystem::resize_file(folder_ + "/checkpoints/a/" + CheckpointFolderName(2, epoch) + "/rank-0.bin", 100);
  n2->Drop();
  const v1::Job job = WaitForState("a", v1::JOB_STATE_FAILED);
  EXPECT_NE(job.reason().find("verifies"), std::string::npos) << job.reason();
  EXPECT_NE(job.reason().find("restore one"), std::string::npos) << job.reason();
}

TEST_F(Replan, APublishedCheckpointThatTheCoordinatorDoesNotSeeIsWaitedFor) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  const std::string name = CheckpointFolderName(2, epoch);
  v1::WorkerMessage message;
  message.mutable_checkpoint_published()->set_job_id("a");
  message.mutable_checkpoint_published()->set_epoch(epoch);
  message.mutable_checkpoint_published()->set_step(2);
  message.mutable_checkpoint_published()->set_folder(folder_ + "/checkpoints/a/" + name);
  n1->Send(message);
  WaitForEvent("a", "checkpoint");
  n2->Drop();
  const v1::Job job = WaitForState("a", v1::JOB_STATE_WAITING);
  EXPECT_NE(job.reason().find("/checkpoints/a/" + name + " was published"), std::string::npos) << job.reason();
  Save(n1->ranks()[0], 2);  // the folder is mounted again
  const auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 2);
}

// In an upgrade: the coordinator first, then the nodes.
TEST_F(Replan, WhatARankFromBeforeUidsSavesIsTheJobsOwn) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  v1::RankAssignment old = n1->ranks()[0];
  EXPECT_EQ(old.job_uid(), GetJob("a").uid());
  EXPECT_FALSE(old.owns_unnamed_checkpoints());
  old.clear_job_uid();
  Save(old, 2);
  v1::WorkerMessage message;
  message.mutable_checkpoint_published()->set_job_id("a");
  message.mutable_checkpoint_published()->set_epoch(epoch);
  message.mutable_checkpoint_published()->set_step(2);
  message.mutable_checkpoint_published()->set_folder(folder_ + "/checkpoints/a/" + CheckpointFolderName(2, epoch));
  n1->Send(message);
  WaitForEvent("a", "checkpoint");
  n2->Drop();
  const auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 2);
  EXPECT_EQ(ranks[0].job_uid(), GetJob("a").uid());
  EXPECT_TRUE(ranks[0].owns_unnamed_checkpoints());
  EXPECT_TRUE(GetJob("a").owns_unnamed_checkpoints());
}

// Another cluster's job of the id saves beside it: its newer ones are none of this job's.
TEST_F(Replan, AnotherClustersJobOfTheIdIsSkipped) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  Save(n1->ranks()[0], 2);
  v1::RankAssignment theirs = n1->ranks()[0];
  theirs.set_job_uid(std::string(32, 'f'));
  Save(theirs, 2);
  theirs.set_epoch(epoch + 7);
  Save(theirs, 9);
  n2->Drop();
  const auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].start_step(), 2);
  EXPECT_EQ(ranks[0].resume_from(), folder_ + "/checkpoints/a/" + CheckpointFolderName(2, epoch));
  EXPECT_GT(ranks[0].epoch(), epoch + 7);
  const std::string said = WaitForEvent("a", "checkpoint_skipped");
  EXPECT_NE(said.find(CheckpointFolderName(9, epoch + 7) + " was made by job 'a' (uid ffff"), std::string::npos) << said;
}

TEST_F(Replan, ACheckpointThatCannotBeReadNowIsWaitedForAndNobodyElseIsNamed) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  n1->SendAll(v1::RankEvent::KIND_PEER_LOST, "connection reset by n2");
  n2->Fail(v1::FAULT_STORAGE, "/checkpoints/a/rank-1.bin: Input/output error");
  const std::string reason = WaitForState("a", v1::JOB_STATE_WAITING).reason();
  EXPECT_NE(reason.find("n2/gpu0 cannot use its files now: /checkpoints/a/rank-1.bin: Input/output error"), std::string::npos)
      << reason;
  EXPECT_EQ(reason.find("n1"), std::string::npos) << reason;
  ASSERT_FALSE(n1->WaitForStart(epoch).empty() || n2->WaitForStart(epoch).empty());
  FinishOn({n1.get(), n2.get()}, 10);
}

TEST_F(Replan, WhoAloneFindsDamageInACheckpointIsLeftOut) {
  auto n1 = Join("n1", Saving()), n2 = Join("n2", Saving());
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  Save(n1->ranks()[0], 2);
  n2->SendAll(v1::RankEvent::KIND_DIED, "signal 9");
  const auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  n1->Fail(v1::FAULT_DAMAGE, "block 0 of rank-0.bin is not what was written", ranks[0].resume_from());
  const std::string said = WaitForEvent("a", "device_left_out");
  EXPECT_NE(said.find("without node n1"), std::string::npos) << said;
  EXPECT_NE(said.find("block 0 of rank-0.bin"), std::string::npos) << said;
  EXPECT_NE(said.find("verifies on node n2"), std::string::npos) << said;
  const auto alone = n2->WaitForStart(ranks[0].epoch());
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].resume_from(), ranks[0].resume_from()) << "no checkpoint is lost by it";
  EXPECT_EQ(alone[0].spared_checkpoints_size(), 0);
  FinishOn({n2.get()}, 10);
}

TEST_F(Replan, ACheckpointThatTwoReadersFindDamagedIsLeftOut) {
  FakeWorker::Options second = Saving();
  second.verify_error = "rank-0.bin was altered: its digest does not match";
  auto n1 = Join("n1", Saving()), n2 = Join("n2", second);
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  int64_t epoch = Train(*n1, *n2, 2);
  Save(n1->ranks()[0], 2);
  const std::string name = CheckpointFolderName(2, epoch);
  n2->SendAll(v1::RankEvent::KIND_DIED, "signal 9");
  const auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty());
  n1->Fail(v1::FAULT_DAMAGE, "block 0 of rank-0.bin is not what was written", ranks[0].resume_from());
  const std::string said = WaitForEvent("a", "checkpoint_skipped");
  EXPECT_NE(said.find(name + ", in which the rank on n1/gpu0 found damage (block 0 of rank-0.bin"), std::string::npos) << said;
  EXPECT_NE(said.find("does not verify on node n2, either: rank-0.bin was altered"), std::string::npos) << said;
  EXPECT_NE(WaitForState("a", v1::JOB_STATE_FAILED).reason().find(name), std::string::npos) << "none was before it";
}

TEST_F(Replan, ACheckpointThatCannotBeWrittenIsSaid) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 2);
  v1::WorkerMessage message;
  message.mutable_checkpoint_failed()->set_job_id("a");
  message.mutable_checkpoint_failed()->set_epoch(epoch);
  message.mutable_checkpoint_failed()->set_step(2);
  message.mutable_checkpoint_failed()->set_message("node n1: /checkpoints/a: no space left on device");
  n1->Send(message);
  EXPECT_NE(WaitForEvent("a", "checkpoint_failed").find("step 2 could not be written: node n1: /checkpoints/a: no space"),
            std::string::npos);
  const v1::Job job = Watch("a", [](const v1::JobUpdate& update) {
    return update.has_job() && update.job().reason().find("no space left") != std::string::npos;
  });
  EXPECT_EQ(job.state(), v1::JOB_STATE_RUNNING);
}

}  // namespace
}  // namespace motley::coordinator
