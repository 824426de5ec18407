// Nodes that join a running job: a bad one never stops it, a good one is taken in.
#include <limits>

#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class Newcomers : public ClusterTest {
 protected:
  Newcomers() {
    config_.driver.probe.storage_timeout = absl::Milliseconds(600);
    config_.driver.probe.reach_timeout = absl::Milliseconds(600);
    config_.driver.probe.profile_timeout = absl::Milliseconds(600);
    config_.driver.meet_timeout = absl::Milliseconds(800);
    config_.driver.collectives_timeout = absl::Milliseconds(500);
    config_.driver.probe.plan_timeout = absl::Seconds(20);
    Start();
  }
  FakeWorker::Options Saving() {
    FakeWorker::Options options;
    options.on_save = Save;
    return options;
  }
  // Two nodes that train; returns the epoch.
  int64_t Train(const std::string& strategy = "auto") {
    n1_ = Join("n1", Saving()), n2_ = Join("n2", Saving());
    JobConfig config = MakeConfig(100);
    config.planner.strategy = strategy;
    EXPECT_TRUE(Submit("a", config).ok());
    const auto ranks = n1_->WaitForStart();
    EXPECT_FALSE(ranks.empty() || n2_->WaitForStart().empty());
    if (ranks.empty()) return 0;
    n1_->SendAll(v1::RankEvent::KIND_READY), n2_->SendAll(v1::RankEvent::KIND_READY);
    StepBoth(1), StepBoth(2);
    Watch("a", [](const v1::JobUpdate& update) { return update.has_step() && update.step().step() >= 2; });
    return ranks[0].epoch();
  }
  void StepBoth(int64_t step) { n1_->Step(step), n2_->Step(step); }
  // The newcomer is refused with these words; the job's epoch goes on and its ranks were never told to stop.
  void ExpectRefused(FakeWorker::Options options, const std::string& words, const std::string& strategy = "auto") {
    const int64_t epoch = Train(strategy);
    auto n3 = Join("n3", std::move(options));
    const std::string said = WaitForEvent("a", "device_left_out");
    EXPECT_NE(said.find("goes on without node n3"), std::string::npos) << said;
    EXPECT_NE(said.find(words), std::string::npos) << said;
    StepBoth(3);
    Watch("a", [](const v1::JobUpdate& update) { return update.has_step() && update.step().step() >= 3; });
    EXPECT_EQ(GetJob("a").epoch(), epoch);
    EXPECT_EQ(GetJob("a").state(), v1::JOB_STATE_RUNNING);
    EXPECT_FALSE(n1_->HasStopped(epoch) || n2_->HasStopped(epoch));
    EXPECT_EQ(NodeOf("n3").state(), "refused");
    EXPECT_NE(NodeOf("n3").reason().find(words), std::string::npos) << NodeOf("n3").reason();
  }
  std::unique_ptr<FakeWorker> n1_, n2_;
};

TEST_F(Newcomers, AFailingProfile) {
  FakeWorker::Options options;
  options.profile_error = "the card fell off the bus";
  ExpectRefused(options, "the card fell off the bus");
}

TEST_F(Newcomers, AnEmptyProfile) {
  FakeWorker::Options options;
  options.empty_profile = true;
  ExpectRefused(options, "reported nothing for n3/gpu0");
}

TEST_F(Newcomers, AProfileThatNeverComes) {
  FakeWorker::Options options;
  options.answer_profiles = false;
  ExpectRefused(options, "its profile was not finished");
}

TEST_F(Newcomers, ASilentStorageCheck) {
  FakeWorker::Options options;
  options.answer_storage = false;
  ExpectRefused(options, "its storage check was not answered");
}

TEST_F(Newcomers, AnotherCheckpointFolder) {
  FakeWorker::Options options;
  options.sees_token = false;
  ExpectRefused(options, "is not the same folder as on node n1");
}

TEST_F(Newcomers, OtherData) {
  FakeWorker::Options options;
  options.data_digest = "tsegid";  // as long as the right one
  ExpectRefused(options, "holds other data");
}

TEST_F(Newcomers, AFirewallBetween) {
  FakeWorker::Options options;
  options.unreachable = "n2";
  ExpectRefused(options, "node n3 does not reach node n2");
}

TEST_F(Newcomers, ASilentReachCheck) {
  FakeWorker::Options options;
  options.answer_reach = false;
  ExpectRefused(options, "was not said by n3");
}

TEST_F(Newcomers, MoreDevicesThanAJobTakes) {
  FakeWorker::Options options;
  options.devices = 1000;
  ExpectRefused(options, "the job would have 1002 devices; at most 512");
}

TEST_F(Newcomers, TimesThatNoPlanCanBeMadeOf) {
  FakeWorker::Options options;
  options.on_profile = [](v1::ProfileResult& result) {
    for (v1::ComputePoint& point : *result.mutable_compute(0)->mutable_layer()->mutable_points())
      point.set_forward_seconds(1e-12);
  };
  ExpectRefused(options, "has times that cannot be");
}

TEST_F(Newcomers, OneWithWhichThereIsNoPlan) {
  FakeWorker::Options options;
  options.on_profile = [](v1::ProfileResult& result) { result.mutable_compute(0)->set_context_bytes(int64_t{1} << 30); };
  ExpectRefused(options, "equal batches and shards do not fit: n3/gpu0", "even");
}

TEST_F(Newcomers, WhatNoDeviceHasIsRefusedAtTheDoor) {
  const int64_t epoch = Train();
  const std::pair<std::string, std::function<void(v1::DeviceDescription&)>> declarations[] = {
      {"memory_bytes is 100", [](auto& device) { device.set_memory_bytes(100); }},
      {"memory_bytes is 1.1259", [](auto& device) { device.set_memory_bytes(int64_t{1} << 50); }},
      {"memory_bytes is 9.22337e+18", [](auto& device) { device.set_memory_bytes(std::numeric_limits<int64_t>::max()); }},
      {"memory_bytes is 0", [](auto& device) { device.set_memory_bytes(0); }},
      {"flops_per_second is 1", [](auto& device) { device.set_flops_per_second(1); }},
      {"launch_seconds is inf", [](auto& device) { device.set_launch_seconds(1e300); }},
      {"link_bytes_per_second is 0.5", [](auto& device) { device.set_link_bytes_per_second(0.5); }},
      {"node_link_bytes_per_second is 1e+300", [](auto& device) { device.set_node_link_bytes_per_second(1e300); }},
      {"link_latency_seconds is inf", [](auto& device) { device.set_link_latency_seconds(1e300); }}};
  for (const auto& [words, declare] : declarations) {
    FakeWorker::Options options;
    options.on_hello = [&declare](v1::Hello& hello) { declare(*hello.mutable_devices(0)); };
    FakeWorker n3(server_->workers_address(), "n3", options);
    const grpc::Status status = n3.WaitForEnd();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << words;
    EXPECT_NE(status.error_message().find("device 'n3/gpu0': " + words), std::string::npos) << status.error_message();
  }
  StepBoth(3);
  Watch("a", [](const v1::JobUpdate& update) { return update.has_step() && update.step().step() >= 3; });
  EXPECT_EQ(GetJob("a").epoch(), epoch);
  EXPECT_FALSE(n1_->HasStopped(epoch) || n2_->HasStopped(epoch));
}

TEST_F(Newcomers, AGoodOneIsTakenInAfterItsChecks) {
  const int64_t epoch = Train();
  auto n3 = Join("n3", Saving());
  EXPECT_NE(WaitForEvent("a", "probe_passed").find("node n3"), std::string::npos);
  const auto ranks = n3->WaitForStart();
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].device_ids_size(), 3);
  EXPECT_GT(ranks[0].epoch(), epoch);
  EXPECT_EQ(ranks[0].start_step(), 2) << "the others saved first";
  EXPECT_EQ(NodeOf("n3").state(), "ready");
}

TEST_F(Newcomers, OneThatFailsOnlyInTheSwapIsLeftOutOfTheNextEpoch) {
  Train();
  FakeWorker::Options options = Saving();
  options.answer_collectives = false;  // it passes alone, and is silent when the collectives are measured
  auto n3 = Join("n3", options);
  WaitForEvent("a", "probe_passed");
  const std::string said = WaitForEvent("a", "device_left_out");
  EXPECT_NE(said.find("goes on without node n3: the generation that it joined ended before its first step"), std::string::npos)
      << said;
  const auto ranks = n1_->WaitForStart(GetJob("a").epoch() - 1);
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].device_ids_size(), 2);
  EXPECT_EQ(ranks[0].start_step(), 2);
}

TEST_F(Newcomers, WhatTakesLongToMeasureIsPredicted) {
  const int64_t epoch = Train();
  FakeWorker::Options options = Saving();
  options.measures = false;
  auto n3 = Join("n3", options);
  const auto ranks = n3->WaitForStart();
  ASSERT_FALSE(ranks.empty()) << GetJob("a").reason();
  EXPECT_EQ(ranks[0].device_ids_size(), 3);
  EXPECT_EQ(ranks[0].start_step(), 2);
  EXPECT_EQ(ranks[0].epoch(), epoch + 2) << "one for those that measured";
  const auto predicted = [](const v1::JobUpdate& update) {
    return update.has_event() && update.event().message().find("with predicted ones") != std::string::npos;
  };
  Watch("a", predicted);
  ASSERT_FALSE(updates_.empty());
  EXPECT_TRUE(predicted(updates_.back()));
  EXPECT_EQ(updates_.back().event().kind(), "profile");
}

TEST_F(Newcomers, OneThatIsSilentWhenTheRanksStartIsLeftOutOfTheNextEpoch) {
  Train();
  FakeWorker::Options options = Saving();
  options.measures = false;
  options.on_start = [](const v1::RankAssignment&) { return false; };
  auto n3 = Join("n3", options);
  const std::string said = WaitForEvent("a", "device_left_out");
  EXPECT_NE(said.find("goes on without node n3"), std::string::npos) << said;
  EXPECT_NE(said.find("did not come to the meeting of the ranks"), std::string::npos) << said;
  const auto silent = n3->WaitForStart();
  ASSERT_FALSE(silent.empty());
  const auto ranks = n1_->WaitForStart(silent[0].epoch());  // the one behind: the job may still be at that which n3 ended
  ASSERT_FALSE(ranks.empty());
  EXPECT_EQ(ranks[0].device_ids_size(), 2);
  EXPECT_EQ(ranks[0].start_step(), 2);
}

TEST_F(Newcomers, ARankThatFailsBeforeItsFirstStepEndsItsOwnPartAlone) {
  Train();
  auto n3 = Join("n3", Saving());
  const auto joined = n3->WaitForStart();
  ASSERT_FALSE(joined.empty());
  n1_->SendAll(v1::RankEvent::KIND_READY), n2_->SendAll(v1::RankEvent::KIND_READY);
  n3->SendAll(v1::RankEvent::KIND_FAILED, "out of memory");
  const auto ranks = n1_->WaitForStart(joined[0].epoch());
  ASSERT_FALSE(ranks.empty()) << GetJob("a").reason();
  EXPECT_EQ(ranks[0].device_ids_size(), 2);
  EXPECT_NE(WaitForEvent("a", "device_left_out").find("out of memory"), std::string::npos);
}

TEST_F(Newcomers, AfterARestartOfTheCoordinatorTheGoodNodesKeepTheirFolder) {
  Train();
  StepBoth(3);
  n1_->Drop(), n2_->Drop();
  n1_.reset(), n2_.reset();
  const int64_t epoch = GetJob("a").epoch();
  const std::string address = server_->address();
  config_.listen = address;
  Start();
  FakeWorker::Options wrong;  // first in order of names; its folder is another one
  wrong.sees_token = false;
  auto n0 = Join("n0", wrong);
  n1_ = Join("n1", Saving()), n2_ = Join("n2", Saving());
  const auto ranks = n1_->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty()) << GetJob("a").reason();
  EXPECT_EQ(ranks[0].device_ids_size(), 2);
  EXPECT_EQ(ranks[0].device_ids(0), "n1/gpu0");
  EXPECT_NE(WaitForEvent("a", "device_left_out").find("without node n0"), std::string::npos);
}

}  // namespace
}  // namespace motley::coordinator
