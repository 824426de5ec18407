// What the storage check of a set-up leads to.
#include <gmock/gmock.h>

#include "tests/coordinator/state/decide_fixture.h"

namespace motley::coordinator {
namespace {

class StorageTest : public DecideTest {
 protected:
  StorageReport& Answer(const std::string& name, const std::string& digest) {
    if (!state_.nodes.contains(NodeName(name))) AddNode(name);
    StorageAnswer& answer = run().storage[NodeName(name)];
    answer.asked = answer.answered = true;
    answer.report.data.digest = digest;
    answer.report.data.bytes = kEnoughBytes;
    answer.report.token_seen = true;
    return answer.report;
  }
  // Those that are left out now; none: the job is FAILED, or goes on with all.
  std::string LeftOut() {
    Enter(Stage::kStorage);
    const Decision decision = Now();
    reason_ = decision.reason;
    failed_ = std::holds_alternative<Finish>(decision.action);
    if (!std::holds_alternative<LeaveOutNodes>(decision.action)) return "";
    std::string names;
    for (const auto& [node, why] : std::get<LeaveOutNodes>(decision.action).nodes) names += node.value() + " ";
    return names;
  }
  bool failed_ = false;
  std::string reason_;
};

TEST_F(StorageTest, OfTwoNodesWithOtherDataANewJobBelievesNeitherAndAnOldOneTheOneThatHoldsItsOwn) {
  Answer("n1", "aa"), Answer("n2", "bb");
  EXPECT_EQ(LeftOut(), "");
  EXPECT_TRUE(failed_);
  EXPECT_EQ(reason_.find("node n2: data.path '' holds other data (1000000 bytes, digest bb) than on node n1 (1000000 bytes, "
                         "digest aa)"),
            0u)
      << reason_;
  job().data.digest = "bb";
  EXPECT_EQ(LeftOut(), "");
  EXPECT_TRUE(failed_) << "n2 was only the first to come";
  job().started_unix_ms = 1;
  EXPECT_EQ(LeftOut(), "n1 ");
  run().has_run = true;
  EXPECT_EQ(LeftOut(), "n1 ");
  job().data.digest = "cc";
  EXPECT_EQ(LeftOut(), "");
  EXPECT_TRUE(failed_) << "the job's data was changed";
  EXPECT_THAT(reason_, testing::EndsWith("than when the job began (digest cc); put it back, or begin a new job"));
}

TEST_F(StorageTest, TheFewWithOtherDataAreLeftOutOfANewJobAtOnce) {
  Answer("n1", "bad"), Answer("n2", "good"), Answer("n3", "good"), Answer("n4", "good"), Answer("n5", "worse");
  EXPECT_EQ(LeftOut(), "n1 n5 ");
  EXPECT_EQ(reason_.find("node n1 is left out: data.path '' holds other data (1000000 bytes, digest bad) than on node n2"), 0u)
      << reason_;
  Answer("n4", "bad");
  EXPECT_EQ(LeftOut(), "");
  EXPECT_TRUE(failed_) << "two of five agree";
}

TEST_F(StorageTest, TheFewWithOtherDataOfValidationsAreLeftOut) {
  job().config.data.validation_path = "/v";
  job().config.data.validation_samples = 2;
  Answer("n1", "same").validation = TextSummary(5000, "bad");
  for (const char* node : {"n2", "n3"}) Answer(node, "same").validation = TextSummary(5000, "good");
  EXPECT_EQ(LeftOut(), "n1 ");
  EXPECT_EQ(
      reason_,
      "node n1 is left out: data.validation_path '/v' holds other data (5000 bytes, digest bad) than on node n2 (5000 bytes, "
      "digest good)");
  job().data = TextSummary(kEnoughBytes, "same"), job().validation = TextSummary(5000, "bad");
  job().started_unix_ms = 1;
  EXPECT_EQ(LeftOut(), "n2 n3 ") << "the job began with the others";
}

TEST_F(StorageTest, TokensOfAnotherTokenizerThanTheWeightsEndTheJob) {
  Answer("n1", "same"), Answer("n2", "same");
  for (auto& [node, answer] : run().storage) answer.report.initial_tokenizer = "tok";
  EXPECT_EQ(LeftOut(), "");
  EXPECT_TRUE(failed_);
  EXPECT_THAT(reason_, testing::HasSubstr("motley data prepare --tokenizer"));
}

TEST_F(StorageTest, ThoseThatPassedBeforeCountWhenOthersCome) {
  job().data.digest = "good";
  AddNode("n3");
  Answer("n1", "good"), Answer("n2", "other");  // n1 writes the token; n3 passed and is not asked again
  EXPECT_EQ(LeftOut(), "n2 ");
}

TEST_F(StorageTest, WhoCannotReadItsDataIsLeftOutWhereMostCan) {
  Answer("n1", "").error = "data.path '/d': no such file", Answer("n2", "good");
  run().storage[NodeName("n1")].report.error_code = absl::StatusCode::kNotFound;
  EXPECT_EQ(LeftOut(), "");
  EXPECT_TRUE(failed_);
  EXPECT_EQ(reason_, "node n1: data.path '/d': no such file");
  Enter(Stage::kStorage);
  EXPECT_EQ(std::get<Finish>(Now().action).error_code, absl::StatusCode::kNotFound);
  Answer("n3", "good");
  EXPECT_EQ(LeftOut(), "n1 ");
}

// Of descriptors, or memory: it says nothing of data and folder.
TEST_F(StorageTest, WhoCouldNotLookHasNoVote) {
  const auto could_not_look = [this](const std::string& name) {
    StorageReport& report = Answer(name, "");
    report.error = "the storage check could not be started (Too many open files)";
    report.error_code = kCheckNotStarted;
    report.token_seen = false;
  };
  could_not_look("n1"), could_not_look("n2"), Answer("n3", "good");
  EXPECT_EQ(LeftOut(), "n1 n2 ") << "one looked, and found everything";
  EXPECT_EQ(reason_.find("node n1 is left out: the storage check could not be started"), 0u) << reason_;
  Answer("n3", "").error = "data.path '/d': no such file";
  EXPECT_EQ(LeftOut(), "");
  EXPECT_TRUE(failed_);
  EXPECT_EQ(reason_, "node n3: data.path '/d': no such file");
  could_not_look("n3");
  EXPECT_EQ(LeftOut(), "");
  EXPECT_FALSE(failed_);
  EXPECT_EQ(reason_, "node n1: the storage check could not be started (Too many open files)");
  EXPECT_TRUE(std::holds_alternative<RetryLater>(Now().action)) << "nobody looked: it is waited for";
  run().has_run = true;
  EXPECT_TRUE(std::holds_alternative<RetryLater>(Now().action));
}

TEST_F(StorageTest, WhoSeesAnotherFolderIsLeftOutWhereMostSeeTheSame) {
  run().token = "t";
  run().token_writer = NodeName("n1");
  Answer("n1", "same"), Answer("n2", "same").token_seen = false, Answer("n3", "same").token_seen = false;
  EXPECT_EQ(LeftOut(), "") << "perhaps each has a folder of its own";
  EXPECT_TRUE(failed_);
  Answer("n3", "same");
  EXPECT_EQ(LeftOut(), "n2 ");
}

TEST_F(StorageTest, WhoDoesNotAnswerInTimeIsLeftOutWhereMostDo) {
  Answer("n1", "good"), Answer("n2", "good"), Answer("n3", "bad");
  run().storage[NodeName("n3")].answered = false;
  EXPECT_EQ(LeftOut(), "");
  EXPECT_FALSE(failed_) << "it is waited for";
  now_ += config_.storage_timeout + absl::Seconds(1);
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<LeaveOutNodes>(decision.action)) << decision.reason;
  EXPECT_THAT(decision.reason, testing::HasSubstr("node n3 is left out: the storage check was not answered within 300 s"));
  run().storage[NodeName("n2")].answered = false;
  EXPECT_TRUE(std::holds_alternative<Finish>(Now().action)) << "one of three";
  run().has_run = true;
  EXPECT_TRUE(std::holds_alternative<LeaveOutNodes>(Now().action));
}

TEST_F(DecideTest, OtherDataAtResumeSaysTheWayOn) {
  Enter(Stage::kStorage);
  StorageAnswer& answer = run().storage[NodeName("n1")];
  answer.asked = answer.answered = true;
  answer.report.data.digest = "now";
  answer.report.data.bytes = kEnoughBytes;
  job().data.digest = "then";
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
    answer.report.data.digest = "same";
    answer.report.data.bytes = kEnoughBytes;
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
  run().storage[NodeName("n1")].report.data.bytes = kEnoughBytes;
  EXPECT_TRUE(std::holds_alternative<RequestProfiles>(Now().action));
}

TEST_F(DecideTest, DataThatIsTooShortFailsBeforeAnythingIsMeasured) {
  Enter(Stage::kStorage);
  StorageAnswer& answer = run().storage[NodeName("n1")];
  answer.asked = answer.answered = true;
  answer.report.data.bytes = 100;
  job().config.data.path = "/data/short.txt";
  const Decision decision = Now();
  ASSERT_TRUE(std::holds_alternative<Finish>(decision.action));
  EXPECT_NE(decision.reason.find("/data/short.txt"), std::string::npos) << decision.reason;
}

// Base and Instruct of one model have one path, one shape and one size.
TEST_F(StorageTest, TheFewWithOtherWeightsAreLeftOut) {
  job().config.checkpoint.initial = "/models/base";
  Answer("n1", "d").initial_digest = "instruct";
  for (const char* name : {"n2", "n3", "n4"}) Answer(name, "d").initial_digest = "base";
  Answer("n5", "d");  // its folder holds checkpoints, or its worker is of an older build
  EXPECT_EQ(LeftOut(), "n1 n5 ");
  EXPECT_EQ(
      reason_.find("node n1 is left out: checkpoint.initial '/models/base' holds weights of digest instruct, and on node n2 it "
                   "holds weights of digest base; copy the same folder there; node n5 is left out: checkpoint.initial "
                   "'/models/base' holds no weights of HuggingFace, and"),
      0u)
      << reason_;
  job().newest_checkpoint = "/checkpoints/step-00000001-gen-1";
  EXPECT_EQ(LeftOut(), "") << "nobody reads them any more";
  EXPECT_FALSE(failed_);
}

TEST_F(StorageTest, WhatTheJobBeganWithCountsUntilItHasACheckpoint) {
  job().config.checkpoint.initial = "/models/base";
  job().initial_digest = "base";
  Answer("n1", "d").initial_digest = "instruct", Answer("n2", "d").initial_digest = "instruct";
  Answer("n3", "d").initial_digest = "base";
  run().has_run = true;
  EXPECT_EQ(LeftOut(), "n1 n2 ");
  EXPECT_NE(reason_.find("and it held weights of digest base when the job began"), std::string::npos) << reason_;
}

}  // namespace
}  // namespace motley::coordinator
