// What a rank does in a step while a stream of its card waits for a peer: none of it may wait for that stream, since the peer may
// wait for this rank. A handle for products and a kernel's first launch do wait beside a kernel: ranks rehearse them.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <tuple>

#include "tests/worker/engine/device/card.h"

namespace motley::engine {
namespace {

constexpr std::chrono::seconds kPatience(2);
constexpr int64_t kKernelCycles = 10'000'000'000;  // some five seconds: no kernel can be told to end

struct Call {
  std::string name;
  std::function<void(DeviceBackend&)> make;
};

at::Tensor Matrix(DeviceBackend& card, int64_t size, at::ScalarType type = at::kBFloat16) {
  return at::ones({size, size}, at::TensorOptions().dtype(type).device(card.tensors()));
}

// What holds the stream: a kernel, as NCCL's does while it waits, or a function of the host.
enum class Holder { kKernel, kHost };

class CardWaitsTest : public CardTest, public testing::WithParamInterface<std::tuple<Holder, Call>> {
 protected:
  absl::Status Hold(DeviceStream& stream) {
    if (std::get<Holder>(GetParam()) == Holder::kKernel) return stream.Call([] { return Spin(); });
    const auto wait = [](void* held) { static_cast<std::atomic<bool>*>(held)->wait(true); };
    EXPECT_EQ(cudaLaunchHostFunc(static_cast<cudaStream_t>(stream.handle()), wait, &held_), cudaSuccess);
    return absl::OkStatus();
  }
  void LetGo() {
    held_ = false;
    held_.notify_all();
  }

 private:
  // at::cuda::sleep, a kernel that counts cycles.
  static absl::Status Spin() {
    using Sleep = void (*)(int64_t);
    const auto sleep = reinterpret_cast<Sleep>(dlsym(RTLD_DEFAULT, "_ZN2at4cuda5sleepEl"));
    if (sleep == nullptr) return absl::NotFoundError("libtorch_cuda has no at::cuda::sleep");
    sleep(kKernelCycles);
    return absl::OkStatus();
  }

  std::atomic<bool> held_ = true;
};

TEST_P(CardWaitsTest, ReturnsWhileAnotherStreamWaits) {
  const Call& call = std::get<Call>(GetParam());
  card().Synchronize();
  DeviceStream& held = *card().StreamOf(Lane::kReceive);
  ASSERT_EQ(Hold(held), absl::OkStatus());
  std::future<void> made = std::async(std::launch::async, [&] {
    EXPECT_EQ(card().StreamOf(Lane::kCompute)->Call([&] {
      call.make(card());
      return absl::OkStatus();
    }),
              absl::OkStatus());
  });
  const bool waits = made.wait_for(kPatience) != std::future_status::ready;
  EXPECT_EQ(cudaStreamQuery(static_cast<cudaStream_t>(held.handle())), cudaErrorNotReady) << "nothing held the stream";
  LetGo();
  made.get();
  card().Synchronize();
  EXPECT_FALSE(waits) << call.name << " waits for all that the card has to do";
}

INSTANTIATE_TEST_SUITE_P(
    Calls, CardWaitsTest,
    testing::Combine(testing::Values(Holder::kKernel, Holder::kHost),
                     testing::Values(Call{"MemoryThatTheAllocatorLacks",
                                          [](DeviceBackend& card) { Matrix(card, 1 << 14, at::kDouble); }},  // 2 GiB
                                     Call{"PinnedMemory",
                                          [](DeviceBackend& card) {
                                            const auto pinned = card.memory()->AllocateHost(int64_t{64} << 20);
                                            ASSERT_TRUE(pinned.ok()) << pinned.status();
                                          }},
                                     Call{"AnEvent",
                                          [](DeviceBackend&) {
                                            cudaEvent_t event = nullptr;
                                            ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
                                          }})),
    [](const auto& info) {
      return std::get<Call>(info.param).name +
             (std::get<Holder>(info.param) == Holder::kKernel ? "BesideAKernel" : "BesideTheHost");
    });

}  // namespace
}  // namespace motley::engine
