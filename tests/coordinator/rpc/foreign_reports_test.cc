// A worker speaks for itself alone: what it says of others is dropped and counted.
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class ForeignReports : public ClusterTest {
 protected:
  // Two nodes that train; rank 0 is on n1.
  void Begin() {
    n1_ = Join("n1");
    n2_ = Join("n2");
    ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
    const auto ranks = n1_->WaitForStart();
    ASSERT_FALSE(ranks.empty() || n2_->WaitForStart().empty());
    ASSERT_EQ(ranks[0].rank(), 0);
    n1_->SendAll(v1::RankEvent::KIND_READY);
    n2_->SendAll(v1::RankEvent::KIND_READY);
    n1_->StepTo(2);
    Watch("a", [](const v1::JobUpdate& update) { return update.has_step() && update.step().step() == 2; });
  }
  template <typename Message>
  static Message* Stamp(const v1::RankAssignment& rank, Message* message) {
    message->set_job_id(rank.job_id());
    message->set_epoch(rank.epoch());
    return message;
  }
  // Everything of node `node` that was sent before has been handled when this is answered.
  void Flush(FakeWorker& worker) {
    v1::WorkerMessage message;
    Stamp(worker.ranks()[0], message.mutable_publish_request())->set_rank(worker.ranks()[0].rank());
    worker.Send(message);
    v1::PublishAnswer answer;
    ASSERT_TRUE(worker.WaitForAnswer(&answer));
    EXPECT_TRUE(answer.allowed()) << answer.reason();
  }

  std::unique_ptr<FakeWorker> n1_, n2_;
};

TEST_F(ForeignReports, AForgedStepAndAForgedCheckpointChangeNothing) {
  Begin();
  const v1::RankAssignment first = n1_->ranks()[0];
  for (FakeWorker* worker : {n1_.get(), n2_.get()}) {
    v1::WorkerMessage step;
    Stamp(first, step.mutable_step_report())->mutable_record()->set_step(999999999);
    worker->Send(step);
    v1::WorkerMessage checkpoint;
    Stamp(first, checkpoint.mutable_checkpoint_published())->set_step(2);
    checkpoint.mutable_checkpoint_published()->set_folder("/etc/step-00000002-gen-1");
    worker->Send(checkpoint);
    Flush(*worker);
  }
  EXPECT_EQ(GetJob("a").step(), 2);
  EXPECT_EQ(GetJob("a").newest_checkpoint(), "");
  n1_->StepTo(3);
  Watch("a", [](const v1::JobUpdate& update) { return update.has_step() && update.step().step() == 3; });
  EXPECT_EQ(GetJob("a").step(), 3) << "and the job goes on";
}

TEST_F(ForeignReports, NobodyEndsAnothersRank) {
  Begin();
  v1::RankAssignment other = n1_->ranks()[0];
  n2_->SendEvent(other, v1::RankEvent::KIND_FAILED, "forged");
  v1::WorkerMessage publish;
  Stamp(other, publish.mutable_publish_request())->set_rank(other.rank());
  n2_->Send(publish);
  v1::PublishAnswer answer;
  ASSERT_TRUE(n2_->WaitForAnswer(&answer));
  EXPECT_FALSE(answer.allowed());
  EXPECT_NE(answer.reason().find("not on this node"), std::string::npos) << answer.reason();
  EXPECT_EQ(GetJob("a").state(), v1::JOB_STATE_RUNNING) << GetJob("a").reason();
}

TEST_F(ForeignReports, StepsThatWereLostOnTheWayEndTheSession) {
  Begin();
  const int64_t epoch = n1_->ranks()[0].epoch();
  n1_->Step(5);
  const grpc::Status status = n1_->WaitForEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  EXPECT_NE(status.error_message().find("step 5 after step 2"), std::string::npos) << status.error_message();
  EXPECT_FALSE(n2_->WaitForStart(epoch).empty()) << "the job goes on without what is not known";
}

}  // namespace
}  // namespace motley::coordinator
