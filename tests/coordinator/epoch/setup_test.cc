#include "coordinator/epoch/setup.h"

#include "coordinator/epoch/rendezvous.h"
#include "coordinator/state/membership.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

using StorageChecks = CoreTest;

TEST_F(StorageChecks, ANewcomerIsComparedWithANodeThatHasPassed) {
  Link& newcomer = AddNode("n1");
  Link& old = AddNode("n2");
  JobRun& run = AddRun("a");
  run.storage_ok[NodeName("n2")] = 1;
  ASSERT_TRUE(BeginStorageChecks(*core_, UsableDevices(core_->state, run), "test").ok());
  EXPECT_TRUE(newcomer.sent.empty()) << "it is asked when the token has been written";
  ASSERT_EQ(old.sent.size(), 1u);
  EXPECT_TRUE(std::get<StorageCheckCommand>(old.sent[0]).write_token);
  StorageReport report;
  report.token_seen = true;
  OnStorageReport(*core_, NodeName("n2"), report);
  ASSERT_EQ(newcomer.sent.size(), 1u);
  EXPECT_FALSE(std::get<StorageCheckCommand>(newcomer.sent[0]).write_token);
}

TEST_F(StorageChecks, AQuestionThatIsAskedAgainIsAnsweredOnce) {
  Link& node = AddNode("n1");
  const JobRun& run = AddRun("a");
  KvGetReport get;
  get.job = run.job;
  get.key = "rank-1";
  OnKvGet(*core_, NodeName("n1"), get);
  OnKvGet(*core_, NodeName("n1"), get);
  KvSetReport set;
  set.job = run.job;
  set.key = "rank-1";
  OnKvSet(*core_, set);
  EXPECT_EQ(node.sent.size(), 1u);
}

}  // namespace
}  // namespace motley::coordinator
