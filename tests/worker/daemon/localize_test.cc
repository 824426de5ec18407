#include "worker/daemon/localize.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/job/job_input.h"
#include "tests/worker/daemon/test_assignment.h"

namespace motley::worker {
namespace {

TEST(Localize, IsForJobsOnTheNodesDisksAlone) {
  StartCommand command;
  EXPECT_FALSE(IsLocal(command));
  command.ranks = {TestAssignment("train")};
  EXPECT_FALSE(IsLocal(command));
  command.ranks[0].config.checkpoint.storage = "local";
  EXPECT_TRUE(IsLocal(command));
}

TEST(Localize, GivesRanksPathsOfThisNode) {
  StartCommand command;
  command.ranks = {TestAssignment("train"), TestAssignment("train", 1, 1)};
  for (RankAssignment& rank : command.ranks) rank.job_uid = JobUid("0a"), rank.resume_from = "step-00000040-gen-3";
  command.source.name = "step-00000040-gen-3";
  Localize("/disk", command);
  for (const RankAssignment& rank : command.ranks) {
    EXPECT_EQ(rank.config.checkpoint.folder, "/disk/jobs/job.0a/checkpoints");
    EXPECT_EQ(rank.resume_from, "/disk/jobs/job.0a/resume/step-00000040-gen-3");
  }
}

// Weights to begin with lie where their path says.
TEST(Localize, LeavesTheInitialWeightsWhereTheyAre) {
  StartCommand command;
  command.ranks = {TestAssignment("train")};
  command.ranks[0].resume_from = "/weights";
  Localize("/disk", command);
  EXPECT_EQ(command.ranks[0].resume_from, "/weights");
}

TEST(Localize, GivesInputsPathsOfThisNode) {
  const JobInput input{std::string(64, 'a'), "words.txt"};
  const std::string local = "/disk/inputs/" + input.id + "/words.txt";
  RankAssignment rank = TestAssignment("train");
  rank.config.data.path = PathOf(input);
  rank.config.data.validation_path = "/data/own.txt";
  rank.config.checkpoint.initial = rank.resume_from = PathOf(input);
  LocalizeInputs("/disk", rank);
  EXPECT_EQ(rank.config.data.path, local);
  EXPECT_EQ(rank.config.data.validation_path, "/data/own.txt");
  EXPECT_EQ(rank.config.checkpoint.initial, local);
  EXPECT_EQ(rank.resume_from, local) << "the weights that it begins with";
  StorageCheckCommand check;
  check.data_path = "/data/own.txt";
  check.validation_path = check.initial = PathOf(input);
  LocalizeInputs("/disk", check);
  EXPECT_EQ(check.data_path, "/data/own.txt");
  EXPECT_EQ(check.validation_path, local);
  EXPECT_EQ(check.initial, local);
  EXPECT_EQ(InputRoots("/disk", {"/data/own.txt", local}), std::vector<std::string>{"/disk/inputs/" + input.id})
      << "no other one";
  EXPECT_TRUE(InputRoots("/disk", {"/disk/inputs", "/data", "/disk/inputs//", "/disk/inputs/../x"}).empty());
}

}  // namespace
}  // namespace motley::worker
