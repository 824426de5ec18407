// What a job goes on from whose checkpoints lie on its nodes' disks.
#include "coordinator/epoch/local_resume.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const NodeName kA("a"), kB("b");

class LocalResumeTest : public testing::Test {
 protected:
  LocalResumeTest() {
    input_.model = TinyModel(true);
    input_.config.training.seed = 42;
    input_.config.training.steps = 1000;
    input_.config.checkpoint.storage = "local";
    input_.epoch = Epoch(3);
    for (const char* id : {"a/gpu0", "b/gpu0", "b/gpu1"}) input_.devices.push_back({.id = DeviceId(id)});
    wish_.owner = {JobId("job-1"), kOneUid};
    wish_.data_digest = "0123abcd";
    wish_.held.offers = {{kA, {"127.0.0.1:1", "aa"}}, {kB, {"127.0.0.1:2", "bb"}}};
  }
  UnitedCheckpoint& Add(int64_t step, int64_t epoch, bool whole = true) {
    UnitedCheckpoint united;
    united.head.name = CheckpointFolderName(step, epoch);
    united.head.epoch = Epoch(epoch);
    united.head.step = step;
    united.head.model = ToHfConfig(input_.model);
    united.head.data_digest = "0123abcd";
    united.head.seed = 42;
    united.head.files = {{"rank-0.bin", 100, false, "a"}, {"rank-1.bin", 200, false, "c"}};
    united.manifests = {kA};
    united.holders = {{kA}, whole ? std::set<NodeName>{kB} : std::set<NodeName>{}};
    wish_.held.checkpoints.push_back(united);
    return wish_.held.checkpoints.back();
  }
  Prepared Find() { return FindLocalResumePoint(input_, wish_); }

  planner::PlannerInput input_;
  CheckpointWish wish_;
};

TEST_F(LocalResumeTest, TheNewestWholeOneIsTaken) {
  Add(60, 7, false);
  Add(40, 6);
  Add(20, 5);
  const Prepared found = Find();
  ASSERT_TRUE(found.status.ok()) << found.status;
  EXPECT_EQ(found.resume_from, CheckpointFolderName(40, 6));
  EXPECT_EQ(found.start_step, 40);
  EXPECT_EQ(found.resume_bytes, 300);
  EXPECT_EQ(found.epoch, Epoch(8)) << "above all that was marked";
  ASSERT_TRUE(found.source);
  EXPECT_EQ(found.source->head.step, 40);
  EXPECT_EQ(found.offers.size(), 2u);
  EXPECT_THAT(found.skipped, ElementsAre(HasSubstr("is not whole on the nodes that are here, which lack rank-1.bin of node c")));
}

TEST_F(LocalResumeTest, ANewJobBegins) {
  const Prepared found = Find();
  ASSERT_TRUE(found.status.ok()) << found.status;
  EXPECT_EQ(found.resume_from, "");
  EXPECT_FALSE(found.source);
  EXPECT_EQ(found.epoch, Epoch(3));
}

// What lacks may come back with its node, and the steps with it.
TEST_F(LocalResumeTest, WhereNoneIsWholeItWaits) {
  wish_.published = CheckpointFolderName(60, 7);
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage);
  EXPECT_THAT(std::string(Find().status.message()),
              HasSubstr("no node that is here has anything of checkpoint step-00000060-gen-7"));
  Add(60, 7, false);
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage);
  EXPECT_THAT(std::string(Find().status.message()), HasSubstr("lack rank-1.bin of node c"));
  // Nor does it begin anew where only the nodes know of it.
  wish_.published = "";
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage);
}

TEST_F(LocalResumeTest, GoingBackIsSaid) {
  wish_.published = CheckpointFolderName(60, 7);
  Add(40, 6);
  const Prepared found = Find();
  ASSERT_TRUE(found.status.ok()) << found.status;
  EXPECT_EQ(found.start_step, 40);
  EXPECT_THAT(found.skipped,
              ElementsAre("no node that is here has anything of checkpoint step-00000060-gen-7, which was published"));
}

// All that was switched off together is coming back; the first to be here must not cost the others' steps.
TEST_F(LocalResumeTest, BehindAStartOfTheCoordinatorWhatWasPublishedIsWaitedFor) {
  wish_.published = CheckpointFolderName(60, 7);
  wish_.awaits_published = true;
  Add(60, 7, false);
  Add(40, 6);
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage);
  EXPECT_THAT(std::string(Find().status.message()), HasSubstr("waits a minute before it goes on from step 40"));
  wish_.damaged = {CheckpointFolderName(60, 7)};
  EXPECT_EQ(Find().start_step, 40) << "no node that comes back makes it good";
  wish_.damaged.clear();
  wish_.held.checkpoints[0].holders[1] = {kB};
  EXPECT_TRUE(Find().status.ok());
  EXPECT_EQ(Find().start_step, 60);
}

// Whoever has it may come back, after months: steps that were promised are not thrown away by anybody but people.
TEST_F(LocalResumeTest, WhatWasSafeIsWaitedForWithoutEnd) {
  wish_.published = wish_.safe = CheckpointFolderName(60, 7);
  Add(40, 6);
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage);
  EXPECT_THAT(std::string(Find().status.message()),
              testing::AllOf(HasSubstr("no node that is here has anything of checkpoint step-00000060-gen-7, which was safe"),
                             HasSubstr("motley resume job-1 --from 40")));
  wish_.held.checkpoints.clear();
  Add(60, 7, false);
  Add(40, 6);
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage);
  EXPECT_THAT(std::string(Find().status.message()), HasSubstr("lack rank-1.bin of node c; start the worker"));
  wish_.damaged = {CheckpointFolderName(60, 7)};
  EXPECT_EQ(Find().start_step, 40) << "nobody who comes back makes it good";
  wish_.damaged.clear();
  wish_.safe = CheckpointFolderName(20, 5);
  EXPECT_EQ(Find().start_step, 40) << "what was only published is not waited for";
}

TEST_F(LocalResumeTest, PeopleMayGoBack) {
  wish_.go_back = {Epoch(7), 50};
  Add(60, 7);
  Add(40, 6);
  const Prepared found = Find();
  ASSERT_TRUE(found.status.ok()) << found.status;
  EXPECT_EQ(found.start_step, 40);
  EXPECT_EQ(found.epoch, Epoch(8)) << "above what was given up, too";
  EXPECT_THAT(found.skipped, ElementsAre(HasSubstr("is behind step 50, to which the job was told to go back")));
  Add(60, 8);
  std::swap(wish_.held.checkpoints.front(), wish_.held.checkpoints.back());
  EXPECT_EQ(Find().start_step, 60) << "saved since";
  wish_.held.checkpoints.erase(wish_.held.checkpoints.begin());
  wish_.go_back.step = 30;
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage) << "there is none";
  wish_.held.checkpoints.clear();
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage) << "nobody who is here has any";
  EXPECT_THAT(std::string(Find().status.message()), HasSubstr("no node that is here has a checkpoint up to step 30"));
  wish_.go_back.step = 0;
  ASSERT_TRUE(Find().status.ok());
  EXPECT_EQ(Find().resume_from, "") << "from its begin";
  wish_.published = CheckpointFolderName(90, 9);
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage) << "what it saved since is waited for";
  wish_.published.clear();
  Add(90, 9, false);
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage) << "also where nobody heard of it";
}

TEST_F(LocalResumeTest, WhatIsAdoptedIsTakenWholeOrWaitedFor) {
  wish_.adopts = wish_.adopts_all = true;
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage) << "it does not begin anew";
  EXPECT_THAT(std::string(Find().status.message()), HasSubstr("which the job is to adopt"));
  Add(60, 7);
  Add(40, 6, false);
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage);
  EXPECT_THAT(std::string(Find().status.message()),
              HasSubstr("do not say what they have, and may have newer checkpoints: c; start the"));
  wish_.held.offers[NodeName("c")] = {"127.0.0.1:3", "cc"};
  EXPECT_TRUE(Find().status.ok());
  EXPECT_EQ(Find().start_step, 60) << "what is older may lack";
  EXPECT_EQ(Find().epoch, Epoch(1008)) << "absent disks may have generations of their own";
  wish_.held.checkpoints[0].holders[1].clear();
  wish_.held.checkpoints[1].holders[1] = {kB};
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage) << "nobody knows whether it was safe";
  wish_.damaged = {CheckpointFolderName(60, 7)};
  EXPECT_EQ(Find().start_step, 40) << "nobody who comes makes it good";
  wish_.damaged.clear();
  wish_.go_back = {Epoch(7), 50};
  wish_.held.offers.erase(NodeName("c"));
  EXPECT_EQ(Find().start_step, 40) << "people said so";
  Add(45, 5, false);
  EXPECT_EQ(Find().start_step, 40) << "what is older by its generation is not asked for";
  std::swap(wish_.held.checkpoints[0], wish_.held.checkpoints[2]);
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage) << "nor are steps that people did not give up passed over";
}

TEST_F(LocalResumeTest, BeginsWithTheNewestWeightsOfAnotherJob) {
  input_.config.checkpoint.initial = "other";
  input_.config.training.dtype = "float32";
  wish_.initial_of = {JobId("other"), kOneUid};
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage) << "its nodes may come";
  EXPECT_THAT(std::string(Find().status.message()), HasSubstr("of job other no checkpoint can be begun with: no node that is"));
  for (const int64_t step : {60, 40, 20}) {
    Add(step, 7, step != 60).head.dtype = step == 40 ? "float64" : "float32";
    wish_.held_of_initial.checkpoints.push_back(wish_.held.checkpoints.back());
    wish_.held_of_initial.checkpoints.back().head.data_digest = "other data";
    wish_.held.checkpoints.clear();
  }
  input_.config.training.dtype = "bfloat16";
  wish_.held_of_initial.checkpoints[0].holders[1] = {kB};
  EXPECT_EQ(FaultOf(Find().status), Fault::kOurs) << "no node that comes changes it";
  input_.config.training.dtype = "float32";
  wish_.held_of_initial.checkpoints[0].holders[1].clear();
  const Prepared found = Find();
  ASSERT_TRUE(found.status.ok()) << found.status;
  EXPECT_TRUE(found.initial);
  EXPECT_EQ(found.resume_from, CheckpointFolderName(20, 7));
  EXPECT_EQ(found.start_step, 0);
  EXPECT_EQ(found.epoch, Epoch(3)) << "that job's numbers are its own";
  ASSERT_TRUE(found.source);
  EXPECT_THAT(found.skipped, ElementsAre(HasSubstr("lack rank-1.bin"), HasSubstr("holds float64, training.dtype is float32")));
}

TEST_F(LocalResumeTest, DamagedAndOthersAreSkipped) {
  Add(60, 7).head.seed = 1;
  Add(50, 7);
  wish_.damaged = {CheckpointFolderName(50, 7)};
  Add(40, 6);
  const Prepared found = Find();
  ASSERT_TRUE(found.status.ok()) << found.status;
  EXPECT_EQ(found.start_step, 40);
  EXPECT_THAT(found.skipped, ElementsAre(HasSubstr("has another seed"), HasSubstr("is damaged")));
}

// Its ranks could not save there.
TEST_F(LocalResumeTest, ANodeThatCannotKeepCheckpointsIsWaitedForAndNamed) {
  Add(40, 6);
  wish_.held.offers.erase(kB);
  wish_.held.refusals[kB] = "/data/files is read-only";
  Prepared found = Find();
  EXPECT_EQ(FaultOf(found.status), Fault::kStorage);
  EXPECT_THAT(std::string(found.status.message()), HasSubstr("node b: /data/files is read-only"));
  wish_.held.refusals.clear();
  EXPECT_THAT(std::string(Find().status.message()), HasSubstr("node b: it was not here when it was asked"));
}

}  // namespace
}  // namespace motley::coordinator
