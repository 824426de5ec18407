// What a job goes on from, over folders as two clusters, older builds and people leave them.
#include "coordinator/epoch/resume_point.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "tests/common/base/temp_folder.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"

namespace motley::coordinator {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ResumePointTest : public testing::Test {
 protected:
  ResumePointTest() {
    input_.model = TinyModel(true);
    input_.config.training.seed = 42;
    input_.config.training.steps = 1000;
    input_.config.training.dtype = "float32";
    input_.epoch = Epoch(1);
    wish_ = {root_.path(), {JobId("job-1"), kOneUid}, "", "0123abcd", {}, false};
  }
  void Write(int64_t step, int64_t epoch, const JobUid& uid = kOneUid, const std::string& job = "job-1") {
    CheckpointFence fence = NewestEpoch(epoch, uid);
    fence.owner.job = JobId(job);
    const auto written = WriteTestCheckpoint(root_.path(), step, TinyModel(true), 0.5, fence);
    ASSERT_TRUE(written.ok()) << written.status();
  }
  // Gives the manifest of a folder other words; its digest fits.
  void Alter(const std::string& name, const std::function<void(CheckpointManifest&)>& change) {
    auto manifest = ReadManifest(root_ / name);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    change(*manifest);
    root_.Write(name + "/manifest.json", ManifestToJson(*manifest));
  }
  Prepared Find() { return FindResumePoint(input_, wish_); }
  std::string Refusal() { return std::string(Find().status.message()); }
  static std::string Words(const Prepared& prepared) {
    std::string words;
    for (const std::string& skipped : prepared.skipped) words += skipped + "\n";
    return words;
  }

  TempFolder root_;
  planner::PlannerInput input_;
  CheckpointWish wish_;
};

TEST_F(ResumePointTest, AnothersAreSkippedBesideOwnOnes) {
  Write(20, 1);
  Write(40, 7, kOtherUid);
  Write(60, 8, JobUid());
  const Prepared found = Find();
  ASSERT_TRUE(found.status.ok()) << found.status;
  EXPECT_EQ(found.resume_from, root_ / CheckpointFolderName(20, 1));
  EXPECT_EQ(found.start_step, 20);
  EXPECT_EQ(found.epoch, Epoch(9)) << "above all names, so that nobody has one of its own";
  EXPECT_THAT(Words(found), HasSubstr(CheckpointFolderName(40, 7) + " was made by job 'job-1' (uid " + kOtherUid.value() + ")"));
  EXPECT_THAT(Words(found), HasSubstr(CheckpointFolderName(60, 8) + " was made by job 'job-1', which is another job"));
  EXPECT_EQ(Words(found).find("adopt"), std::string::npos);
  EXPECT_EQ(found.adopted, "");
}

TEST_F(ResumePointTest, AnothersAloneRefuseANewJobAndSayWhatToDo) {
  Write(40, 7, kOtherUid);
  wish_.is_new = true;
  EXPECT_TRUE(absl::IsFailedPrecondition(Find().status));
  for (const std::string& part :
       {root_.path() + " holds checkpoints of other jobs alone: job 'job-1' (uid " + kOtherUid.value() +
            "), newest step 40, saved 2",
        "; to go on from these, `echo " + kOtherUid.value() + " >'" + root_ / "adopt" + "'` and `motley resume job-1`",
        std::string("`motley delete job-1` and submit under another id or with another checkpoint.folder")}) {
    EXPECT_THAT(Refusal(), HasSubstr(part));
  }
}

// The one that a person looks for need not be the newest.
TEST_F(ResumePointTest, TheRefusalNamesEachMakerOnce) {
  wish_.is_new = true;
  Write(20, 1, JobUid(), "old");
  Write(30, 2, kOtherUid);
  Write(40, 3, kOtherUid);
  EXPECT_THAT(Refusal(), HasSubstr("job 'job-1' (uid " + kOtherUid.value() + "), newest step 40, saved "));
  EXPECT_THAT(Refusal(), HasSubstr(" UTC; job 'old', newest step 20, saved "));
  EXPECT_EQ(Refusal().find("step 30"), std::string::npos);
  EXPECT_THAT(Refusal(), HasSubstr("to go on from the first of these, `echo " + kOtherUid.value() + " >"));
  for (int maker = 3; maker < 9; ++maker) Write(50, 10 + maker, JobUid(std::string(32, static_cast<char>('0' + maker))));
  EXPECT_THAT(Refusal(), HasSubstr("; and 3 more; to go on"));
  EXPECT_EQ(Refusal().find("'old'"), std::string::npos);
}

// An id comes from a manifest, and the line is for a shell.
TEST_F(ResumePointTest, WhatIsPastedRunsNothing) {
  wish_.is_new = true;
  Write(20, 1, JobUid(), "$(reboot)");
  EXPECT_THAT(Refusal(), HasSubstr("`echo '$(reboot)' >'"));
}

// It has begun beside another cluster's job and has not saved yet, or what it saved is not there.
TEST_F(ResumePointTest, AJobThatHasBegunIsNotRefused) {
  Write(40, 7, kOtherUid);
  const Prepared again = Find();
  EXPECT_TRUE(again.status.ok()) << again.status;
  EXPECT_EQ(again.resume_from, "");
  EXPECT_EQ(again.epoch, Epoch(8));
  EXPECT_THAT(Words(again), HasSubstr(CheckpointFolderName(40, 7)));
  wish_.published = root_ / CheckpointFolderName(30, 6);
  EXPECT_EQ(FaultOf(Find().status), Fault::kStorage) << "beginning again would throw its steps away";
  EXPECT_THAT(Refusal(), HasSubstr(wish_.published + " was published"));
}

TEST_F(ResumePointTest, TheFileAdoptHoldsTheUid) {
  Write(20, 6, JobUid());
  Write(40, 7, kOtherUid);
  wish_.is_new = true;
  root_.Write("adopt", "job-1\n");
  Prepared found = Find();
  EXPECT_EQ(found.resume_from, root_ / CheckpointFolderName(20, 6)) << "an id adopts only what has no uid";
  EXPECT_EQ(found.adopted, "job-1");
  EXPECT_THAT(Words(found), HasSubstr(CheckpointFolderName(40, 7)));
  root_.Write("adopt", kOtherUid.value());
  found = Find();
  ASSERT_TRUE(found.status.ok()) << found.status;
  EXPECT_EQ(found.resume_from, root_ / CheckpointFolderName(40, 7));
  EXPECT_EQ(found.adopted, kOtherUid.value());
  EXPECT_EQ(found.epoch, Epoch(8));
  root_.Write("adopt", "job-1 " + kOtherUid.value() + "\n");
  fs::remove_all(root_ / CheckpointFolderName(40, 7));
  EXPECT_EQ(Find().resume_from, root_ / CheckpointFolderName(20, 6)) << "both";
  // Once it has saved, it goes on from its own, whatever they save beside it.
  Write(30, 8);
  Write(90, 9, kOtherUid);
  EXPECT_EQ(Find().resume_from, root_ / CheckpointFolderName(30, 8));
}

// Its ranks have trained on, the file is used up or gone, and nothing was saved yet.
TEST_F(ResumePointTest, WhatWasAdoptedIsGoneOnFromWithoutTheFile) {
  const JobUid third(std::string(32, '3'));
  Write(20, 5, third);
  Write(30, 6, kOtherUid);
  wish_.owner.adopted = third.value();
  wish_.published = root_ / CheckpointFolderName(20, 5);
  Prepared found = Find();
  ASSERT_TRUE(found.status.ok()) << found.status;
  EXPECT_EQ(found.resume_from, root_ / CheckpointFolderName(20, 5));
  EXPECT_EQ(found.adopted, third.value());
  root_.Write("adopt", kOtherUid.value());
  found = Find();
  EXPECT_EQ(found.resume_from, root_ / CheckpointFolderName(30, 6)) << "somebody has thought again";
  EXPECT_EQ(found.adopted, kOtherUid.value());
  root_.Write("adopt", std::string(32, '4'));
  found = Find();
  EXPECT_EQ(found.resume_from, root_ / CheckpointFolderName(20, 5));
  EXPECT_THAT(Words(found), HasSubstr("adopt holds '44444444444444444444444444444444', which made none of these"));
  Write(40, 7);
  found = Find();
  EXPECT_EQ(found.resume_from, root_ / CheckpointFolderName(40, 7)) << "its own, once it has saved";
  EXPECT_EQ(found.adopted, "");
}

TEST_F(ResumePointTest, OfTwoOtherJobsTheAdoptedOneIsTaken) {
  const JobUid third(std::string(32, '3'));
  Write(20, 5, third, "elsewhere");
  Write(40, 7, kOtherUid);
  wish_.is_new = true;
  root_.Write("adopt", third.value());
  const Prepared found = Find();
  EXPECT_EQ(found.resume_from, root_ / CheckpointFolderName(20, 5));
  EXPECT_THAT(Words(found), HasSubstr(CheckpointFolderName(40, 7)));
  // Under the uid of this job, and another id.
  Write(60, 9, kOneUid, "elsewhere");
  EXPECT_EQ(Find().resume_from, root_ / CheckpointFolderName(20, 5));
}

TEST_F(ResumePointTest, AnAdoptThatIsNoFileAdoptsNothing) {
  Write(40, 7, kOtherUid);
  wish_.is_new = true;
  const std::string adopt = root_ / "adopt", elsewhere = root_.Write("elsewhere", kOtherUid.value());
  fs::create_symlink(elsewhere, adopt);
  EXPECT_THAT(Refusal(), HasSubstr("adopt is a symbolic link"));
  fs::remove(adopt);
  ASSERT_EQ(::mkfifo(adopt.c_str(), 0666), 0);
  EXPECT_THAT(Refusal(), HasSubstr("adopt is a named pipe")) << "nor is it waited for";
  fs::remove(adopt);
  root_.Write("adopt", std::string(5000, ' ') + kOtherUid.value());
  EXPECT_THAT(Refusal(), HasSubstr("adopt is larger than 4096 bytes"));
  root_.Write("adopt", "an-old-name another");
  EXPECT_THAT(Refusal(), HasSubstr("adopt holds 'an-old-name another', which made none of these; to go on"));
  root_.Write("adopt", "");
  EXPECT_THAT(Refusal(), HasSubstr("adopt is empty; to go on"));
  wish_.is_new = false;
  EXPECT_THAT(Words(Find()), HasSubstr("adopt is empty")) << "one that has begun begins again, and says so";
}

TEST_F(ResumePointTest, WhatHasNoUidIsAnOldJobsOwn) {
  Write(20, 3, JobUid());
  Write(40, 4, JobUid(), "job-2");
  wish_.is_new = true;
  EXPECT_THAT(Refusal(), HasSubstr("`echo job-2 >'"));
  wish_.owner.has_unnamed = true;
  const Prepared found = Find();
  EXPECT_EQ(found.resume_from, root_ / CheckpointFolderName(20, 3));
  EXPECT_THAT(Words(found), HasSubstr("was made by job 'job-2'"));
}

TEST_F(ResumePointTest, AnothersDamageIsNotItsOwn) {
  Write(40, 7, kOtherUid);
  fs::remove(root_ / CheckpointFolderName(40, 7) + "/rank-0.bin");  // it is being deleted
  EXPECT_TRUE(Find().status.ok()) << Find().status;
}

TEST_F(ResumePointTest, ARenamedFolderIsSkippedAndNamed) {
  Write(20, 2);
  Write(40, 3);
  fs::rename(root_ / CheckpointFolderName(20, 2), root_ / CheckpointFolderName(20, 900));
  Prepared found = Find();
  EXPECT_EQ(found.resume_from, root_ / CheckpointFolderName(40, 3));
  EXPECT_THAT(Words(found), HasSubstr(CheckpointFolderName(20, 900) + " was renamed, generation 2 wrote it; call it " +
                                      CheckpointFolderName(20, 2) + " again"));
  EXPECT_EQ(found.epoch, Epoch(901));
  fs::remove_all(root_ / CheckpointFolderName(40, 3));
  EXPECT_THAT(Refusal(), HasSubstr("was renamed")) << "alone it is not begun without";
  Write(90, 950, kOtherUid);
  EXPECT_THAT(Refusal(), HasSubstr("was renamed")) << "nor because another job's is there";
}

// A job's id became its folder at submit; others save there, too.
TEST_F(ResumePointTest, OfAJobThatIsTheInitialOneOnlyItsOwnAreTaken) {
  TempFolder old;
  const auto write = [&](int64_t step, int64_t epoch, const JobUid& uid) {
    ASSERT_TRUE(WriteTestCheckpoint(old.path(), step, TinyModel(true), 0.5, NewestEpoch(epoch, uid)).ok());
  };
  const JobUid third(std::string(32, '3'));
  input_.config.checkpoint.initial = old.path();
  wish_.is_new = true;
  write(20, 1, kOneUid);
  write(40, 2, kOtherUid);
  EXPECT_EQ(Find().resume_from, old / CheckpointFolderName(40, 2)) << "a folder was given: anybody's";
  wish_.initial_of = {JobId("job-1"), kOneUid};
  Prepared found = Find();
  EXPECT_TRUE(found.initial);
  EXPECT_EQ(found.resume_from, old / CheckpointFolderName(20, 1));
  EXPECT_THAT(Words(found), HasSubstr(CheckpointFolderName(40, 2) + " was made by job 'job-1' (uid " + kOtherUid.value() + ")"));
  wish_.initial_of.uid = third;
  EXPECT_TRUE(absl::IsFailedPrecondition(Find().status));
  EXPECT_THAT(Refusal(),
              HasSubstr("checkpoint.initial: checkpoint " + old / CheckpointFolderName(40, 2) + " was made by job 'job-1'"));
  wish_.initial_of.adopted = kOneUid.value();
  EXPECT_EQ(Find().resume_from, old / CheckpointFolderName(20, 1)) << "what that job stood on when it was named";
  write(10, 3, third);
  EXPECT_EQ(Find().resume_from, old / CheckpointFolderName(10, 3)) << "it has saved since";
}

TEST_F(ResumePointTest, WhatWasPublishedAndIsGoneIsSaid) {
  Write(20, 2);
  wish_.published = root_ / CheckpointFolderName(40, 2);
  const Prepared found = Find();
  EXPECT_EQ(found.resume_from, root_ / CheckpointFolderName(20, 2));
  EXPECT_THAT(Words(found), HasSubstr(CheckpointFolderName(40, 2) + ", which was published, is gone"));
  Write(60, 3);  // saved since; its report was lost
  EXPECT_EQ(Words(Find()), "");
}

// Half of the range is followed whatever is there; beyond it names prove nothing.
TEST_F(ResumePointTest, AnEmptyFolderDoesNotUseUpTheNumbers) {
  Write(20, 2);
  for (const int64_t epoch : {kFirstEpochNobodyGives - 1, kFirstEpochToProve}) {
    fs::create_directories(root_ / CheckpointFolderName(9, epoch));
    fs::create_directories(root_ / TemporaryCheckpointFolderName(9, epoch, kOneUid));
    const Prepared found = Find();
    EXPECT_EQ(found.epoch, Epoch(3));
    EXPECT_EQ(found.resume_from, root_ / CheckpointFolderName(20, 2));
  }
  fs::create_directories(root_ / CheckpointFolderName(9, kFirstEpochToProve - 1));
  EXPECT_EQ(Find().epoch, Epoch(kFirstEpochToProve)) << "a number is not used twice";
}

TEST_F(ResumePointTest, BeyondHalfOnlyOwnOnesThatVerifyCount) {
  Write(60, 1);
  Write(20, 2);
  fs::rename(root_ / CheckpointFolderName(60, 1), root_ / CheckpointFolderName(60, kFirstEpochToProve + 30));
  EXPECT_EQ(Find().epoch, Epoch(3)) << "renamed";
  Write(40, kFirstEpochToProve + 10, kOtherUid);
  EXPECT_EQ(Find().epoch, Epoch(3)) << "another job's";
  Write(40, kFirstEpochToProve + 2);
  fs::remove(root_ / CheckpointFolderName(40, kFirstEpochToProve + 2) + "/rank-0.bin");
  EXPECT_EQ(Find().epoch, Epoch(3)) << "it does not verify";
  Write(80, kFirstEpochToProve + 5);
  EXPECT_EQ(Find().epoch, Epoch(kFirstEpochToProve + 6)) << "its own";
}

TEST_F(ResumePointTest, NoNumberIsGivenThatReadersDoNotTake) {
  Write(20, kFirstEpochNobodyGives - 2);
  EXPECT_EQ(Find().epoch, Epoch(kFirstEpochNobodyGives - 1));
  Write(40, kFirstEpochNobodyGives - 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(Find().status));
  EXPECT_THAT(Refusal(), HasSubstr("the next generation of job job-1 would be 1000000000000"));
  EXPECT_THAT(Refusal(), HasSubstr("checkpoint.initial"));
  fs::remove_all(root_ / CheckpointFolderName(40, kFirstEpochNobodyGives - 1));
  input_.epoch = Epoch(kFirstEpochNobodyGives);
  EXPECT_TRUE(absl::IsFailedPrecondition(Find().status)) << "a store that gave it before";
}

// Others see where it is, should it not come back.
TEST_F(ResumePointTest, ItIsMarkedWhenTheStartsFolderIsLookedInto) {
  wish_.at_initial = std::make_shared<std::atomic<bool>>(false);
  input_.config.checkpoint.initial = root_ / "start";
  Write(20, 1);
  EXPECT_TRUE(Find().status.ok());
  EXPECT_FALSE(*wish_.at_initial) << "it goes on from its own";
  fs::remove_all(root_ / CheckpointFolderName(20, 1));
  EXPECT_THAT(Refusal(), HasSubstr("checkpoint.initial: "));
  EXPECT_TRUE(*wish_.at_initial);
}

TEST_F(ResumePointTest, AnAdoptedManifestDoesNotUseUpTheNumbers) {
  Write(20, 5, kOtherUid);
  fs::rename(root_ / CheckpointFolderName(20, 5), root_ / "step-00000020");  // as an older build named it
  Alter("step-00000020", [](CheckpointManifest& manifest) { manifest.epoch = kFirstEpochNobodyGives - 1; });
  root_.Write("adopt", kOtherUid.value());
  const Prepared found = Find();
  EXPECT_EQ(found.resume_from, root_ / "step-00000020");
  EXPECT_EQ(found.epoch, Epoch(1));
}

}  // namespace
}  // namespace motley::coordinator
