// Ranks that run out of their devices' memory.
#include <gmock/gmock.h>

#include "tests/coordinator/rpc/replan_fixture.h"

namespace motley::coordinator {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class MemoryLimits : public Replan {
 protected:
  // The first rank of both nodes' newest generation runs out of memory, and the next generation starts. Returns its number.
  static int64_t RunOut(FakeWorker& n1, FakeWorker& n2, int64_t epoch) {
    n1.Fail(v1::FAULT_MEMORY, "out of memory on n1/gpu0");
    n2.SendAll(v1::RankEvent::KIND_PEER_LOST, "lost n1/gpu0");
    const auto ranks = n1.WaitForStart(epoch);
    EXPECT_FALSE(ranks.empty() || n2.WaitForStart(epoch).empty());
    return ranks.empty() ? 0 : ranks[0].epoch();
  }
  // What people see of n1's device, and then of the job's first rank.
  void ExpectSeen(int64_t usable_bytes, int corrections) {
    grpc::ClientContext of_nodes, of_job;
    v1::ListNodesResponse nodes;
    ASSERT_TRUE(stub_->ListNodes(&of_nodes, v1::ListNodesRequest(), &nodes).ok());
    for (const v1::Node& node : nodes.nodes()) {
      if (node.name() != "n1") continue;
      EXPECT_EQ(node.devices(0).usable_memory_bytes(), usable_bytes);
      EXPECT_EQ(node.devices(0).memory_corrections(), corrections);
    }
    v1::GetJobRequest request;
    request.set_job_id("a");
    request.set_memory(true);
    v1::GetJobResponse job;
    ASSERT_TRUE(stub_->GetJob(&of_job, request, &job).ok());
    for (const v1::RankMemory& rank : job.memory()) {
      const bool is_it = rank.device() == "n1/gpu0";
      EXPECT_EQ(rank.memory_bytes(), int64_t{1} << 30);
      EXPECT_EQ(rank.usable_memory_bytes(), is_it ? usable_bytes : 0);
      EXPECT_EQ(rank.memory_corrections(), is_it ? corrections : 0);
    }
  }
  std::vector<std::string> Limits() {
    std::vector<std::string> messages;
    grpc::ClientContext context;
    v1::ListEventsRequest request;
    request.set_job_id("a");
    auto reader = stub_->ListEvents(&context, request);
    for (v1::Event event; reader->Read(&event);) {
      if (event.kind() == "memory_limit") messages.push_back(event.message());
    }
    EXPECT_TRUE(reader->Finish().ok());
    return messages;
  }
};

TEST_F(MemoryLimits, TheDevicesLimitIsCorrectedAndTheJobIsPlannedAgainAlsoAfterARestart) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(4)).ok());
  const int64_t epoch = Train(*n1, *n2, 1);
  EXPECT_GT(n1->ranks().at(0).planned_bytes(), 0);
  RunOut(*n1, *n2, epoch);
  EXPECT_THAT(WaitForEvent("a", "rank_failed"), StartsWith("the rank on n1/gpu0 ran out of memory: out of memory on n1/gpu0"));
  ASSERT_EQ(Limits().size(), 1u);
  EXPECT_THAT(Limits()[0], StartsWith("n1/gpu0 ran out of memory; the plan counted "));
  EXPECT_THAT(Limits()[0], HasSubstr("parameters "));
  EXPECT_THAT(Limits()[0],
              HasSubstr(". Plans count on 972.8 MiB of it from now on, after 1.0 GiB, and the job is planned again"));
  constexpr int64_t kOnce = (int64_t{1} << 30) * 95 / 100, kTwice = kOnce * 95 / 100;
  ExpectSeen(kOnce, 1);
  n1.reset(), n2.reset();
  Start();
  n1 = Join("n1"), n2 = Join("n2");
  ExpectSeen(kOnce, 1);
  const int64_t next = Train(*n1, *n2, 1);
  RunOut(*n1, *n2, next);
  ASSERT_EQ(Limits().size(), 2u);
  EXPECT_THAT(Limits()[1], HasSubstr("Plans count on 924.2 MiB of it from now on, after 972.8 MiB")) << "the store has it";
  ExpectSeen(kTwice, 2);
  grpc::ClientContext context;
  v1::MeasureNodeRequest measure;
  measure.set_node("n1");
  v1::MeasureNodeResponse measured;
  ASSERT_TRUE(stub_->MeasureNode(&context, measure, &measured).ok());
  ExpectSeen(0, 0);
}

TEST_F(MemoryLimits, TheFourthTimeTheJobEndsWithWhatItHeldAndWhatNeedsLess) {
  auto n1 = Join("n1"), n2 = Join("n2");
  ASSERT_TRUE(Submit("a", MakeConfig(4)).ok());
  int64_t epoch = Train(*n1, *n2, 1);
  for (int time = 0; time < 3; ++time) epoch = RunOut(*n1, *n2, epoch);
  ASSERT_GT(epoch, 0);
  n1->Fail(v1::FAULT_MEMORY, "out of memory on n1/gpu0");
  n2->SendAll(v1::RankEvent::KIND_PEER_LOST, "lost n1/gpu0");
  const std::string reason = WaitForState("a", v1::JOB_STATE_FAILED).reason();
  EXPECT_THAT(reason, StartsWith("n1/gpu0 ran out of memory; the plan counted "));
  EXPECT_THAT(reason, HasSubstr("parameters "));
  // The job is so small that it fits on the smallest device there may be.
  EXPECT_THAT(reason, HasSubstr("; its limit was corrected 3 times before; no single change that was tried helps: "));
  EXPECT_EQ(Limits().size(), 3u);
  EXPECT_EQ(n1->ranks().at(0).epoch(), epoch) << "no fourth plan is tried";
}

}  // namespace
}  // namespace motley::coordinator
