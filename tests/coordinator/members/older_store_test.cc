#include "coordinator/members/older_store.h"

#include <algorithm>

#include "common/base/version.h"
#include "coordinator/members/registry.h"
#include "coordinator/members/reports.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

class OlderStore : public CoreTest {
 protected:
  absl::Status Hello(std::vector<std::pair<JobId, Epoch>> epochs, StoreMark mark = {}) {
    NodeDescription node;
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
  ASSERT_TRUE(Hello({{JobId("a"), Epoch(9)}, {JobId("a"), Epoch(8)}}).ok());
  EXPECT_EQ(core_->state.jobs.at(JobId("a")).epoch, Epoch(9));
  EXPECT_EQ(store_->LoadJobs()->at(0).epoch, Epoch(9));
  ASSERT_EQ(Stops().size(), 1u);
  EXPECT_EQ(Stops()[0].epoch, Epoch(9));
  EXPECT_EQ(store_->EventsAfter(JobId("a"), 0, 10)->at(0).kind, kind::kEpochRaised);
}

TEST_F(OlderStore, WhatIsNotAboveOursChangesNothing) {
  JobRecord& job = core_->state.jobs[JobId("a")];
  job.id = JobId("a");
  job.epoch = Epoch(9);
  ASSERT_TRUE(Hello({{JobId("a"), Epoch(9)}}).ok());
  EXPECT_TRUE(Stops().empty());
  EXPECT_TRUE(store_->EventsAfter(JobId("a"), 0, 10)->empty());
}

TEST_F(OlderStore, AnUnknownJobIsToldToEndAndItsNumbersAreNotUsedAgain) {
  ASSERT_TRUE(Hello({{JobId("gone"), Epoch(4)}}).ok());
  ASSERT_EQ(Stops().size(), 1u);
  EXPECT_EQ(Stops()[0].job, JobId("gone"));
  EXPECT_EQ(Stops()[0].epoch, Epoch(4));
  EXPECT_EQ(core_->state.foreign_epochs.at(JobId("gone")), Epoch(4));
}

TEST_F(OlderStore, AnEpochThatPlansBeginsAgainAndOneThatSavesIsKilled) {
  AddNode("n1");
  JobRun& run = AddRun("a");
  run.stage = Stage::kPlanning;
  ASSERT_TRUE(Hello({{JobId("a"), Epoch(5)}}).ok());
  EXPECT_EQ(run.stage, Stage::kIdle);
  run.stage = Stage::kStopping;
  run.saving = true;
  run.ranks.push_back({DeviceId("n1/gpu0"), 1, 0});
  ASSERT_TRUE(Hello({{JobId("a"), Epoch(6)}}).ok());
  EXPECT_FALSE(run.saving) << "what it saves could not be published";
}

TEST_F(OlderStore, ANumberThatNoCoordinatorGivesIsRefused) {
  const absl::Status status = Hello({{JobId("a"), Epoch(int64_t{1} << 62)}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(Hello({{JobId("a"), Epoch(-1)}}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(core_->state.nodes.empty());
}

TEST_F(OlderStore, AMarkAboveOursRaisesEveryUnfinishedJobByWhatIsLost) {
  for (const char* id : {"a", "done"}) {
    JobRecord& job = core_->state.jobs[JobId(id)];
    job.id = JobId(id);
    job.epoch = Epoch(3);
  }
  core_->state.jobs.at(JobId("done")).phase = JobPhase::kSucceeded;
  const StoreMark ours = store_->mark();
  ASSERT_TRUE(Hello({}, {ours.store_id, ours.commits + 5}).ok());
  EXPECT_EQ(core_->state.jobs.at(JobId("a")).epoch, Epoch(8));
  EXPECT_EQ(core_->state.jobs.at(JobId("done")).epoch, Epoch(3));
  EXPECT_GT(store_->mark().commits, ours.commits + 5) << "what comes now is above what was told";
  EXPECT_EQ(store_->EventsAfter(JobId(), 0, 10)->at(0).kind, kind::kStoreOlder);
  ASSERT_TRUE(Hello({}, {ours.store_id, ours.commits + 5}).ok());
  EXPECT_EQ(core_->state.jobs.at(JobId("a")).epoch, Epoch(8)) << "once";
}

TEST_F(OlderStore, AnotherStoreIsSaidOnceAndRaisesNothing) {
  JobRecord& job = core_->state.jobs[JobId("a")];
  job.id = JobId("a");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Hello({}, {"another", 1000}).ok());
  EXPECT_EQ(core_->state.jobs.at(JobId("a")).epoch, Epoch(0));
  const auto events = store_->EventsAfter(JobId(), 0, 100);
  EXPECT_EQ(std::count_if(events->begin(), events->end(), [](const EventRecord& e) { return e.kind == kind::kStoreOlder; }), 1);
  EXPECT_EQ(Hello({}, {store_->mark().store_id, int64_t{1} << 60}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(OlderStore, HeartbeatsTellTheMark) {
  Link& link = AddNode("n1");
  HandleReport(*core_, NodeName("n1"), HeartbeatReport{});
  ASSERT_EQ(link.sent.size(), 1u);
  EXPECT_EQ(std::get<HeartbeatAnswer>(link.sent[0]).store_mark, store_->mark());
}

}  // namespace
}  // namespace motley::coordinator
