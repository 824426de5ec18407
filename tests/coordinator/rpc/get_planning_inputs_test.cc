#include "coordinator/rpc/get_planning_inputs.h"

#include <gmock/gmock.h>

#include "planner/cluster/cluster_file.h"
#include "planner/costs/latency_book.h"
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

class GetPlanningInputsTest : public ClusterTest {
 protected:
  grpc::Status Get(const std::string& id, v1::GetPlanningInputsResponse* response) {
    grpc::ClientContext context;
    v1::GetPlanningInputsRequest request;
    request.set_job_id(id);
    return stub_->GetPlanningInputs(&context, request, response);
  }
  static FakeWorker::Options Devices(int devices) {
    FakeWorker::Options options;
    options.devices = devices;
    return options;
  }
  void Finish(const std::string& id, FakeWorker& a, FakeWorker& b) {
    for (FakeWorker* worker : {&a, &b}) worker->Step(1);
    for (FakeWorker* worker : {&a, &b}) worker->SendAll(v1::RankEvent::KIND_FINISHED);
    WaitForState(id, v1::JOB_STATE_SUCCEEDED);
  }
};

TEST_F(GetPlanningInputsTest, TheClusterAsFiles) {
  auto n1 = Join("n1", Devices(2)), n2 = Join("n2");
  JobConfig config = MakeConfig(1);
  config.planner.memory_reserve = 0.2;
  ASSERT_TRUE(Submit("a", config).ok());
  ASSERT_FALSE(n1->WaitForStart().empty());
  ASSERT_FALSE(n2->WaitForStart().empty());
  v1::GetPlanningInputsResponse inputs;
  grpc::Status status = Get("a", &inputs);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(inputs.global_batch(), 8);
  EXPECT_EQ(inputs.seq_len(), 16);
  EXPECT_EQ(inputs.dtype(), "float32");
  EXPECT_EQ(inputs.warnings_size(), 0);
  EXPECT_EQ(inputs.steps_in_turn(), config.training.max_norm == 0);
  const auto cluster = planner::ParseCluster(inputs.cluster_toml(), "cluster.toml");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ASSERT_EQ(cluster->devices.size(), 3u);
  EXPECT_EQ(cluster->devices[1].id.value(), "n1/gpu1");
  ASSERT_EQ(cluster->kinds.size(), 1u);
  EXPECT_EQ(cluster->kinds[0].name, "test");
  EXPECT_EQ(cluster->kinds[0].fp32_flops, 1e9);
  EXPECT_EQ(cluster->usable_memory, 0.8);
  const auto book = planner::LatencyBook::Parse(inputs.profile_json(), "profiles.json");
  ASSERT_TRUE(book.ok()) << book.status();
  EXPECT_EQ(book->entries().size(), 1u);
  const auto model = ParseHfConfig(inputs.model_config_json(), "config.json");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(book->entries()[0].shape, *model);

  // After the job the cluster is still there, and so is what was measured.
  Finish("a", *n1, *n2);
  v1::GetPlanningInputsResponse after;
  ASSERT_TRUE(Get("a", &after).ok());
  EXPECT_EQ(after.SerializeAsString(), inputs.SerializeAsString());
}

TEST_F(GetPlanningInputsTest, DevicesThatWereNotMeasuredAreNamed) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(1)).ok());
  ASSERT_FALSE(n1->WaitForStart().empty());
  ASSERT_FALSE(n2->WaitForStart().empty());
  Finish("a", *n1, *n2);
  auto n3 = Join("n3", Devices(2));
  v1::GetPlanningInputsResponse inputs;
  ASSERT_TRUE(Get("a", &inputs).ok());
  ASSERT_EQ(inputs.warnings_size(), 1);
  EXPECT_EQ(inputs.warnings(0), "n3/gpu0, n3/gpu1: not measured for job 'a' yet, so not planned with");
}

TEST_F(GetPlanningInputsTest, SaysWhatToDo) {
  v1::GetPlanningInputsResponse inputs;
  EXPECT_EQ(Get("none", &inputs).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Get("", &inputs).error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  ASSERT_TRUE(Submit("a", MakeConfig(1)).ok());
  grpc::Status status = Get("a", &inputs);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("no worker has joined"));

  FakeWorker::Options mute;
  mute.answer_storage = false;
  auto n1 = Join("n1", mute);
  WaitForState("a", v1::JOB_STATE_PROFILING);
  status = Get("a", &inputs);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(),
              HasSubstr("none of the devices that are there (1) was measured for job 'a', which is profiling"));
  EXPECT_THAT(status.error_message(), HasSubstr("motley status a"));
}

}  // namespace
}  // namespace motley::coordinator
