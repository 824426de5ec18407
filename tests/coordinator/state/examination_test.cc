// What an examination asks, what it believes, and what it says in the end.
#include "coordinator/state/examination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "common/base/clock.h"
#include "coordinator/state/cluster.h"
#include "coordinator/state/examination_findings.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

class ExaminationTest : public ::testing::Test {
 protected:
  void AddNode(const std::string& name) {
    NodeRecord& node = state_.nodes[NodeName(name)];
    node.connected = true;
    node.last_seen = clock_.Now();
    node.description = {NodeName(name), "1", 7, "10.0.0." + name, {}, {}, {}, 9};
    node.description.devices.resize(1);
    e_.nodes[NodeName(name)] = 7;
  }
  void Begin() {
    e_.id = "doctor-1", e_.secret = "secret";
    e_.begun = e_.since = clock_.Now();
    Step();
  }
  void Step() { sent_ = Advance(clock_.Now(), state_, e_); }
  template <typename Command>
  const Command* SentTo(const std::string& node) {
    for (const auto& [to, command] : sent_) {
      if (to == NodeName(node) && std::holds_alternative<Command>(command)) return &std::get<Command>(command);
    }
    return nullptr;
  }
  // Everybody answers what was sent, well; but those named.
  void Answer(const std::set<std::string>& silent = {}) {
    for (const auto& [node, command] : Messages(sent_)) {
      if (silent.contains(node.value())) continue;
      if (const auto* reach = std::get_if<ReachCheckCommand>(&command)) {
        ReachReport report{reach->check_id, {}};
        for (const ReachTarget& to : reach->targets) report.answers.push_back({to.node, "", 0.001, reach->burst ? 1e8 : 0});
        EXPECT_TRUE(FileReach(node, report, e_));
      } else if (const auto* storage = std::get_if<StorageCheckCommand>(&command); storage != nullptr && !storage->over) {
        EXPECT_TRUE(FileStorage(node, {storage->job, storage->epoch, "", 100, "digest", true, storage->check_id}, e_));
      }
    }
    Step();
  }
  void AnswerAll() {
    for (int i = 0; i < 1000 && e_.stage != ExaminationStage::kDone; ++i) Answer();
    EXPECT_EQ(e_.stage, ExaminationStage::kDone);
  }
  std::vector<Finding> Found(FindingState state) {
    std::vector<Finding> found;
    for (Finding& finding : Judge(clock_.Now(), state_, e_)) {
      if (finding.state == state) found.push_back(std::move(finding));
    }
    return found;
  }
  std::string Text(FindingState state) {
    std::string text;
    for (const Finding& finding : Found(state)) text += finding.what + ": " + finding.text + "\n";
    return text;
  }

  FakeClock clock_;
  ClusterState state_;
  Examination e_;
  Messages sent_;
};

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

TEST_F(ExaminationTest, BytesThatMayLeaveByAnotherCardAreAWarning) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  Begin();
  const std::string check_id = SentTo<ReachCheckCommand>("a")->check_id;
  const std::string why = "by that one it was not reached";
  EXPECT_TRUE(FileReach(NodeName("a"),
                        {check_id, {{NodeName("b"), "", 0.001, 0, why}, {NodeName("c"), "", 0.001, 0, "cannot be held"}}}, e_));
  EXPECT_TRUE(FileReach(NodeName("b"), {check_id, {{NodeName("a"), "", 0.001}, {NodeName("c"), "", 0.001}}}, e_));
  EXPECT_TRUE(FileReach(NodeName("c"), {check_id, {{NodeName("a"), "", 0.001}, {NodeName("b"), "", 0.001}}}, e_));
  Step();
  AnswerAll();
  EXPECT_EQ(Text(FindingState::kWrong), "");
  const std::string text = Text(FindingState::kWarning);
  EXPECT_THAT(text,
              HasSubstr("card of a: what it sends to b, c may leave by another card than that of its data address 10.0.0.a: " +
                        why + "; give each card a subnet of its own"));
  EXPECT_EQ(text.find("card of b"), std::string::npos) << text;
}

TEST_F(ExaminationTest, AHostThatIsTooSlowForItsEmulation) {
  AddNode("a");
  Begin();
  JobRecord job;
  job.id = JobId("j");
  job.epoch = Epoch(2);
  job.last_step.epoch = Epoch(2);
  job.last_step.step_seconds = 36;
  job.last_step.lateness_seconds = 31.3;
  state_.jobs[job.id] = job;
  EXPECT_THAT(Text(FindingState::kWarning), ::testing::Not(HasSubstr("emulation"))) << "no job runs";
  state_.run.emplace().job = job.id;
  EXPECT_THAT(Text(FindingState::kWarning), HasSubstr("host: in job j it is too slow for the emulation: "));
  state_.jobs[job.id].epoch = Epoch(3);
  EXPECT_THAT(Text(FindingState::kWarning), ::testing::Not(HasSubstr("emulation"))) << "another plan made that step";
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
  EXPECT_FALSE(FileStorage(NodeName("a"), {JobId("doctor-1-0"), Epoch(0), "x", 0, "", false, "doctor-1-reach"}, e_));
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
      NodeName("a"), {JobId(), Epoch(0), "cannot write to the checkpoint folder '/folder'", 0, "", false, "doctor-1-write"}, e_));
  Answer({"a"});
  ASSERT_EQ(e_.stage, ExaminationStage::kReading);
  EXPECT_EQ(e_.writer, NodeName("b"));
  EXPECT_TRUE(FileStorage(NodeName("a"), {JobId(), Epoch(0), "", 100, "d", true, "doctor-1-read"}, e_));
  EXPECT_TRUE(FileStorage(NodeName("b"), {JobId(), Epoch(0), "", 100, "d", true, "doctor-1-read"}, e_));
  EXPECT_TRUE(FileStorage(NodeName("c"), {JobId(), Epoch(0), "", 120, "e", false, "doctor-1-read"}, e_));
  Step();
  const std::string wrong = Text(FindingState::kWrong);
  EXPECT_THAT(wrong, HasSubstr("folder: node a: cannot write to the checkpoint folder"));
  EXPECT_THAT(wrong, HasSubstr("folder: /folder is not one folder: what node b wrote is not seen by c"));
  EXPECT_THAT(wrong, HasSubstr("data: node c has other data (120 bytes, digest e) than node a (100 bytes, digest d)"));
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

TEST_F(ExaminationTest, NodesThatAreNotReadyAndWorkersThatWereRefused) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  state_.nodes.at(NodeName("a")).drained = true;
  state_.nodes.at(NodeName("b")).held = true;
  state_.nodes.at(NodeName("b")).reason = "it comes and goes";
  state_.refused_workers["d"] = {"worker d has version '0'", clock_.Now()};
  state_.refused_workers["e"] = {"long ago", clock_.Now() - absl::Hours(1)};
  Begin();
  AnswerAll();
  EXPECT_THAT(Text(FindingState::kWarning), HasSubstr("`motley nodes undrain a`"));
  EXPECT_THAT(Text(FindingState::kWarning), HasSubstr("it comes and goes"));
  EXPECT_THAT(Text(FindingState::kWrong), HasSubstr("worker d: refused 0 s ago: worker d has version '0'"));
  EXPECT_EQ(Found(FindingState::kWrong).size(), 1u);
}

TEST_F(ExaminationTest, ANodeThatOffersNoneOfItsCardsIsANote) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  state_.nodes.at(NodeName("a")).description.unused_cards = {{"NVIDIA cards", "the library cannot be opened"}, {"x", "y"}};
  state_.nodes.at(NodeName("b")).description.unused_cards = {{"NVIDIA T4", "is full"}};
  state_.nodes.at(NodeName("b")).description.devices[0].kind = DeviceKind::kCuda;
  Begin();
  AnswerAll();
  ASSERT_EQ(Found(FindingState::kWarning).size(), 1u);
  EXPECT_EQ(Text(FindingState::kWarning),
            "cards of a: it offers none of them: NVIDIA cards: the library cannot be opened; and 1 more card\n");
}

TEST_F(ExaminationTest, ANodeWhoseKernelDoesNotHoldItsRanksIsANote) {
  for (const char* name : {"a", "b", "c"}) AddNode(name);
  state_.nodes.at(NodeName("b")).description.files_not_held = "the kernel has no Landlock";
  Begin();
  AnswerAll();
  EXPECT_EQ(
      Text(FindingState::kWarning),
      "files of b: the kernel does not hold ranks to [files] roots: the kernel has no Landlock; let nobody but the worker's "
      "user write there\n");
}

TEST_F(ExaminationTest, WorkersOfDifferentUsersAreANote) {
  for (const char* name : {"a", "b", "c"}) {
    AddNode(name);
    state_.nodes.at(NodeName(name)).description.user = "872:871";
  }
  Begin();
  AnswerAll();
  EXPECT_EQ(Text(FindingState::kWarning), "");
  state_.nodes.at(NodeName("c")).description.user = "990:871";
  Begin();
  AnswerAll();
  EXPECT_EQ(
      Text(FindingState::kWarning),
      "users: workers run under different numbers of user and group: 872:871 on a and 1 more node; 990:871 on c. In a shared "
      "folder one may not replace what another wrote; give motley-worker the same numbers on all machines "
      "(docs/use/two-machines.md)\n");
}

// Whether it is ready for the loss of the coordinator's machine, where somebody has begun to make it so.
TEST_F(ExaminationTest, WhatStandsInTheWayOfATakeOverIsSaid) {
  for (const char* name : {"a", "b"}) {
    AddNode(name);
    state_.members[NodeName(name)].coordinators = {"10.0.0.1:7073"};
  }
  Begin();
  AnswerAll();
  EXPECT_EQ(Text(FindingState::kWarning), "") << "nobody asked for it";
  state_.members[NodeName("b")].coordinators.push_back("10.0.0.2:7073");
  state_.backup_problem = "cannot look at /mnt/elsewhere";
  state_.rival = "another coordinator of the same number runs at 10.0.0.2:7073";
  Begin();
  AnswerAll();
  EXPECT_EQ(Text(FindingState::kWarning),
            "node a: its worker.coordinator names 10.0.0.1:7073 alone, others name several: it stays away when another machine "
            "takes over\n");
  EXPECT_EQ(Text(FindingState::kWrong),
            "coordinators: another coordinator of the same number runs at 10.0.0.2:7073\nbackups: the store is not backed up: "
            "cannot look at /mnt/elsewhere\n");
}

TEST_F(ExaminationTest, AClockThatIsOffIsANote) {
  for (const char* name : {"a", "b"}) AddNode(name);
  state_.nodes.at(NodeName("a")).clock.Add(1'000'000, 1'000'020);
  state_.nodes.at(NodeName("b")).clock.Add(1'003'000, 1'000'000);
  Begin();
  AnswerAll();
  EXPECT_THAT(Text(FindingState::kWarning), HasSubstr("clock of b: 3.0 s ahead of the coordinator's (+- 0.00 s)"));
  EXPECT_THAT(Text(FindingState::kOk), HasSubstr("clocks: of 1 node: within 0.03 s"));
  EXPECT_EQ(Text(FindingState::kWrong), "");
}

}  // namespace
}  // namespace motley::coordinator
