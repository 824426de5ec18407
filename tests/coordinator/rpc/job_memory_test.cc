// GetJob with the memory of a job's ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class JobMemory : public ClusterTest {
 protected:
  grpc::Status Ask(const std::string& id, v1::GetJobResponse* response, bool memory = true) {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_job_id(id);
    request.set_memory(memory);
    return stub_->GetJob(&context, request, response);
  }
  // By "tier purpose".
  static std::map<std::string, v1::MemoryUse> Uses(const v1::RankMemory& rank) {
    std::map<std::string, v1::MemoryUse> uses;
    for (const v1::MemoryUse& use : rank.uses()) uses[use.tier() + " " + use.purpose()] = use;
    return uses;
  }
  std::map<std::string, v1::MemoryUse> UsesAfterAStep(FakeWorker::Options options) {
    const auto worker = Join("n1", std::move(options));
    EXPECT_TRUE(Submit("a", MakeConfig(10)).ok());
    worker->WaitForStart();
    worker->SendAll(v1::RankEvent::KIND_READY);
    WaitForState("a", v1::JOB_STATE_RUNNING);
    worker->Step(1);
    Watch("a", [](const v1::JobUpdate& update) { return update.has_step(); });
    v1::GetJobResponse response;
    EXPECT_TRUE(Ask("a", &response).ok());
    return Uses(response.memory(0));
  }
};

TEST_F(JobMemory, OfUnknownJobsAndOfThoseWithoutAPlanIsNotFound) {
  v1::GetJobResponse response;
  EXPECT_EQ(Ask("x", &response).error_code(), grpc::StatusCode::NOT_FOUND);
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const grpc::Status none = Ask("a", &response);
  EXPECT_EQ(none.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(none.error_message(), testing::HasSubstr("job 'a' has no plan yet"));
  EXPECT_TRUE(Ask("a", &response, false).ok()) << "nobody asked for it";
}

TEST_F(JobMemory, IsPlannedThenMeasuredAndStaysWhenTheJobHasEnded) {
  const auto worker = Join("n1");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const auto ranks = worker->WaitForStart();
  ASSERT_EQ(ranks.size(), 1u);
  v1::GetJobResponse before;
  ASSERT_TRUE(Ask("a", &before).ok());
  ASSERT_EQ(before.memory_size(), 1);
  EXPECT_EQ(before.memory(0).device(), ranks[0].device_ids(0));
  auto uses = Uses(before.memory(0));
  EXPECT_GT(uses.at("device parameters").planned_bytes(), 0);
  EXPECT_EQ(uses.at("device held").planned_bytes() + uses.at("device passes").planned_bytes(),
            uses.at("device tensors").planned_bytes());
  EXPECT_FALSE(uses.at("device tensors").has_measured_bytes()) << "no step was made";
  EXPECT_FALSE(uses.at("host waiting").has_measured_bytes());

  worker->SendAll(v1::RankEvent::KIND_READY);
  WaitForState("a", v1::JOB_STATE_RUNNING);
  worker->Step(1);
  Watch("a", [](const v1::JobUpdate& update) { return update.has_step(); });
  const auto check = [&](const std::string& when) {
    v1::GetJobResponse after;
    ASSERT_TRUE(Ask("a", &after).ok()) << when;
    ASSERT_EQ(after.memory_size(), 1) << when;
    uses = Uses(after.memory(0));
    EXPECT_EQ(uses.at("device tensors").measured_bytes(), int64_t{1} << 29) << when;
    EXPECT_EQ(uses.at("device held").measured_bytes(), int64_t{1} << 28) << when;
    EXPECT_EQ(uses.at("device passes").measured_bytes(), int64_t{1} << 28) << when;
    EXPECT_EQ(uses.at("host waiting").measured_bytes(), 1000) << when;
    EXPECT_EQ(uses.at("device parameters").measured_bytes(), 7000) << when;
    EXPECT_EQ(uses.at("device workspace").measured_bytes(), 8000) << when;
    EXPECT_EQ(uses.at("host optimizer").measured_bytes(), 1000) << when;
    EXPECT_TRUE(uses.at("host inputs").has_planned_bytes()) << when;
    EXPECT_TRUE(uses.at("device gradients").has_measured_bytes()) << "none, and it says so " << when;
    EXPECT_TRUE(uses.at("device workspace").has_planned_bytes()) << when;
  };
  check("running");
  EXPECT_TRUE(StopJob("a").ok());
  EXPECT_TRUE(worker->WaitForStop(ranks[0].epoch()));
  worker->SendAll(v1::RankEvent::KIND_FINISHED);
  WaitForState("a", v1::JOB_STATE_STOPPED);
  check("ended");
}

TEST_F(JobMemory, OfACardWhatPassesMakeIsNotToldApart) {
  auto uses = UsesAfterAStep({.measures_passes = false});
  for (const char* of_passes : {"device boundaries", "device saved", "device workspace", "device context"}) {
    EXPECT_FALSE(uses.at(of_passes).has_measured_bytes()) << of_passes;
  }
  EXPECT_EQ(uses.at("device parameters").measured_bytes(), 7000);
  EXPECT_TRUE(uses.at("device slots").has_measured_bytes());
  EXPECT_TRUE(uses.at("device passes").has_measured_bytes());
}

TEST_F(JobMemory, AnOlderWorkerMeasuresNoPurpose) {
  auto uses = UsesAfterAStep({.measures_purposes = false});
  for (const char* purpose : {"device parameters", "device slots", "device workspace", "device context", "host inputs"}) {
    EXPECT_FALSE(uses.at(purpose).has_measured_bytes()) << purpose;
  }
  EXPECT_TRUE(uses.at("device held").has_measured_bytes());
}

}  // namespace
}  // namespace motley::coordinator
