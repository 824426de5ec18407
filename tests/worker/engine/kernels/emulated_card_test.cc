#include "tests/worker/engine/kernels/emulated_card.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "worker/engine/kernels/kernel_types.h"

namespace motley::kernels {
namespace {

using emulated::Launch;
using emulated::RunGrid;

const Launch kOneBlock = {.grid = {1}, .block = {256}, .shared_bytes = 1024};

TEST(EmulatedCardTest, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<int> runs(3 * 2 * 64);
  EXPECT_EQ(RunGrid({.grid = {3, 2}, .block = {32, 2}},
                    [&] {
                      EXPECT_EQ(gridDim.x * blockDim.y, 6u);
                      ++runs[(blockIdx.y * 3 + blockIdx.x) * 64 + threadIdx.y * 32 + threadIdx.x];
                    }),
            "");
  EXPECT_EQ(runs, std::vector<int>(3 * 2 * 64, 1));
}

TEST(EmulatedCardTest, TheOrderIsTheSeeds) {
  const auto order = [](uint64_t seed) {
    std::vector<unsigned> ran;
    RunGrid({.grid = {4}, .block = {32}, .seed = seed}, [&] { ran.push_back(blockIdx.x * 32 + threadIdx.x); });
    return ran;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

TEST(EmulatedCardTest, SomeBlocksOfALargeGridRunAlone) {
  std::vector<unsigned> ran;
  RunGrid({.grid = {2'000'000'000}, .block = {1}, .first_block = 1'999'999'999}, [&] { ran.push_back(blockIdx.x); });
  EXPECT_EQ(ran, std::vector<unsigned>{1'999'999'999});
}

// Each thread reads what another one wrote. Without the barrier some have not written yet, whatever the order.
TEST(EmulatedCardTest, ABarrierThatIsMissingIsSeen) {
  for (const bool barrier : {true, false}) {
    int wrong = 0;
    const std::string said = RunGrid(kOneBlock, [&] {
      float* shared = SharedMemory<float>();
      shared[threadIdx.x] = static_cast<float>(threadIdx.x);
      if (barrier) __syncthreads();
      const unsigned other = (threadIdx.x + 100) % 256;
      if (shared[other] != static_cast<float>(other)) ++wrong;
    });
    EXPECT_EQ(said, "");
    EXPECT_EQ(wrong == 0, barrier) << wrong;
  }
}

TEST(EmulatedCardTest, SharedMemoryBeginsAsNoNumberInEveryBlock) {
  int numbers = 0;
  RunGrid({.grid = {3}, .block = {32}, .shared_bytes = 128}, [&] {
    float& mine = SharedMemory<float>()[threadIdx.x];
    if (!std::isnan(mine)) ++numbers;
    mine = 1;
  });
  EXPECT_EQ(numbers, 0);
  EXPECT_TRUE(std::isnan(Wide(BFloat16Bits{0xffff})) && std::isnan(Wide(Float16Bits{0xffff})));
}

TEST(EmulatedCardTest, ABarrierThatNotAllReachIsSaid) {
  EXPECT_EQ(RunGrid(kOneBlock,
                    [] {
                      if (threadIdx.x < 200) __syncthreads();
                    }),
            "a barrier that 200 of 256 threads reach");
}

TEST(EmulatedCardTest, AShuffleThatNotAllLanesReachIsSaid) {
  EXPECT_EQ(RunGrid(kOneBlock,
                    [] {
                      if (threadIdx.x < 200) WarpSum(1);
                    }),
            "a shuffle that not all lanes of its warp reach");
  EXPECT_EQ(RunGrid(kOneBlock,
                    [] {
                      if (threadIdx.x == 7) {
                        __syncthreads();
                      } else {
                        WarpSum(1);
                      }
                    }),
            "a shuffle that not all lanes of its warp reach");
  EXPECT_EQ(RunGrid(kOneBlock, [] { __shfl_xor_sync(1, 0, 1); }), "a shuffle of some lanes");
}

TEST(EmulatedCardTest, AWarpsSumIsEveryLanes) {
  int wrong = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Launch launch = kOneBlock;
    launch.seed = seed;
    EXPECT_EQ(RunGrid(launch,
                      [&] {
                        const float warp = static_cast<float>(threadIdx.x / 32);
                        for (float round = 1; round < 5; ++round) {
                          if (WarpSum(round * (warp + static_cast<float>(threadIdx.x % 32))) != round * (32 * warp + 496))
                            ++wrong;
                        }
                      }),
              "");
  }
  EXPECT_EQ(wrong, 0);
}

TEST(EmulatedCardTest, AnAccessThatIsNotAlignedIsSaid) {
  alignas(16) BFloat16Bits memory[16] = {};
  EXPECT_EQ(RunGrid(kOneBlock, [&] { Load(memory + 8); }), "");
  EXPECT_EQ(RunGrid(kOneBlock, [&] { Load(memory + 4); }), "a 16-byte access that is not aligned");
  EXPECT_EQ(RunGrid(kOneBlock, [&] { Store(memory + 1, Pack<BFloat16Bits>()); }), "a 16-byte access that is not aligned");
}

TEST(EmulatedCardTest, WhatNotEveryCardHasIsSaid) {
  EXPECT_EQ(RunGrid({.block = {1025}}, [] {}), "a block of 1025 threads");
  EXPECT_EQ(RunGrid({.block = {32}, .shared_bytes = 49153}, [] {}), "49153 bytes of shared memory");
}

TEST(EmulatedCardTest, EachThreadOfTheHostHasACardOfItsOwn) {
  const auto work = [](int* sum) {
    for (int again = 0; again < 20; ++again) {
      RunGrid(kOneBlock, [sum] {
        if (threadIdx.x == 0) ++*sum;
        __syncthreads();
        WarpSum(1);
      });
    }
  };
  int here = 0, there = 0;
  std::thread other(work, &there);
  work(&here);
  other.join();
  EXPECT_EQ(here, 20);
  EXPECT_EQ(there, 20);
}

}  // namespace
}  // namespace motley::kernels
