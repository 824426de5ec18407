// TraceStep against workers whose ranks answer, do not, or do not know the step any more.
#include <gmock/gmock.h>

#include "tests/common/base/patience.h"
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

class TraceStep : public ClusterTest {
 protected:
  struct Traced {
    grpc::Status status;
    std::vector<v1::RankTimeline> ranks;
    std::vector<std::string> doings;
  };
  Traced Trace(const std::string& job, int64_t step = 0) {
    Traced traced;
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(60))));
    v1::TraceStepRequest request;
    request.set_job_id(job);
    request.set_step(step);
    auto reader = stub_->TraceStep(&context, request);
    for (v1::TraceStepUpdate update; reader->Read(&update);) {
      if (update.has_rank()) traced.ranks.push_back(update.rank());
      if (update.has_doing()) {
        traced.doings.push_back(update.doing());
        if (on_doing) on_doing(update.doing());
      }
    }
    traced.status = reader->Finish();
    return traced;
  }
  // A job that has done so many steps on nodes n1 (one device) and n2 (two).
  void Train(int64_t steps, FakeWorker::Options n2 = {}) {
    n2.devices = 2;
    n1_ = Join("n1");
    n2_ = Join("n2", n2);
    ASSERT_TRUE(Submit("a", MakeConfig(100)).ok());
    epoch_ = n1_->WaitForStart()[0].epoch();
    n2_->WaitForStart();
    StepTo(steps);
  }
  void StepTo(int64_t step) {
    n1_->StepTo(step);
    n2_->StepTo(step);
    Watch("a", [&](const v1::JobUpdate& update) { return update.has_step() && update.step().step() >= step; });
  }

  std::unique_ptr<FakeWorker> n1_, n2_;
  int64_t epoch_ = 0;
  std::function<void(const std::string&)> on_doing;
};

TEST_F(TraceStep, OfTheNewestStepFromEveryRank) {
  Train(3);
  const Traced traced = Trace("a");
  ASSERT_TRUE(traced.status.ok()) << traced.status.error_message();
  ASSERT_EQ(traced.ranks.size(), 3u);
  for (int r = 0; r < 3; ++r) {
    const v1::RankTimeline& rank = traced.ranks[r];
    EXPECT_EQ(rank.rank(), r);
    EXPECT_EQ(rank.ranks(), 3);
    EXPECT_EQ(rank.epoch(), epoch_);
    EXPECT_EQ(rank.step(), 3);
    EXPECT_EQ(rank.spans().duration_ns(0), 3);
  }
  EXPECT_EQ(Trace("a", 2).ranks.at(0).spans().duration_ns(0), 2);
}

TEST_F(TraceStep, AStepToComeIsWaitedFor) {
  Train(3);
  on_doing = [this](const std::string& doing) {
    if (doing.starts_with("waiting for step 5")) StepTo(5);
  };
  const Traced traced = Trace("a", 5);
  ASSERT_TRUE(traced.status.ok()) << traced.status.error_message();
  EXPECT_THAT(traced.doings.at(0), HasSubstr("waiting for step 5, about "));
  EXPECT_EQ(traced.ranks.at(2).step(), 5);
}

TEST_F(TraceStep, WrongQuestionsAreNamed) {
  EXPECT_EQ(Trace("nobody").status.error_code(), grpc::StatusCode::NOT_FOUND);
  ASSERT_TRUE(Submit("a", MakeConfig(100)).ok());
  const grpc::Status early = Trace("a").status;
  EXPECT_EQ(early.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(early.error_message(), HasSubstr("does not train now"));
  const grpc::Status beyond = Trace("a", 101).status;
  EXPECT_EQ(beyond.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(beyond.error_message(), HasSubstr("step must be in 1..100"));
  EXPECT_EQ(Trace("a", -1).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  ASSERT_TRUE(StopJob("a").ok());
  const grpc::Status ended = Trace("a").status;
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(ended.error_message(), HasSubstr("has ended"));
}

TEST_F(TraceStep, AStepThatARankForgotIsSaid) {
  Train(3, {.trace_error = "step 1 is not kept any more"});
  const grpc::Status status = Trace("a", 1).status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("not kept any more"));
}

TEST_F(TraceStep, EndsWhenTheJobIsPlannedAgain) {
  Train(3, {.answer_traces = false});
  on_doing = [this](const std::string& doing) {
    if (doing == "asking 3 ranks about step 3") n1_->SendAll(v1::RankEvent::KIND_DIED, "killed by signal 9");
  };
  const Traced traced = Trace("a");
  EXPECT_EQ(traced.status.error_code(), grpc::StatusCode::ABORTED) << traced.status.error_message();
  EXPECT_TRUE(traced.ranks.empty());
}

}  // namespace
}  // namespace motley::coordinator
