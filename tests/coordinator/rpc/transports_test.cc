// What ranks that are ready say of their transports is kept for as long as they run, beside what was planned.
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class Transports : public ClusterTest {
 protected:
  v1::GetJobResponse Ask(const std::string& id) { return Said<v1::GetJobResponse>(id, &v1::Motley::Stub::GetJob); }
  v1::GetPlanResponse Plan(const std::string& id) { return Said<v1::GetPlanResponse>(id, &v1::Motley::Stub::GetPlan); }
  template <typename Response, typename Request>
  Response Said(const std::string& id,
                grpc::Status (v1::Motley::Stub::*method)(grpc::ClientContext*, const Request&, Response*)) {
    grpc::ClientContext context;
    Request request;
    request.set_job_id(id);
    Response response;
    EXPECT_TRUE(((*stub_).*method)(&context, request, &response).ok());
    return response;
  }
  // The rank is ready and says how group 0, which has all devices, exchanges its bytes.
  static void SendReady(FakeWorker& worker, const v1::RankAssignment& rank, v1::Transport transport, const std::string& why) {
    v1::WorkerMessage message;
    v1::RankEvent* event = message.mutable_rank_event();
    event->set_job_id(rank.job_id());
    event->set_epoch(rank.epoch());
    event->set_rank(rank.rank());
    event->set_device_id(rank.device_ids(rank.rank()));
    event->set_kind(v1::RankEvent::KIND_READY);
    v1::TransportUse* use = event->add_transports();
    use->set_group(0);
    for (const std::string& device : rank.device_ids()) use->add_devices(device);
    use->set_transport(transport);
    use->set_why_not_nccl(why);
    worker.Send(message);
  }
};

TEST_F(Transports, OfTheRunningJobAreShownBesideThePlan) {
  FakeWorker::Options with_card;
  with_card.compute_capability = 86;
  const auto n1 = Join("n1", with_card), n2 = Join("n2", with_card);
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  const auto ranks = n1->WaitForStart();
  ASSERT_FALSE(ranks.empty() || n2->WaitForStart().empty());
  EXPECT_EQ(Ask("a").transports_size(), 0) << "no rank is ready";
  const v1::GetPlanResponse plan = Plan("a");
  ASSERT_GE(plan.transports_size(), 1);
  EXPECT_EQ(plan.transports(0).group(), 0);
  EXPECT_EQ(plan.transports(0).devices_size(), 2);
  EXPECT_EQ(plan.transports(0).transport(), v1::TRANSPORT_NCCL) << "two cards";

  const bool first_is_n1 = ranks[0].rank() == 0;
  FakeWorker& first = first_is_n1 ? *n1 : *n2;
  FakeWorker& second = first_is_n1 ? *n2 : *n1;
  SendReady(first, first.ranks()[0], v1::TRANSPORT_TCP, "n2/gpu0 has no NCCL");
  second.SendAll(v1::RankEvent::KIND_READY);
  WaitForState("a", v1::JOB_STATE_RUNNING);
  const v1::GetJobResponse response = Ask("a");
  ASSERT_EQ(response.transports_size(), 1);
  const v1::TransportUse& use = response.transports(0);
  EXPECT_EQ(use.group(), 0);
  EXPECT_EQ(use.devices_size(), 2);
  EXPECT_EQ(use.transport(), v1::TRANSPORT_TCP);
  EXPECT_EQ(use.why_not_nccl(), "n2/gpu0 has no NCCL");
  EXPECT_EQ(use.planned(), v1::TRANSPORT_NCCL);

  EXPECT_TRUE(StopJob("a").ok());
  for (FakeWorker* worker : {&first, &second}) {
    EXPECT_TRUE(worker->WaitForStop(ranks[0].epoch()));
    worker->SendAll(v1::RankEvent::KIND_FINISHED);
  }
  WaitForState("a", v1::JOB_STATE_STOPPED);
  EXPECT_EQ(Ask("a").transports_size(), 0) << "it does not run";
  EXPECT_EQ(Plan("a").transports_size(), 0);
}

TEST_F(Transports, OfOtherDevicesAreNotTakenAndWithoutCardsNothingIsPlanned) {
  const auto n1 = Join("n1");
  ASSERT_TRUE(Submit("a", MakeConfig(10)).ok());
  auto ranks = n1->WaitForStart();
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(Plan("a").transports_size(), 0);
  v1::RankAssignment other = ranks[0];
  other.add_device_ids("n9/gpu0");
  SendReady(*n1, other, v1::TRANSPORT_TCP, "");
  n1->SendAll(v1::RankEvent::KIND_READY);
  WaitForState("a", v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Ask("a").transports_size(), 0);
}

}  // namespace
}  // namespace motley::coordinator
