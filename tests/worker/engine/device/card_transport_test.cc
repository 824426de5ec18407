// Streams, pinned copies and NCCL of a real card.
#include <ATen/ATen.h>
#include <cuda_runtime_api.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "tests/worker/engine/device/card.h"
#include "tests/worker/engine/transport/ranks.h"
#include "worker/engine/lanes/stream_lane.h"
#include "worker/engine/nccl/nccl_comm.h"
#include "worker/engine/nccl/nccl_library.h"

namespace motley::engine {
namespace {

constexpr int64_t kElements = 1 << 22;

class CardTransportTest : public CardTest {
 protected:
  at::TensorOptions options() { return at::TensorOptions().dtype(at::kFloat).device(card().tensors()); }
  void* stream(Lane lane) { return card().StreamOf(lane)->handle(); }
  void Await(void* on) {
    for (;;) {
      const auto done = card().memory()->IsDone(on);
      ASSERT_TRUE(done.ok()) << done.status();
      if (*done) return;
      std::this_thread::yield();
    }
  }

  SystemClock clock_;
  DeviceLanes lanes_{clock_, nullptr};
};

TEST_F(CardTransportTest, LanesWaitForEachOtherOnTheCard) {
  StreamLane compute(lanes_, *card().StreamOf(Lane::kCompute)), send(lanes_, *card().StreamOf(Lane::kSend));
  at::Tensor a = at::zeros({kElements}, options()), b = at::zeros({kElements}, options());
  compute.Begin();
  send.Begin();
  InstructionSpan first, second;
  const auto work = [](auto&& body) {
    return [body] {
      body();
      return absl::OkStatus();
    };
  };
  compute.Run({work([&] {
                 for (int i = 0; i < 200; ++i) a.add_(1);
               }),
               std::nullopt, &first});
  send.Wait(compute.Record());
  send.Run({work([&] { b.copy_(a); }), std::nullopt, &second});
  compute.Wait(send.Record());
  compute.Run({work([&] { a.zero_(); })});
  ASSERT_EQ(compute.Finish(), absl::OkStatus());
  ASSERT_EQ(send.Finish(), absl::OkStatus());
  EXPECT_EQ(b.sum().item<float>(), 200.0f * kElements);
  EXPECT_EQ(a.sum().item<float>(), 0);
  EXPECT_LT(first.begin, first.end);
  EXPECT_LE(first.end, second.begin);
}

TEST_F(CardTransportTest, PinnedCopiesGoThereAndBack) {
  DeviceMemory& memory = *card().memory();
  const int64_t bytes = kElements * static_cast<int64_t>(sizeof(float));
  const auto host = memory.AllocateHost(bytes);
  const auto room = memory.Allocate(bytes, stream(Lane::kSend));
  ASSERT_TRUE(host.ok() && room.ok());
  const at::Tensor there = at::arange(kElements, options());
  card().Synchronize();  // it was made on another stream
  auto* const values = static_cast<float*>(*host);
  ASSERT_EQ(memory.CopyAsync(*room, there.const_data_ptr(), bytes, stream(Lane::kSend)), absl::OkStatus());
  ASSERT_EQ(memory.CopyAsync(values, *room, bytes, stream(Lane::kSend)), absl::OkStatus());
  Await(stream(Lane::kSend));
  for (int64_t i = 0; i < kElements; i += 1001) ASSERT_EQ(values[i], static_cast<float>(i));
  memory.Free(*room);
  memory.FreeHost(*host);
}

TEST_F(CardTransportTest, NcclOfOneRankWorksEndsAndIsAborted) {
  const NcclApi* const nccl = card().nccl();
  ASSERT_NE(nccl, nullptr) << card().note();
  const NcclPatience patience{.deadline = absl::Seconds(60)};
  absl::Mutex turn;
  for (const bool abort : {false, true}) {
    NcclMembership alone{.label = "test", .name = "a group of one", .ranks = 1, .rank = 0};
    ASSERT_EQ(nccl->ncclGetUniqueId(&alone.id), ncclSuccess);
    auto comm = NcclComm::Make(*nccl, alone, turn, patience);
    ASSERT_TRUE(comm.ok()) << comm.status();
    const at::Tensor from = at::arange(kElements, options());
    at::Tensor to = at::zeros_like(from);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ((*comm)->Enqueue(
                  [&](ncclComm_t handle) {
                    return nccl->ncclAllGather(from.const_data_ptr(), to.mutable_data_ptr(), kElements, ncclFloat32, handle,
                                               stream(Lane::kCollective));
                  },
                  patience),
              absl::OkStatus());
    Await(stream(Lane::kCollective));
    EXPECT_TRUE(at::equal(from, to));
    EXPECT_EQ((*comm)->Health(), absl::OkStatus());
    if (abort) (*comm)->Abort();
  }
}

// As threads of one process: NCCL looks for ranks of one card in one process, too.
TEST_F(CardTransportTest, TwoRanksOnThisCardGoByNccl) {
  constexpr int kFirstWithSharedCards = 23000;
  int version = 0;
  ASSERT_NE(card().nccl(), nullptr) << card().note();
  ASSERT_EQ(card().nccl()->ncclGetVersion(&version), ncclSuccess);
  if (version < kFirstWithSharedCards) GTEST_SKIP() << "NCCL " << NcclVersionText(version) << " has no two ranks on one card";
  std::array<std::unique_ptr<DeviceBackend>, 2> backends;
  for (auto& backend : backends) backend = *OpenBackend(TheCard(), "127.0.0.1");
  const auto by_nccl = [&](CommunicatorOptions& options) {
    EverybodyHandsOver(options);
    DeviceBackend& backend = *backends[options.rank];
    for (size_t lane = 0; lane < kNumLanes; ++lane) options.streams[lane] = backend.StreamOf(static_cast<Lane>(lane))->handle();
    options.memory = backend.memory();
    options.nccl = {.api = backend.nccl(), .required = true, .multiprocessors = backend.multiprocessors()};
  };
  WithRanks(
      2, TheCard(),
      [&](int rank, Communicator& communicator) {
        DeviceBackend& backend = *backends[rank];
        at::Tensor array = at::zeros({1000}, options()), got = at::zeros({1000}, options());
        array.slice(0, rank == 0 ? 0 : 300, rank == 0 ? 300 : 1000).fill_(rank + 1);
        backend.Synchronize();
        EXPECT_EQ(communicator.AllGather(0, array.mutable_data_ptr(), DType::kFloat32, OwnersOf({0, 300, 1000})),
                  absl::OkStatus());
        backend.Synchronize();
        EXPECT_EQ(array.sum().item<float>(), 300 + 2 * 700);
        if (rank == 0) {
          EXPECT_EQ(communicator.Send(1, array.const_data_ptr(), array.nbytes()), absl::OkStatus());
        } else {
          EXPECT_EQ(communicator.Receive(0, got.mutable_data_ptr(), got.nbytes()), absl::OkStatus());
          backend.Synchronize();
          EXPECT_TRUE(at::equal(got, array));
        }
        backend.Synchronize();
        EXPECT_TRUE(communicator.GatherScalars({0}).ok());
      },
      by_nccl);
}

TEST_F(CardTransportTest, WhatIsBeyondTheCapFailsAndIsCounted) {
  const int64_t before = card().CurrentBytes();
  card().SetMemoryCap(before + (int64_t{256} << 20), "n0/gpu0");
  EXPECT_THROW(at::empty({int64_t{1} << 30}, options()), c10::OutOfMemoryError);
  card().SetMemoryCap(0, "n0/gpu0");
  card().ResetPeak();
  {
    const at::Tensor held = at::empty({kElements}, options());
    EXPECT_EQ(card().CurrentBytes() - before, held.nbytes());
  }
  EXPECT_EQ(card().CurrentBytes(), before);
  EXPECT_EQ(card().PeakBytes() - before, kElements * static_cast<int64_t>(sizeof(float)));
}

}  // namespace
}  // namespace motley::engine
