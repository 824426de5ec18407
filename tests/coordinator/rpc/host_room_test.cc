// Hosts that have less memory than a plan keeps there.
#include "tests/coordinator/rpc/replan_fixture.h"

namespace motley::coordinator {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class HostRoom : public Replan {
 protected:
  v1::Node NodeNamed(const std::string& name) {
    grpc::ClientContext context;
    v1::ListNodesResponse response;
    EXPECT_TRUE(stub_->ListNodes(&context, v1::ListNodesRequest(), &response).ok());
    for (const v1::Node& node : response.nodes()) {
      if (node.name() == name) return node;
    }
    ADD_FAILURE() << "no node " << name;
    return {};
  }
};

TEST_F(HostRoom, WhatIsThereIsPlannedWithAndTheJobGoesOn) {
  FakeWorker::Options options;
  options.host_memory_bytes = 100 * kMiB;
  auto n1 = Join("n1", options), n2 = Join("n2", options);
  ASSERT_TRUE(Submit("a", MakeConfig(4)).ok());
  auto ranks = n1->WaitForStart();
  ASSERT_EQ(ranks.size(), 1u);
  ASSERT_FALSE(n2->WaitForStart().empty());
  const int64_t epoch = ranks[0].epoch();
  v1::WorkerMessage message;
  v1::RankEvent* event = message.mutable_rank_event();
  event->set_job_id("a");
  event->set_epoch(epoch);
  event->set_rank(ranks[0].rank());
  event->set_device_id(ranks[0].device().id());
  event->set_kind(v1::RankEvent::KIND_FAILED);
  event->set_message("the host memory of n1 has 50.0 MiB available");
  event->set_host_offer_bytes(40 * kMiB);
  n1->Send(message);
  EXPECT_EQ(WaitForEvent("a", "host_memory_short"),
            "the host memory of n1 has 50.0 MiB available: the job is planned again with 40.0 MiB there");
  ASSERT_TRUE(n2->WaitForStop(epoch)) << "it waits for n1's rank in vain";
  ranks = n1->WaitForStart(epoch);
  ASSERT_EQ(ranks.size(), 1u);
  ASSERT_FALSE(n2->WaitForStart(epoch).empty());
  EXPECT_EQ(NodeNamed("n1").offered_host_memory_bytes(), 40 * kMiB);
  EXPECT_EQ(NodeNamed("n2").offered_host_memory_bytes(), 100 * kMiB) << "its own is there";
  FinishOn({n1.get(), n2.get()}, 4);
  EXPECT_EQ(GetJob("a").state(), v1::JOB_STATE_SUCCEEDED);
}

}  // namespace
}  // namespace motley::coordinator
