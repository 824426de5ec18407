#include "coordinator/members/older_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "coordinator/members/registry.h"
#include "coordinator/members/reports.h"
#include "coordinator/state/sender.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

class OlderStore : public CoreTest {
 protected:
  SeenEpoch Given(const std::string& job, int64_t epoch) const {
    return {JobId(job), Epoch(epoch), core_->numbers.TokenOf(JobId(job), Epoch(epoch)), core_->numbers.id()};
  }
  StoreMark Told(int64_t commits) const { return core_->numbers.WithToken({store_->mark().store_id, commits}); }
  int Foreign(const char* kind) {
    const std::string wanted = absl::StrCat("motley_foreign_reports_total{kind=\"", kind, "\"} ");
    const std::string text = registry_.ToText();
    const size_t at = text.find(wanted);
    return at == std::string::npos ? -1 : std::stoi(text.substr(at + wanted.size()));
  }
  absl::Status Hello(std::vector<SeenEpoch> epochs, StoreMark mark = {}) {
    NodeDescription node;
    node.protocol = kSessionProtocol;
    node.name = NodeName("n9");
    node.version = kVersion;
    node.incarnation = 7;
    node.data_address = "127.0.0.1";
    node.devices.resize(1);
    node.devices[0].id = DeviceId("n9/gpu0");
    node.newest_epochs = std::move(epochs);
    node.store_mark = std::move(mark);
    link_ = std::make_shared<Link>();
    return Admit(*core_, node, link_);
  }
  std::vector<StopCommand> Stops() {
    std::vector<StopCommand> stops;
    for (const CoordinatorCommand& command : link_->sent) {
      if (const auto* stop = std::get_if<StopCommand>(&command)) stops.push_back(*stop);
    }
    return stops;
  }
  std::shared_ptr<Link> link_;
};

TEST_F(OlderStore, ANumberThatAWorkerHasSeenIsTakenDurably) {
  JobRecord& job = core_->state.jobs[JobId("a")];
  job.id = JobId("a");
  job.epoch = Epoch(3);
  ASSERT_TRUE(Hello({Given("a", 9), Given("a", 8)}).ok());
  EXPECT_EQ(core_->state.jobs.at(JobId("a")).epoch, Epoch(9));
  EXPECT_EQ(store_->LoadJobs()->at(0).epoch, Epoch(9));
  ASSERT_EQ(Stops().size(), 1u);
  EXPECT_EQ(Stops()[0].epoch, Epoch(9));
  EXPECT_EQ(Stops()[0].token, Given("a", 9).token);
  EXPECT_EQ(store_->EventsAfter(JobId("a"), 0, 10)->at(0).kind, kind::kEpochRaised);
}

TEST_F(OlderStore, WhatIsNotAboveOursChangesNothing) {
  JobRecord& job = core_->state.jobs[JobId("a")];
  job.id = JobId("a");
  job.epoch = Epoch(9);
  ASSERT_TRUE(Hello({Given("a", 9)}).ok());
  EXPECT_TRUE(Stops().empty());
  EXPECT_TRUE(store_->EventsAfter(JobId("a"), 0, 10)->empty());
}

TEST_F(OlderStore, AnUnknownJobIsToldToEndAndItsNumbersAreNotUsedAgain) {
  ASSERT_TRUE(Hello({Given("gone", 4)}).ok());
  ASSERT_EQ(Stops().size(), 1u);
  EXPECT_EQ(Stops()[0].job, JobId("gone"));
  EXPECT_EQ(Stops()[0].epoch, Epoch(4));
  EXPECT_EQ(core_->state.foreign_epochs.at(JobId("gone")), Epoch(4));
}

TEST_F(OlderStore, AnEpochThatPlansBeginsAgainAndOneThatSavesIsKilled) {
  AddNode("n1");
  JobRun& run = AddRun("a");
  run.stage = Stage::kPlanning;
  ASSERT_TRUE(Hello({Given("a", 5)}).ok());
  EXPECT_EQ(run.stage, Stage::kIdle);
  run.stage = Stage::kStopping;
  run.saving = true;
  run.ranks.push_back({DeviceId("n1/gpu0"), 1, 0});
  ASSERT_TRUE(Hello({Given("a", 6)}).ok());
  EXPECT_FALSE(run.saving) << "what it saves could not be published";
}

TEST_F(OlderStore, ANumberThatWasNotGivenDoesNothingAndKeepsNobodyOut) {
  AddNode("n1");
  JobRun& run = AddRun("a");
  run.stage = Stage::kPlanning;
  core_->state.jobs.at(JobId("a")).epoch = Epoch(3);
  SeenEpoch older = Given("a", 3), other = Given("b", 9), elsewhere = Given("a", 9);
  older.epoch = Epoch(4);
  other.job = JobId("a");
  elsewhere.key_id = "another";
  const std::vector<SeenEpoch> claims = {{JobId("a"), Epoch(8)},
                                         {JobId("a"), Epoch(9), "", core_->numbers.id()},
                                         {JobId("a"), Epoch(int64_t{1} << 62), std::string(16, 'x'), core_->numbers.id()},
                                         {JobId("a"), Epoch(-1)},
                                         {JobId("gone"), Epoch(-1)},
                                         {JobId("gone"), Epoch(4)},
                                         older,
                                         other,
                                         elsewhere};
  const StoreMark ours = store_->mark();
  ASSERT_TRUE(Hello(claims).ok());
  EXPECT_EQ(run.stage, Stage::kPlanning) << "the epoch goes on";
  for (const StoreMark& mark : {StoreMark{ours.store_id, ours.commits + 50}, StoreMark{ours.store_id, int64_t{1} << 60},
                                StoreMark{ours.store_id, -1}, StoreMark{std::string(1 << 16, 's'), 5}}) {
    ASSERT_TRUE(Hello(claims, mark).ok());
    EXPECT_TRUE(core_->state.nodes.contains(NodeName("n9")));
  }
  EXPECT_EQ(core_->state.jobs.at(JobId("a")).epoch, Epoch(3));
  EXPECT_TRUE(core_->state.foreign_epochs.empty());
  EXPECT_TRUE(core_->state.foreign_stores.empty());
  EXPECT_LT(store_->mark().commits, ours.commits + 50);
  EXPECT_EQ(Foreign(kHelloGeneration), 5 * 7) << "what another key gave is not forged";
  EXPECT_EQ(Foreign(kHelloMark), 2);
  for (const StopCommand& stop : Stops()) EXPECT_EQ(stop.epoch, Epoch(3)) << "of the run itself";
}

TEST_F(OlderStore, OnlyNumbersThatWereGivenGetAToken) {
  Link& link = AddNode("n1");
  core_->state.jobs[JobId("a")].epoch = Epoch(3);
  for (const int64_t epoch : {3, 2, 4}) core_->Send(NodeName("n1"), StopCommand{JobId("a"), Epoch(epoch), false, ""});
  core_->Send(NodeName("n1"), StopCommand{JobId("gone"), Epoch(1), false, ""});
  StartCommand start;
  start.ranks.resize(1);
  start.ranks[0].job = JobId("a");
  start.ranks[0].epoch = Epoch(3);
  core_->Send(NodeName("n1"), start);
  core_->Send(NodeName("n1"), ProfileCommand{JobId("a"), Epoch(3), {}, {}});
  ASSERT_EQ(link.sent.size(), 6u);
  EXPECT_EQ(std::get<StopCommand>(link.sent[0]).token, Given("a", 3).token);
  EXPECT_EQ(std::get<StopCommand>(link.sent[1]).token, Given("a", 2).token);
  EXPECT_EQ(std::get<StopCommand>(link.sent[2]).token, "");
  EXPECT_EQ(std::get<StopCommand>(link.sent[3]).token, "");
  EXPECT_EQ(std::get<StartCommand>(link.sent[4]).token, Given("a", 3).token);
  EXPECT_EQ(std::get<ProfileCommand>(link.sent[5]).token, Given("a", 3).token);
}

TEST_F(OlderStore, AMarkAboveOursRaisesEveryUnfinishedJobByWhatIsLost) {
  for (const char* id : {"a", "done"}) {
    JobRecord& job = core_->state.jobs[JobId(id)];
    job.id = JobId(id);
    job.epoch = Epoch(3);
  }
  core_->state.jobs.at(JobId("done")).phase = JobPhase::kSucceeded;
  const StoreMark ours = store_->mark();
  ASSERT_TRUE(Hello({}, Told(ours.commits + 5)).ok());
  EXPECT_EQ(core_->state.jobs.at(JobId("a")).epoch, Epoch(8));
  EXPECT_EQ(core_->state.jobs.at(JobId("done")).epoch, Epoch(3));
  EXPECT_GT(store_->mark().commits, ours.commits + 5) << "what comes now is above what was told";
  EXPECT_EQ(store_->EventsAfter(JobId(), 0, 10)->at(0).kind, kind::kStoreOlder);
  ASSERT_TRUE(Hello({}, Told(ours.commits + 5)).ok());
  EXPECT_EQ(core_->state.jobs.at(JobId("a")).epoch, Epoch(8)) << "once";
}

TEST_F(OlderStore, AnotherStoreIsSaidOnceAndRaisesNothing) {
  JobRecord& job = core_->state.jobs[JobId("a")];
  job.id = JobId("a");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Hello({}, {"another", 1000}).ok());
  EXPECT_EQ(core_->state.jobs.at(JobId("a")).epoch, Epoch(0));
  const auto events = store_->EventsAfter(JobId(), 0, 100);
  EXPECT_EQ(std::count_if(events->begin(), events->end(), [](const EventRecord& e) { return e.kind == kind::kStoreOlder; }), 1);
}

TEST_F(OlderStore, HeartbeatsTellTheMark) {
  Link& link = AddNode("n1");
  HandleReport(*core_, NodeName("n1"), HeartbeatReport{});
  ASSERT_EQ(link.sent.size(), 1u);
  EXPECT_EQ(std::get<HeartbeatAnswer>(link.sent[0]).store_mark, core_->Mark());
  EXPECT_TRUE(core_->numbers.Gave(core_->Mark()));
}

}  // namespace
}  // namespace motley::coordinator
