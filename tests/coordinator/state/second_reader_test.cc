#include "coordinator/state/second_reader.h"

#include "tests/coordinator/state/decide_fixture.h"

namespace motley::coordinator {
namespace {

class SecondReaderTest : public DecideTest {
 protected:
  SecondReaderTest() {
    AddNode("n3");
    run().has_run = true;
    for (const char* name : {"n1", "n2", "n3"}) run().storage_ok[NodeName(name)] = 1;
    run().suspicion = {
        .checkpoint = "/c/j/step-00000020-gen-3", .accuser = DeviceId("n2/gpu0"), .complaint = "block 3", .bytes = 0};
  }
  Suspicion& suspicion() { return *run().suspicion; }
  // Who is asked now; empty: nobody.
  std::string Asks() {
    const Decision decision = Now();
    const auto* ask = std::get_if<AskSecondReader>(&decision.action);
    if (ask == nullptr) return "";
    suspicion().reader = ask->node;
    suspicion().tried.insert(ask->node);
    suspicion().incarnation = 1;
    suspicion().asked = now_;
    suspicion().answer.reset();
    return ask->node.value();
  }
  void Answer(const absl::Status& status) {
    StorageReport& answer = suspicion().answer.emplace();
    answer.error = std::string(status.message());
    answer.error_code = status.code();
  }
  std::optional<Verdict> Judged() {
    const Decision decision = Now();
    const auto* judge = std::get_if<JudgeCheckpoint>(&decision.action);
    return judge == nullptr ? std::nullopt : std::optional(judge->verdict);
  }
};

TEST_F(SecondReaderTest, WhereItVerifiesElsewhereTheAccuserReadsBadly) {
  EXPECT_EQ(Asks(), "n1");
  EXPECT_TRUE(std::holds_alternative<KeepOn>(Now().action));
  EXPECT_NE(Now().reason.find("is read by node n1 before anybody is blamed"), std::string::npos) << Now().reason;
  Answer(absl::OkStatus());
  EXPECT_EQ(Judged(), Verdict::kWhole);
}

TEST_F(SecondReaderTest, WhereItDoesNotItIsDamaged) {
  EXPECT_EQ(Asks(), "n1");
  Answer(absl::DataLossError("rank-0.bin was altered"));
  EXPECT_EQ(Judged(), Verdict::kDamaged);
}

TEST_F(SecondReaderTest, WhoCannotSayIsNoReader) {
  EXPECT_EQ(Asks(), "n1");
  Answer(absl::NotFoundError("nothing is mounted there"));
  EXPECT_EQ(Asks(), "n3");
  now_ += config_.storage_timeout + absl::Seconds(1);  // silent
  EXPECT_EQ(Asks(), "n2") << "nobody else is left: who complained reads again";
  Answer(absl::UnavailableError("Input/output error"));
  EXPECT_EQ(Judged(), Verdict::kDamaged) << "as it said";
}

TEST_F(SecondReaderTest, AReaderThatIsLostIsNotWaitedFor) {
  EXPECT_EQ(Asks(), "n1");
  node("n1").description.incarnation = 2;
  EXPECT_EQ(Asks(), "n3");
  node("n3").connected = false;
  node("n2").connected = false;
  EXPECT_EQ(Judged(), Verdict::kReadAgain) << "nobody is there to read it";
}

TEST_F(SecondReaderTest, ANewcomersFolderIsNotKnownYet) {
  run().storage_ok.erase(NodeName("n1"));
  EXPECT_EQ(Asks(), "n3");
}

TEST_F(SecondReaderTest, ANodeAloneReadsItOnceMore) {
  node("n1").connected = node("n3").connected = false;
  EXPECT_EQ(Asks(), "n2");
  Answer(absl::OkStatus());
  EXPECT_EQ(Judged(), Verdict::kReadAgain);
  run().read_twice.insert(suspicion().checkpoint);  // and its rank complains again
  suspicion().tried.clear();
  suspicion().reader = NodeName();
  suspicion().answer.reset();
  EXPECT_EQ(Judged(), Verdict::kDamaged);
}

TEST_F(SecondReaderTest, AJobThatIsStoppedStops) {
  job().stop_requested = true;
  EXPECT_TRUE(std::holds_alternative<Finish>(Now().action));
}

}  // namespace
}  // namespace motley::coordinator
