// What a rank does in a step while a stream of its card waits for a peer: none of it may wait for that stream, since the peer may
// wait for this rank.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>

#include "tests/worker/engine/device/card.h"

namespace motley::engine {
namespace {

constexpr std::chrono::seconds kPatience(5);

struct Call {
  std::string name;
  std::function<void(DeviceBackend&)> make;
};

at::Tensor Matrix(DeviceBackend& card, int64_t size, at::ScalarType type = at::kBFloat16) {
  return at::ones({size, size}, at::TensorOptions().dtype(type).device(card.tensors()));
}

class CardWaitsTest : public CardTest, public testing::WithParamInterface<Call> {
 protected:
  // Holds the stream until it is let go.
  void Hold(Lane lane) {
    const auto wait = [](void* held) { static_cast<std::atomic<bool>*>(held)->wait(true); };
    ASSERT_EQ(cudaLaunchHostFunc(static_cast<cudaStream_t>(card().StreamOf(lane)->handle()), wait, &held_), cudaSuccess);
  }
  std::atomic<bool> held_ = true;
};

TEST_P(CardWaitsTest, ReturnsWhileAnotherStreamWaits) {
  card().Synchronize();
  Hold(Lane::kReceive);
  std::future<void> made = std::async(std::launch::async, [&] {
    EXPECT_EQ(card().StreamOf(Lane::kCompute)->Call([&] {
      GetParam().make(card());
      return absl::OkStatus();
    }),
              absl::OkStatus());
  });
  const bool waits = made.wait_for(kPatience) != std::future_status::ready;
  held_ = false;
  held_.notify_all();
  made.get();
  card().Synchronize();
  EXPECT_FALSE(waits) << GetParam().name << " waits for all that the card has to do";
}

INSTANTIATE_TEST_SUITE_P(Calls, CardWaitsTest,
                         testing::Values(Call{"MemoryThatTheAllocatorLacks",
                                              [](DeviceBackend& card) { Matrix(card, 1 << 14, at::kDouble); }},  // 2 GiB
                                         Call{"PinnedMemory",
                                              [](DeviceBackend& card) {
                                                const auto pinned = card.memory()->AllocateHost(int64_t{64} << 20);
                                                ASSERT_TRUE(pinned.ok()) << pinned.status();
                                              }},
                                         Call{"AHandleForProducts",
                                              [](DeviceBackend& card) {
                                                const at::Tensor a = Matrix(card, 512);
                                                at::mm(a, a);
                                              }},
                                         Call{"AKernelNeverLaunchedBefore",
                                              [](DeviceBackend& card) { Matrix(card, 64, at::kFloat).digamma_(); }},
                                         Call{"AnEvent",
                                              [](DeviceBackend&) {
                                                cudaEvent_t event = nullptr;
                                                ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
                                              }}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace motley::engine
