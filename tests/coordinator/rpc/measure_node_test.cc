// Devices that are measured again: by command, or because steps are not as predicted.
#include <gmock/gmock.h>

#include <atomic>

#include "tests/coordinator/rpc/replan_fixture.h"

namespace motley::coordinator {
namespace {

using testing::HasSubstr;

class MeasureNode : public Replan {
 protected:
  // Measured devices, which declare nothing, and how often they were, alone or together.
  FakeWorker::Options Counting(std::atomic<int>* profiles) {
    FakeWorker::Options options = Saving();
    options.on_hello = [](v1::Hello& hello) {
      for (v1::DeviceDescription& device : *hello.mutable_devices()) device.set_flops_per_second(0);
    };
    options.on_profile = [profiles](v1::ProfileResult&) { ++*profiles; };
    return options;
  }
  grpc::Status Measure(const std::string& node, std::string* job = nullptr) {
    grpc::ClientContext context;
    v1::MeasureNodeRequest request;
    request.set_node(node);
    v1::MeasureNodeResponse response;
    const grpc::Status status = stub_->MeasureNode(&context, request, &response);
    if (job != nullptr) *job = response.job_id();
    return status;
  }

  std::atomic<int> of_n1_ = 0, of_n2_ = 0;
};

TEST_F(MeasureNode, AJobThatUsesItSavesMeasuresAndGoesOn) {
  auto n1 = Join("n1", Counting(&of_n1_)), n2 = Join("n2", Counting(&of_n2_));
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const int64_t epoch = Train(*n1, *n2, 4);
  ASSERT_EQ(of_n1_, 1);
  ASSERT_EQ(of_n2_, 1);
  std::string job;
  ASSERT_TRUE(Measure("n2", &job).ok());
  EXPECT_EQ(job, "a");
  const auto ranks = n1->WaitForStart(epoch);
  ASSERT_FALSE(ranks.empty() || n2->WaitForStart(epoch).empty());
  EXPECT_EQ(ranks[0].start_step(), 4) << "it was saved";
  EXPECT_EQ(of_n2_, 2);
  FinishOn({n1.get(), n2.get()}, 10);
  EXPECT_THAT(WaitForEvent("a", "replan"), HasSubstr("node n2 is measured again, as a user asked"));
}

TEST_F(MeasureNode, WithoutAJobTheNextOneMeasuresIt) {
  auto n1 = Join("n1", Counting(&of_n1_));
  ASSERT_TRUE(Submit("a", MakeConfig(2)).ok());
  ASSERT_FALSE(n1->WaitForStart().empty());
  FinishOn({n1.get()}, 2);
  std::string job = "?";
  ASSERT_TRUE(Measure("n1", &job).ok());
  EXPECT_EQ(job, "");
  ASSERT_TRUE(Submit("b", MakeConfig(2)).ok());
  EXPECT_THAT(WaitForEvent("b", "profile"), HasSubstr("measured n1/gpu0"));
  EXPECT_EQ(of_n1_, 2);
}

TEST_F(MeasureNode, AnUnknownNodeIsNamed) {
  const grpc::Status status = Measure("n9");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("no node n9"));
}

// The fake's steps take 0.5 s, whatever was predicted of its invented profile.
TEST_F(MeasureNode, StepsThatAreNotAsPredictedAreSaidAndTheNextPlanMeasuresFirst) {
  auto n1 = Join("n1", Counting(&of_n1_)), n2 = Join("n2", Counting(&of_n2_));
  ASSERT_TRUE(Submit("a", MakeConfig(30)).ok());
  const int64_t epoch = Train(*n1, *n2, 10);
  const double predicted = GetJob("a").predicted_step_seconds();
  ASSERT_GT(std::abs(0.5 / predicted - 1), 1.0 / 3) << predicted;
  EXPECT_THAT(WaitForEvent("a", "prediction_off"), HasSubstr("10 steps in a row took"));
  Watch("a", [](const v1::JobUpdate& update) {
    return update.has_job() && update.job().reason().find("steps in a row took") != std::string::npos;
  });
  EXPECT_THAT(GetJob("a").reason(), HasSubstr("training; 10 steps in a row took"));
  ASSERT_TRUE(Drain("n2", true).ok());
  ASSERT_FALSE(n1->WaitForStart(epoch).empty());
  EXPECT_EQ(of_n1_, 2) << "the one that stays was doubted, too";
}

}  // namespace
}  // namespace motley::coordinator
