// What the storage check of a set-up leads to.
#include <gmock/gmock.h>

#include "tests/coordinator/state/decide_fixture.h"

namespace motley::coordinator {
namespace {

TEST_F(DecideTest, OtherDataOnOneNodeFailsANewJobAndLeavesTheNodeOutOfAnOldOne) {
  Enter(Stage::kStorage);
  for (const char* name : {"n1", "n2"}) {
    StorageAnswer& answer = run().storage[NodeName(name)];
    answer.asked = answer.answered = true;
    answer.report.data_digest = name;
    answer.report.data_bytes = kEnoughBytes;
    answer.report.token_seen = true;
  }
  Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<Finish>(decision.action));
  EXPECT_NE(decision.reason.find("node n2"), std::string::npos) << decision.reason;
  EXPECT_NE(decision.reason.find("holds other data"), std::string::npos) << decision.reason;
  run().has_run = true;
  job().data_digest = "n1";
  decision = Now();
  ASSERT_TRUE(std::holds_alternative<LeaveOutNode>(decision.action));
  EXPECT_EQ(std::get<LeaveOutNode>(decision.action).node, NodeName("n2"));
}

TEST_F(DecideTest, OtherDataAtResumeSaysTheWayOn) {
  Enter(Stage::kStorage);
  StorageAnswer& answer = run().storage[NodeName("n1")];
  answer.asked = answer.answered = true;
  answer.report.data_digest = "now";
  answer.report.data_bytes = kEnoughBytes;
  job().data_digest = "then";
  EXPECT_THAT(Now().reason, testing::EndsWith("(digest then); put it back, or begin a new job"));
  job().newest_checkpoint = "/c/j/step-00000004-gen-3";
  const Decision decision = Now();
  EXPECT_TRUE(std::holds_alternative<Finish>(decision.action));
  EXPECT_THAT(decision.reason, testing::EndsWith("than when the job began (digest then); put it back, or begin a new job with "
                                                 "checkpoint.initial = '" +
                                                 job().id.value() + "'"));
}

TEST_F(DecideTest, AFolderThatIsNotSharedIsNamed) {
  Enter(Stage::kStorage);
  run().token = "t";
  run().token_writer = NodeName("n1");
  for (const char* name : {"n1", "n2"}) {
    StorageAnswer& answer = run().storage[NodeName(name)];
    answer.asked = answer.answered = true;
    answer.report.data_digest = "same";
    answer.report.data_bytes = kEnoughBytes;
  }
  const Decision decision = Now();
  EXPECT_TRUE(std::holds_alternative<Finish>(decision.action));
  EXPECT_NE(decision.reason.find("not the same folder as on node n1"), std::string::npos) << decision.reason;
}

TEST_F(DecideTest, StorageAnswersLeadToProfiling) {
  Enter(Stage::kStorage);
  run().storage[NodeName("n1")].asked = true;
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  run().storage[NodeName("n1")].answered = true;
  run().storage[NodeName("n1")].report.data_bytes = kEnoughBytes;
  EXPECT_TRUE(std::holds_alternative<RequestProfiles>(Now().action));
}

TEST_F(DecideTest, DataThatIsTooShortFailsBeforeAnythingIsMeasured) {
  Enter(Stage::kStorage);
  StorageAnswer& answer = run().storage[NodeName("n1")];
  answer.asked = answer.answered = true;
  answer.report.data_bytes = 100;
  job().config.data.path = "/data/short.txt";
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<Finish>(decision.action));
  EXPECT_NE(decision.reason.find("/data/short.txt"), std::string::npos) << decision.reason;
}

}  // namespace
}  // namespace motley::coordinator
