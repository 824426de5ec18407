#include "worker/engine/nccl/nccl_comm.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/fault.h"
#include "tests/worker/engine/fake_host.h"
#include "tests/worker/engine/nccl/half_sums.h"
#include "tests/worker/engine/nccl/open_fake_nccl.h"

namespace motley::engine {
namespace {

class NcclCommTest : public testing::Test {
 protected:
  void SetUp() override { fake_.Reset(); }
  void TearDown() override {
    EXPECT_EQ(fake_.LiveComms(), 0);
    fake_.Reset();
  }

  NcclMembership Member(const ncclUniqueId& id, int ranks, int rank) const {
    return {"test/pair", "pair (a/gpu0, b/gpu0)", id, ranks, rank};
  }
  ncclUniqueId NewId() const {
    ncclUniqueId id;
    EXPECT_EQ(api_.ncclGetUniqueId(&id), ncclSuccess);
    return id;
  }

  // Runs body(rank, its communicator) on as many threads.
  void WithComms(int ranks, const std::function<void(int, NcclComm&)>& body) const {
    const ncclUniqueId id = NewId();
    OnRanks(ranks, [&](int rank) {
      absl::Mutex turn;
      const auto comm = NcclComm::Make(api_, Member(id, ranks, rank), turn, patience_);
      ASSERT_TRUE(comm.ok()) << comm.status();
      body(rank, **comm);
    });
  }

  // What each of two ranks is told when they make these calls.
  std::array<absl::Status, 2> Told(const std::array<std::function<ncclResult_t(ncclComm_t)>, 2>& calls) const {
    std::array<absl::Status, 2> told;
    WithComms(2, [&](int rank, NcclComm& comm) {
      told[rank] = comm.Enqueue(calls[rank], patience_);
      comm.Abort();
    });
    return told;
  }

  absl::Mutex turn_;
  const FakeNccl& fake_ = TheFakeNccl();
  const NcclApi& api_ = fake_.library.api;
  const NcclPatience patience_{absl::Seconds(60), nullptr};
};

TEST_F(NcclCommTest, ARankAloneWorksAbortsAndReports) {
  WithComms(1, [&](int, NcclComm& comm) {
    std::vector<float> from = {1, 2, 3}, to(3);
    const auto gather = [&](ncclComm_t handle) {
      return api_.ncclAllGather(from.data(), to.data(), 3, ncclFloat32, handle, nullptr);
    };
    ASSERT_EQ(comm.Enqueue(gather, patience_), absl::OkStatus());
    EXPECT_EQ(to, from);
    EXPECT_EQ(comm.Health(), absl::OkStatus());
    fake_.Fail("test/pair", ncclRemoteError);
    const absl::Status sick = comm.Health();
    EXPECT_EQ(sick.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(FaultOf(sick), Fault::kPeer);
    EXPECT_EQ(sick.message(), "NCCL of pair (a/gpu0, b/gpu0): failed: remote process exited or there was a network error");
    comm.Abort();
    EXPECT_EQ(fake_.LiveComms(), 0);
    EXPECT_EQ(comm.Enqueue(gather, patience_).message(), "NCCL of pair (a/gpu0, b/gpu0): aborted");
    comm.Abort();  // nothing more
  });
}

TEST_F(NcclCommTest, NcclThatTakesItsTimeIsPolled) {
  const FakeNcclBehaviour slow{.in_progress_polls = 5, .latest_us = 500, .seed = 3};
  fake_.Behave(&slow);
  WithComms(3, [&](int rank, NcclComm& comm) {
    for (int round = 0; round < 10; ++round) {
      std::vector<double> array = {1.0 * rank + round};
      ASSERT_EQ(comm.Enqueue(
                    [&](ncclComm_t handle) {
                      return api_.ncclReduce(array.data(), array.data(), 1, ncclFloat64, ncclSum, round % 3, handle, nullptr);
                    },
                    patience_),
                absl::OkStatus());
      if (rank == round % 3) EXPECT_EQ(array[0], 3 + 3 * round);
    }
  });
}

TEST_F(NcclCommTest, AMemberThatDoesNotMakeItEndsWithThePatience) {
  const auto comm = NcclComm::Make(api_, Member(NewId(), 2, 0), turn_, {absl::Milliseconds(50), nullptr});
  EXPECT_EQ(comm.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(FaultOf(comm.status()), Fault::kPeer);
  EXPECT_EQ(comm.status().message(), "NCCL of pair (a/gpu0, b/gpu0): making its communicator: nothing came for 50ms");
}

TEST_F(NcclCommTest, WhatIsAskedMeanwhileEndsTheWait) {
  int asked = 0;
  const auto check = [&asked] { return ++asked < 3 ? absl::OkStatus() : absl::CancelledError("stopped"); };
  EXPECT_EQ(NcclComm::Make(api_, Member(NewId(), 2, 0), turn_, {absl::Seconds(60), check}).status(),
            absl::CancelledError("stopped"));
}

TEST_F(NcclCommTest, AWrongMembershipIsRefusedAtOnce) {
  const auto comm = NcclComm::Make(api_, Member(NewId(), 2, 2), turn_, patience_);
  EXPECT_EQ(FaultOf(comm.status()), Fault::kOurs);
  EXPECT_NE(comm.status().message().find("invalid argument"), std::string::npos) << comm.status();
}

// So does the fake, and NCCL calls it unsafe: two threads must not enqueue on one card at the same time.
TEST_F(NcclCommTest, TheFakeRefusesASecondThreadOfACard) {
  absl::Mutex other_turn;
  const auto first = NcclComm::Make(api_, Member(NewId(), 1, 0), turn_, patience_);
  const auto second = NcclComm::Make(api_, Member(NewId(), 1, 0), other_turn, patience_);
  ASSERT_TRUE(first.ok() && second.ok());
  float value = 1;
  const auto gather = [&](ncclComm_t handle) { return api_.ncclAllGather(&value, &value, 1, ncclFloat32, handle, nullptr); };
  absl::Status told;
  const auto two = [&](ncclComm_t handle) {
    const ncclResult_t result = gather(handle);
    std::thread([&] { told = (*second)->Enqueue(gather, patience_); }).join();
    return result;
  };
  EXPECT_EQ((*first)->Enqueue(two, patience_), absl::OkStatus());
  EXPECT_EQ(FaultOf(told), Fault::kOurs) << told;
  EXPECT_NE(told.message().find("while another thread enqueues on the card"), std::string::npos) << told;
  EXPECT_EQ((*second)->Enqueue(gather, patience_), absl::OkStatus());
}

TEST_F(NcclCommTest, ThreadsOfOneCardTakeTurns) {
  constexpr int kThreads = 3;
  const FakeNcclBehaviour slow{.in_progress_polls = 3, .latest_us = 200, .seed = 4};
  fake_.Behave(&slow);
  std::vector<std::unique_ptr<NcclComm>> comms;
  for (int i = 0; i < kThreads; ++i) comms.push_back(*NcclComm::Make(api_, Member(NewId(), 1, 0), turn_, patience_));
  OnRanks(kThreads, [&](int thread) {
    float value = 1;
    const auto gather = [&](ncclComm_t handle) { return api_.ncclAllGather(&value, &value, 1, ncclFloat32, handle, nullptr); };
    for (int i = 0; i < 30; ++i) ASSERT_EQ(comms[thread]->Enqueue(gather, patience_), absl::OkStatus());
  });
}

TEST_F(NcclCommTest, AnAbortEndsWhoeverHasTheTurnAndWhoeverWaitsForIt) {
  const auto first = NcclComm::Make(api_, Member(NewId(), 1, 0), turn_, patience_);
  const auto second = NcclComm::Make(api_, Member(NewId(), 1, 0), turn_, patience_);
  ASSERT_TRUE(first.ok() && second.ok());
  const FakeNcclBehaviour endless{.in_progress_polls = 1'000'000'000};
  fake_.Behave(&endless);
  std::atomic<int> ended = 0;
  const auto call = [&](NcclComm& comm) {
    float value = 1;
    const auto gather = [&](ncclComm_t handle) { return api_.ncclAllGather(&value, &value, 1, ncclFloat32, handle, nullptr); };
    EXPECT_EQ(comm.Enqueue(gather, patience_).code(), absl::StatusCode::kUnavailable);
    ++ended;
  };
  std::thread one([&] { call(**first); }), other([&] { call(**second); });
  while (fake_.Calls() == 0) std::this_thread::yield();
  EXPECT_EQ((*first)->Health(), absl::OkStatus());
  EXPECT_EQ(ended, 0);
  (*first)->Abort();
  (*second)->Abort();
  one.join();
  other.join();
}

// The fake finds what NCCL would hang or compute nonsense with.
TEST_F(NcclCommTest, CallsThatDifferFailOnAllMembersAndSayHow) {
  std::vector<float> a(8), b(8);
  const auto broadcast = [&](size_t count, ncclDataType_t type, int root) -> std::function<ncclResult_t(ncclComm_t)> {
    return
        [=, &a, this](ncclComm_t handle) { return api_.ncclBroadcast(a.data(), a.data(), count, type, root, handle, nullptr); };
  };
  const auto reduce = [&](ncclComm_t handle) {
    return api_.ncclReduce(b.data(), b.data(), 4, ncclFloat32, ncclSum, 0, handle, nullptr);
  };
  const auto both = [&](bool reduce_first) -> std::function<ncclResult_t(ncclComm_t)> {
    return [=, this](ncclComm_t handle) {
      const ncclResult_t first = reduce_first ? reduce(handle) : broadcast(4, ncclFloat32, 0)(handle);
      if (first != ncclSuccess) return first;
      return reduce_first ? broadcast(4, ncclFloat32, 0)(handle) : reduce(handle);
    };
  };
  const auto send = [&](ncclComm_t handle) { return api_.ncclSend(a.data(), 4, ncclFloat32, 1, handle, nullptr); };
  const auto receive = [&](ncclComm_t handle) { return api_.ncclRecv(b.data(), 3, ncclFloat32, 0, handle, nullptr); };
  struct Case {
    std::array<std::function<ncclResult_t(ncclComm_t)>, 2> calls;
    std::array<std::string, 2> texts;
  };
  const std::vector<Case> cases = {
      {{broadcast(4, ncclFloat32, 0), broadcast(5, ncclFloat32, 0)},
       {"broadcast of 4 float32 from 0", "broadcast of 5 float32 from 0"}},
      {{broadcast(2, ncclFloat32, 0), broadcast(2, ncclFloat64, 0)},
       {"broadcast of 2 float32 from 0", "broadcast of 2 float64 from 0"}},
      {{broadcast(4, ncclFloat32, 0), broadcast(4, ncclFloat32, 1)},
       {"broadcast of 4 float32 from 0", "broadcast of 4 float32 from 1"}},
      {{broadcast(4, ncclFloat32, 0), reduce}, {"broadcast of 4 float32 from 0", "reduce of 4 float32 to 0"}},
      {{both(true), both(false)}, {"reduce of 4 float32 to 0", "broadcast of 4 float32 from 0"}},
      {{send, receive}, {"send of 4 float32 to 1", "receive of 3 float32 from 0"}},
  };
  for (const Case& one : cases) {
    for (const absl::Status& told : Told(one.calls)) {
      EXPECT_EQ(FaultOf(told), Fault::kOurs) << told;
      EXPECT_NE(told.message().find("where rank"), std::string::npos) << told;
      for (const std::string& text : one.texts) EXPECT_NE(told.message().find(text), std::string::npos) << text << " in " << told;
    }
  }
}

TEST_F(NcclCommTest, HalfTypesAreRoundedToTheNearestEven) {
  const auto sum = [&](ncclDataType_t type, uint16_t a, uint16_t b) {
    uint16_t result = 0;
    WithComms(2, [&](int rank, NcclComm& comm) {
      uint16_t value = rank == 0 ? a : b;
      const auto reduce = [&](ncclComm_t handle) {
        return api_.ncclReduce(&value, &value, 1, type, ncclSum, 0, handle, nullptr);
      };
      ASSERT_EQ(comm.Enqueue(reduce, patience_), absl::OkStatus());
      if (rank == 0) result = value;
    });
    return result;
  };
  const auto float16 = [&](float a, float b) { return FloatOfFloat16(sum(ncclFloat16, Float16Of(a), Float16Of(b))); };
  const auto bfloat16 = [&](float a, float b) { return FloatOfBFloat16(sum(ncclBfloat16, BFloat16Of(a), BFloat16Of(b))); };
  EXPECT_EQ(float16(2048, 1), 2048);
  EXPECT_EQ(float16(2050, 1), 2052);
  EXPECT_EQ(float16(0.5, -0.25), 0.25);
  EXPECT_EQ(float16(0x1p-24F, 0x1p-24F), 0x1p-23F);  // below the normal numbers
  EXPECT_EQ(float16(0, 0), 0);
  EXPECT_EQ(float16(65504, 32), INFINITY);
  EXPECT_EQ(bfloat16(256, 1), 256);
  EXPECT_EQ(bfloat16(258, 1), 260);
  EXPECT_EQ(bfloat16(0, -0.5), -0.5);
}

}  // namespace
}  // namespace motley::engine
