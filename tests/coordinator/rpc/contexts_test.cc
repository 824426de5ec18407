// Ranks whose devices hold more beside tensors than the plan counted.
#include "tests/coordinator/rpc/replan_fixture.h"

namespace motley::coordinator {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class Contexts : public Replan {
 protected:
  // Devices of 64 MiB beside tensors, as profiled.
  FakeWorker::Options Profiled() {
    FakeWorker::Options options;
    options.on_profile = [](v1::ProfileResult& result) {
      for (v1::ComputeProfile& profile : *result.mutable_compute()) profile.set_context_bytes(64 * kMiB);
    };
    return options;
  }
  // Its only rank is ready, with so many bytes beside tensors.
  static void Ready(FakeWorker& worker, int64_t context_bytes) {
    const v1::RankAssignment rank = worker.ranks().at(0);
    v1::WorkerMessage message;
    v1::RankEvent* event = message.mutable_rank_event();
    event->set_job_id(rank.job_id());
    event->set_epoch(rank.epoch());
    event->set_rank(rank.rank());
    event->set_device_id(rank.device().id());
    event->set_kind(v1::RankEvent::KIND_READY);
    event->set_context_bytes(context_bytes);
    worker.Send(message);
  }
};

TEST_F(Contexts, OneAboveThePlanCorrectsTheProfileAndTheJobIsPlannedAgain) {
  auto n1 = Join("n1", Profiled()), n2 = Join("n2", Profiled());
  ASSERT_TRUE(Submit("a", MakeConfig(4)).ok());
  auto ranks = n1->WaitForStart();
  ASSERT_EQ(ranks.size(), 1u);
  ASSERT_FALSE(n2->WaitForStart().empty());
  EXPECT_EQ(ranks[0].planned_context_bytes(), 64 * kMiB);
  const int64_t epoch = ranks[0].epoch();
  Ready(*n1, 100 * kMiB);
  EXPECT_EQ(WaitForEvent("a", "context_above_plan"),
            "n1/gpu0 (test) holds 100.0 MiB beside tensors, the plan counted 64.0 MiB: the job is planned again with that");
  Ready(*n2, 80 * kMiB);
  ASSERT_TRUE(n1->WaitForStop(epoch));
  ranks = n1->WaitForStart(epoch);
  ASSERT_EQ(ranks.size(), 1u);
  ASSERT_FALSE(n2->WaitForStart(epoch).empty());
  EXPECT_EQ(ranks[0].planned_context_bytes(), 100 * kMiB) << "n2's, which is alike, is no less";
  FinishOn({n1.get(), n2.get()}, 4);
  EXPECT_EQ(GetJob("a").epoch(), ranks[0].epoch());
}

TEST_F(Contexts, WhatNoDeviceCanHoldIsNotBelieved) {
  auto n1 = Join("n1", Profiled()), n2 = Join("n2", Profiled());
  ASSERT_TRUE(Submit("a", MakeConfig(4)).ok());
  const auto ranks = n1->WaitForStart();
  ASSERT_EQ(ranks.size(), 1u);
  ASSERT_FALSE(n2->WaitForStart().empty());
  Ready(*n1, int64_t{1} << 40);
  FinishOn({n1.get(), n2.get()}, 4);
  EXPECT_EQ(GetJob("a").epoch(), ranks[0].epoch());
}

// By itself it would end the job: the same plan would run out of memory again.
TEST_F(Contexts, AFailureOfTheFirstStepIsPlannedAgainToo) {
  auto n1 = Join("n1", Profiled()), n2 = Join("n2", Profiled());
  ASSERT_TRUE(Submit("a", MakeConfig(4)).ok());
  const auto ranks = n1->WaitForStart();
  ASSERT_EQ(ranks.size(), 1u);
  ASSERT_FALSE(n2->WaitForStart().empty());
  const int64_t epoch = ranks[0].epoch();
  Ready(*n1, 200 * kMiB);
  n1->Fail(v1::FAULT_OURS, "out of memory");
  ASSERT_FALSE(n1->WaitForStart(epoch).empty());
  ASSERT_FALSE(n2->WaitForStart(epoch).empty());
  EXPECT_EQ(n1->ranks()[0].planned_context_bytes(), 200 * kMiB);
  FinishOn({n1.get(), n2.get()}, 4);
}

}  // namespace
}  // namespace motley::coordinator
