// Plans whose ranks, threads of this process, share one real card: through the host's memory, random ones by NCCL, too.
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/worker/engine/device/card.h"
#include "tests/worker/engine/equivalence/equivalence.h"

namespace motley::engine {
namespace {

constexpr uint64_t kSeed = 1;

class CardPlansTest : public CardTest {
 protected:
  void SetUp() override {
    setenv("MOTLEY_NCCL_LIBRARY", "/none", /*overwrite=*/1);
    CardTest::SetUp();
    WriteTinyText(folder_);
  }
  void TearDown() override {
    unsetenv("MOTLEY_NCCL_LIBRARY");
    std::filesystem::remove_all(folder_);
  }
  static int64_t FreeBytes() {
    c10::cuda::CUDACachingAllocator::emptyCache();
    size_t free = 0, total = 0;
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    return static_cast<int64_t>(free);
  }
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("card_plans_test-" + std::to_string(getpid()));
};

class RandomCardPlansTest : public CardPlansTest, public testing::WithParamInterface<int> {
 protected:
  void TrainsLikeOneHost() {
    Equivalence equivalence(Devices::kOneCard);
    const PlannedJob planned = DrawPlannedJob(kSeed, GetParam(), folder_);
    EXPECT_EQ(equivalence.Complaint(planned, kSeed + GetParam()), "") << ToText(planned);
  }
};

TEST_P(RandomCardPlansTest, TrainLikeOneHostThroughTheHostsMemory) { TrainsLikeOneHost(); }
TEST_P(RandomCardPlansTest, TrainLikeOneHostByNccl) {
  unsetenv("MOTLEY_NCCL_LIBRARY");
  TrainsLikeOneHost();
}
INSTANTIATE_TEST_SUITE_P(Thirty, RandomCardPlansTest, testing::Range(0, 30));

TEST_F(CardPlansTest, ACardBesideACpuTrainsTheSame) {
  Equivalence equivalence(Devices::kOneCardAndHosts);
  for (int n = 0; n < 6; ++n) {
    const PlannedJob planned = DrawPlannedJob(kSeed, n, folder_);
    EXPECT_EQ(equivalence.Complaint(planned, kSeed + n), "") << "plan " << n << "\n" << ToText(planned);
  }
}

TEST_F(CardPlansTest, AHundredEpochsLeaveNothingOnTheCard) {
  Equivalence equivalence(Devices::kOneCard);
  const PlannedJob planned = DrawPlannedJob(kSeed, 0, folder_);
  ASSERT_EQ(equivalence.Complaint(planned, kSeed), "");  // libraries keep some memory from their first use on
  const int64_t before = FreeBytes();
  for (int epoch = 0; epoch < 100; ++epoch) ASSERT_EQ(equivalence.Complaint(planned, kSeed), "");
  EXPECT_GE(FreeBytes(), before - (int64_t{4} << 20));
}

}  // namespace
}  // namespace motley::engine
