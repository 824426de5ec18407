// What an examination asks, what it believes, and what it says in the end.
#include "coordinator/state/examination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/coordinator/state/examination_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

TEST_F(ExaminationTest, AllIsWell) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  e_.request = {"/data", "/folder", false};
  Begin();
  ASSERT_NE(SentTo<ReachCheckCommand>("a"), nullptr);
  EXPECT_EQ(SentTo<ReachCheckCommand>("a")->secret, "secret");
  EXPECT_EQ(SentTo<ReachCheckCommand>("a")->targets.size(), 2u);
  EXPECT_FALSE(SentTo<ReachCheckCommand>("a")->burst);
  Answer();
  EXPECT_EQ(e_.stage, ExaminationStage::kRates);
  EXPECT_EQ(sent_.size(), 1u) << "one way at a time of three nodes";
  AnswerAll();
  EXPECT_EQ(Text(FindingState::kWrong) + Text(FindingState::kWarning) + Text(FindingState::kLeftOut), "");
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("links: 100.0 MB/s"));
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("6 ways measured"));
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("folder: /folder: all 3 nodes write it and see what node a wrote"));
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("data: /data: 100 bytes, the same on 3 nodes"));
  ASSERT_NE(SentTo<StorageCheckCommand>("b"), nullptr);
  EXPECT_TRUE(SentTo<StorageCheckCommand>("b")->over) << "tokens are removed";
}

TEST_F(ExaminationTest, NoNodesAndOneNode) {
  Begin();
  EXPECT_EQ(e_.stage, ExaminationStage::kDone);
  EXPECT_THAT(Text(FindingState::kWrong), HasSubstr("nodes: none has joined; start motley-worker"));
  e_ = Examination();
  AddNode("a");
  Begin();
  EXPECT_EQ(e_.stage, ExaminationStage::kDone);
  EXPECT_EQ(Text(FindingState::kWrong), "");
  EXPECT_THAT(Text(FindingState::kLeftOut), HasSubstr("ports: there is only one node"));
}

TEST_F(ExaminationTest, WhoDoesNotAnswerIsNamedAndTheOthersAreMeasured) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  Begin();
  Answer({"b"});
  EXPECT_EQ(e_.stage, ExaminationStage::kReach) << "b is waited for";
  clock_.Advance(absl::Seconds(5));
  EXPECT_THAT(Doing(clock_.Now(), e_), HasSubstr("waiting for b (5 s)"));
  clock_.Advance(absl::Seconds(6));
  Step();
  EXPECT_EQ(e_.stage, ExaminationStage::kRates);
  AnswerAll();
  EXPECT_THAT(Text(FindingState::kWrong), HasSubstr("ports: whom they reach was not said within 10 s by b"));
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("2 ways measured"));
}

TEST_F(ExaminationTest, WhatIsNotReachedIsNamedOnceForEachTarget) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  Begin();
  for (const char* from : {"a", "c"}) {
    EXPECT_TRUE(FileReach(NodeName(from), {"doctor-1-reach", {{NodeName("b"), "node b is not reached: no answer"}}}, e_));
  }
  Answer({"a", "c"});
  EXPECT_THAT(Text(FindingState::kWrong),
              HasSubstr("ports of b: tried from a, c: node b is not reached: no answer; look at worker.data_address"));
  EXPECT_EQ(e_.rounds.size(), 2u) << "only what b reached is measured";
}

TEST_F(ExaminationTest, OnlyOwnAnswersToTheOpenQuestionCount) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  Begin();
  EXPECT_FALSE(FileReach(NodeName("a"), {"doctor-2-reach", {{NodeName("b"), "x"}}}, e_)) << "of another examination";
  EXPECT_FALSE(FileReach(NodeName("z"), {"doctor-1-reach", {{NodeName("b"), "x"}}}, e_)) << "was not asked";
  EXPECT_FALSE(FileStorage(NodeName("a"), {JobId("doctor-1-0"), Epoch(0), "x", {}, false, "doctor-1-reach"}, e_));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(FileReach(NodeName("a"),
                        {"doctor-1-reach",
                         {{NodeName("b"), "", nan, 1e9},
                          {NodeName("b"), "twice"},
                          {NodeName("a"), "itself"},
                          {NodeName("z"), "stranger"},
                          {NodeName("c"), "", -1}}},
                        e_));
  EXPECT_FALSE(FileReach(NodeName("a"), {"doctor-1-reach", {{NodeName("b"), "again"}}}, e_));
  EXPECT_EQ(e_.ways.size(), 6u);
  const WayAnswer& way = e_.ways.at({NodeName("a"), NodeName("b")});
  EXPECT_EQ(way.error, "");
  EXPECT_EQ(way.connect_seconds, 0) << "not a number";
  EXPECT_EQ(way.bytes_per_second, 0) << "no burst was asked for";
  Answer({"a"});
  ASSERT_EQ(e_.stage, ExaminationStage::kRates);
  ASSERT_EQ(sent_.size(), 1u);
  const NodeName from = sent_[0].first;
  const auto& check = std::get<ReachCheckCommand>(sent_[0].second);
  EXPECT_FALSE(FileReach(from, {"doctor-1-reach", {{check.targets[0].node, "", 0, 1e9}}}, e_))
      << "the answer to the stage before";
  ReachReport all{check.check_id, {}};
  for (const char* to : {"a", "b", "c"}) all.answers.push_back({NodeName(to), "", 0, 1e9});
  EXPECT_TRUE(FileReach(from, all, e_));
  int measured = 0;
  for (const auto& [w, answer] : e_.ways) measured += answer.bytes_per_second > 0;
  EXPECT_EQ(measured, 1) << "the way of this round, and no other";
}

TEST_F(ExaminationTest, ANodeThatIsLostMeanwhileIsNotWaitedFor) {
  for (const char* name : {"a", "b"}) AddNode(name);
  Begin();
  state_.nodes.at(NodeName("b")).connected = false;
  Answer({"b"});
  EXPECT_EQ(e_.stage, ExaminationStage::kDone);
  EXPECT_THAT(Text(FindingState::kWrong), HasSubstr("node b: lost, last heard of 0 s ago"));
}

TEST_F(ExaminationTest, NodesThatAreLostBeforeTheyAnswerAboutPathsAreNotBlamedForThem) {
  for (const char* name : {"a", "b"}) AddNode(name);
  e_.request = {"/data", "/folder", false};
  Begin();
  while (e_.stage != ExaminationStage::kWriting) Answer();
  const Examination writing = e_;
  const Messages asked = sent_;
  state_.nodes.at(NodeName("b")).connected = false;
  Answer({"b"});
  AnswerAll();
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("folder: /folder: the node writes it"));
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("the same on 1 node"));
  EXPECT_EQ(Found(FindingState::kWrong).size(), 1u) << "that it is lost";
  e_ = writing, sent_ = asked;
  state_.nodes.at(NodeName("a")).connected = false;
  Step();
  EXPECT_EQ(e_.stage, ExaminationStage::kDone);
  EXPECT_THAT(Text(FindingState::kLeftOut), HasSubstr("data: no node is there any more"));
  EXPECT_THAT(Text(FindingState::kLeftOut), HasSubstr("folder: no node is there any more"));
}

TEST_F(ExaminationTest, BesideAJobTheLinksAreLeftOutUnlessAsked) {
  for (const char* name : {"a", "b"}) AddNode(name);
  state_.run.emplace();
  state_.run->job = JobId("j");
  state_.run->stage = Stage::kRunning;
  const Examination fresh = e_;
  Begin();
  AnswerAll();
  EXPECT_THAT(Text(FindingState::kLeftOut), HasSubstr("links: job j uses the links; --rates"));
  e_ = fresh;
  e_.request.rates_beside_job = true;
  Begin();
  AnswerAll();
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("2 ways measured"));
  e_ = fresh;
  state_.run->stage = Stage::kIdle;
  Begin();
  Answer();
  state_.run->stage = Stage::kStarting;  // in the middle of the rounds
  AnswerAll();
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("1 way measured"));
  EXPECT_THAT(Text(FindingState::kLeftOut), HasSubstr("the others were not measured: job j"));
}

TEST_F(ExaminationTest, ManyNodesAreMeasuredInARing) {
  for (int i = 0; i < 17; ++i) AddNode("n" + std::to_string(10 + i));
  Begin();
  Answer();
  EXPECT_EQ(e_.rounds.size(), 3u);
  AnswerAll();
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("17 ways measured: of 17 nodes only a ring"));
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("nodes: 17 are ready"));
}

TEST_F(ExaminationTest, EveryNodeHasABoundOfTargets) {
  for (int i = 0; i < 200; ++i) AddNode("n" + std::to_string(100 + i));
  Begin();
  std::map<NodeName, size_t> tried;
  for (const auto& [node, command] : sent_) {
    for (const ReachTarget& to : std::get<ReachCheckCommand>(command).targets) ++tried[to.node];
  }
  EXPECT_EQ(tried.size(), 200u);
  for (const auto& [node, times] : tried) EXPECT_EQ(times, kMostTargets) << node;
  AnswerAll();
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("every node reaches the 127 that follow it"));
}

TEST_F(ExaminationTest, ASlowLinkIsAWarning) {
  for (const char* name : {"a", "b"}) AddNode(name);
  Begin();
  Answer();
  while (e_.stage == ExaminationStage::kRates) {
    const auto [from, command] = sent_[0];
    const auto& check = std::get<ReachCheckCommand>(command);
    EXPECT_TRUE(FileReach(from, {check.check_id, {{check.targets[0].node, "", 0, from == NodeName("a") ? 1e7 : 1.2e8}}}, e_));
    Step();
  }
  EXPECT_THAT(Text(FindingState::kWarning), HasSubstr("links: from a to b only 10.0 MB/s where 120.0 MB/s is usual"));
  EXPECT_EQ(Text(FindingState::kWrong), "");
}

TEST_F(ExaminationTest, PathsThatAreNotTheSame) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  e_.request = {"/data", "/folder", false};
  Begin();
  while (e_.stage != ExaminationStage::kWriting) Answer();
  ASSERT_EQ(sent_.size(), 3u);
  std::set<JobId> jobs;
  for (const auto& [node, command] : sent_) jobs.insert(std::get<StorageCheckCommand>(command).job);
  EXPECT_EQ(jobs.size(), 3u) << "each writes a file of its own";
  EXPECT_TRUE(FileStorage(
      NodeName("a"), {JobId(), Epoch(0), "cannot write to the checkpoint folder '/folder'", {}, false, "doctor-1-write"}, e_));
  Answer({"a"});
  ASSERT_EQ(e_.stage, ExaminationStage::kReading);
  EXPECT_EQ(e_.writer, NodeName("b"));
  EXPECT_TRUE(FileStorage(NodeName("a"), {JobId(), Epoch(0), "", {100, "d"}, true, "doctor-1-read"}, e_));
  EXPECT_TRUE(FileStorage(NodeName("b"), {JobId(), Epoch(0), "", {100, "d"}, true, "doctor-1-read"}, e_));
  EXPECT_TRUE(FileStorage(NodeName("c"), {JobId(), Epoch(0), "", {120, "e"}, false, "doctor-1-read"}, e_));
  Step();
  const std::string wrong = Text(FindingState::kWrong);
  EXPECT_THAT(wrong, HasSubstr("folder: node a: cannot write to the checkpoint folder"));
  EXPECT_THAT(wrong, HasSubstr("folder: /folder is not one folder: what node b wrote is not seen by c"));
  EXPECT_THAT(wrong, HasSubstr("data: node c has other data (120 bytes, digest e) than node a (100 bytes, digest d)"));
}

TEST_F(ExaminationTest, AllThatAJobReadsIsLookedAt) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  e_.request = {"/data", "", false, "/held-out", "/base"};
  Begin();
  while (e_.stage != ExaminationStage::kReading) Answer();
  const auto* sent = SentTo<StorageCheckCommand>("a");
  ASSERT_NE(sent, nullptr);
  EXPECT_EQ(sent->data_path + sent->validation_path + sent->initial, "/data/held-out/base");
  StorageReport report{JobId(), Epoch(0), "", {100, "d"}, true, "doctor-1-read"};
  report.validation = {10, "v"};
  report.initial_digest = "w";
  EXPECT_TRUE(FileStorage(NodeName("a"), report, e_));
  report.initial_digest = "of another model";
  EXPECT_TRUE(FileStorage(NodeName("b"), report, e_));
  report = {JobId(), Epoch(0), "data.validation_path: '/held-out' is not there", {}, true, "doctor-1-read"};
  EXPECT_TRUE(FileStorage(NodeName("c"), report, e_));
  Step();
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("data: /data: 100 bytes, the same on 2 nodes (digest d)"));
  EXPECT_EQ(
      Text(FindingState::kWrong),
      "validation: node c: data.validation_path: '/held-out' is not there\n"
      "initial: node b has other data (weights of HuggingFace, digest of another m) than node a (weights of HuggingFace, digest "
      "w); copy the same data to both\n");
}

TEST_F(ExaminationTest, BehindAPathThatIsWrongEverywhereTheOthersAreNotJudged) {
  AddNode("a");
  e_.request = {"/data", "", false, "/held-out", "/base"};
  Begin();
  while (e_.stage != ExaminationStage::kReading) Answer();
  EXPECT_TRUE(
      FileStorage(NodeName("a"), {JobId(), Epoch(0), "checkpoint.initial: '/base' is not there", {}, true, "doctor-1-read"}, e_));
  Step();
  EXPECT_EQ(Text(FindingState::kWrong), "initial: node a: checkpoint.initial: '/base' is not there\n");
  EXPECT_THAT(Text(FindingState::kLeftOut), HasSubstr("data: /data: another path is wrong on every node"));
  EXPECT_THAT(Text(FindingState::kLeftOut), HasSubstr("validation: /held-out: another path is wrong on every node"));
}

TEST_F(ExaminationTest, OfEndlessTextsLittleIsKept) {
  AddNode("a");
  e_.request = {"/data", "", false};
  Begin();
  while (e_.stage != ExaminationStage::kReading) Answer();
  const std::string endless(1 << 20, 'x');
  StorageReport report{JobId(), Epoch(0), endless, {}, true, "doctor-1-read"};
  for (DataSummary* data : {&report.data, &report.validation}) data->digest = data->tokenizer = endless;
  report.initial_digest = report.initial_tokenizer = endless;
  EXPECT_TRUE(FileStorage(NodeName("a"), report, e_));
  const StorageReport& kept = e_.read.at(NodeName("a"));
  for (const std::string* text : {&kept.error, &kept.data.digest, &kept.data.tokenizer, &kept.validation.digest,
                                  &kept.validation.tokenizer, &kept.initial_digest, &kept.initial_tokenizer}) {
    EXPECT_LE(text->size(), 2048u);
  }
}

TEST_F(ExaminationTest, PathsWithoutAnAnswerEndTheWait) {
  AddNode("a");
  e_.request = {"/data", "/folder", false};
  Begin();
  clock_.Advance(absl::Seconds(31));
  Step();
  clock_.Advance(absl::Seconds(121));
  Step();
  EXPECT_EQ(e_.stage, ExaminationStage::kDone);
  EXPECT_THAT(Text(FindingState::kWrong), HasSubstr("folder: /folder: no answer within 30 s from a"));
  EXPECT_THAT(Text(FindingState::kWrong), HasSubstr("data: /data: no answer within 120 s from a"));
}

}  // namespace
}  // namespace motley::coordinator
