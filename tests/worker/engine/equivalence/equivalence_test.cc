// Random plans train like one device: every step's numbers, and every array of every checkpoint.
#include "tests/worker/engine/equivalence/equivalence.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <tuple>

#include "tests/worker/engine/equivalence/shrink.h"
#include "tests/worker/engine/kernels/open_fake_kernels.h"
#include "tests/worker/engine/nccl/open_fake_nccl.h"

namespace motley::engine {
namespace {

constexpr uint64_t kSeed = 1;
constexpr int kPlansOfOne = 6, kHalfPlansOfOne = 4, kOffloadPlansOfOne = 3;

// Tests of plans, some of each kind of devices, type and draw.
auto Numbers(int daily, int all) { return testing::Range(0, NumPlans(daily, all)); }

using planner::ScheduleFamily;

class PlansTest {
 protected:
  explicit PlansTest(Devices devices) : equivalence_(devices) {
    WriteTinyText(folder_);
    WriteTinyRows(folder_);
  }
  ~PlansTest() { std::filesystem::remove_all(folder_); }

  void Check(int n, bool half, DrawJob draw = DrawPlannedJob) { Check(n, draw(kSeed, n, folder_, half)); }
  void Check(int n, const PlannedJob& planned) {
    const auto complaint = [&](const PlannedJob& p) { return equivalence_.Complaint(p, kSeed + n); };
    const std::string found = complaint(planned);
    if (found.empty()) return;
    const PlannedJob smallest = Shrink(planned, [&](const PlannedJob& p) { return !complaint(p).empty(); });
    ADD_FAILURE() << "plan " << n << ": " << found << "\n"
                  << ToText(planned) << "\nthe smallest like it: " << complaint(smallest) << "\n"
                  << ToText(smallest);
  }

  const std::filesystem::path& folder() const { return folder_; }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("equivalence_test-" + std::to_string(getpid()));
  Equivalence equivalence_;
};

// Several tests, so that they can run side by side.
class EquivalenceTest : public PlansTest, public testing::TestWithParam<std::tuple<Devices, int>> {
 protected:
  EquivalenceTest() : PlansTest(std::get<0>(GetParam())) {}
};

TEST_P(EquivalenceTest, PlansTrainLikeOneDevice) {
  const auto [devices, number] = GetParam();
  const int64_t calls_before = TheFakeNccl().Calls();
  for (int n = number * kPlansOfOne; n < (number + 1) * kPlansOfOne; ++n) Check(n, /*half=*/false);
  EXPECT_EQ(TheFakeNccl().Calls() > calls_before, devices == Devices::kCards || devices == Devices::kCardsAndHosts);
}

const char* NameOf(Devices devices) {
  switch (devices) {
    case Devices::kHosts:
      return "Hosts";
    case Devices::kCards:
      return "Cards";
    case Devices::kCardsOverTcp:
      return "CardsOverTcp";
    case Devices::kCardsAndHosts:
      return "CardsAndHosts";
    case Devices::kCardsWithKernels:
      return "CardsWithKernels";
    case Devices::kOneCard:
    case Devices::kOneCardAndHosts:
      break;  // card_plans_test.cc
  }
  return "";
}
std::string TestName(const testing::TestParamInfo<std::tuple<Devices, int>>& info) {
  return NameOf(std::get<0>(info.param)) + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Plans, EquivalenceTest,
                         testing::Combine(testing::Values(Devices::kHosts, Devices::kCards), Numbers(2, 10)), TestName);
INSTANTIATE_TEST_SUITE_P(SomePlans, EquivalenceTest,
                         testing::Combine(testing::Values(Devices::kCardsOverTcp, Devices::kCardsAndHosts), Numbers(1, 4)),
                         TestName);

// In bfloat16 and float16; hand-overs and gathers in these by NCCL, too.
class HalfEquivalenceTest : public PlansTest, public testing::TestWithParam<std::tuple<Devices, int>> {
 protected:
  HalfEquivalenceTest() : PlansTest(std::get<0>(GetParam())) {}
};

TEST_P(HalfEquivalenceTest, PlansTrainLikeOneDevice) {
  const int number = std::get<1>(GetParam());
  for (int n = number * kHalfPlansOfOne; n < (number + 1) * kHalfPlansOfOne; ++n) Check(n, /*half=*/true);
}

INSTANTIATE_TEST_SUITE_P(Plans, HalfEquivalenceTest,
                         testing::Combine(testing::Values(Devices::kHosts, Devices::kCards), Numbers(1, 4)), TestName);

// By kernels of our own, which know no float64, beside ranks without: a plan in half types and one in float32.
class OwnKernelsEquivalenceTest : public EquivalenceTest {};

TEST_P(OwnKernelsEquivalenceTest, PlansTrainLikeOneDevice) {
  const int number = std::get<1>(GetParam());
  const long before = FakeLaunches();
  Check(2 * number + 1, /*half=*/true);
  PlannedJob whole = DrawPlannedJob(kSeed, number, folder());
  whole.job.config.training.dtype = DTypeName(whole.plan.dtype = DType::kFloat32);
  Check(number, whole);
  EXPECT_GT(FakeLaunches(), before);
}

INSTANTIATE_TEST_SUITE_P(Plans, OwnKernelsEquivalenceTest,
                         testing::Combine(testing::Values(Devices::kCardsWithKernels), Numbers(1, 20)), TestName);

// Units of two to four ranks among them, their sums in TCP's rings or in NCCL's.
class TensorParallelEquivalenceTest : public EquivalenceTest {};

TEST_P(TensorParallelEquivalenceTest, PlansTrainLikeOneDevice) {
  const int number = std::get<1>(GetParam());
  for (int n = number * kPlansOfOne; n < (number + 1) * kPlansOfOne; ++n) Check(n, /*half=*/false, DrawTensorParallelJob);
}

INSTANTIATE_TEST_SUITE_P(Plans, TensorParallelEquivalenceTest, testing::Combine(testing::Values(Devices::kHosts), Numbers(3, 8)),
                         TestName);
INSTANTIATE_TEST_SUITE_P(SomePlans, TensorParallelEquivalenceTest,
                         testing::Combine(testing::Values(Devices::kCards, Devices::kCardsOverTcp, Devices::kCardsAndHosts),
                                          Numbers(1, 2)),
                         TestName);

class TensorParallelHalfEquivalenceTest : public HalfEquivalenceTest {};

TEST_P(TensorParallelHalfEquivalenceTest, PlansTrainLikeOneDevice) {
  const int number = std::get<1>(GetParam());
  for (int n = number * kHalfPlansOfOne; n < (number + 1) * kHalfPlansOfOne; ++n) Check(n, /*half=*/true, DrawTensorParallelJob);
}

INSTANTIATE_TEST_SUITE_P(Plans, TensorParallelHalfEquivalenceTest,
                         testing::Combine(testing::Values(Devices::kHosts), Numbers(1, 4)), TestName);
INSTANTIATE_TEST_SUITE_P(SomePlans, TensorParallelHalfEquivalenceTest,
                         testing::Combine(testing::Values(Devices::kCards), testing::Range(0, 1)), TestName);

// Two or three pipelines of unlike shape, two of three times with units of several ranks.
class SeveralPipelinesEquivalenceTest : public EquivalenceTest {};

TEST_P(SeveralPipelinesEquivalenceTest, PlansTrainLikeOneDevice) {
  const int number = std::get<1>(GetParam());
  for (int n = number * kPlansOfOne; n < (number + 1) * kPlansOfOne; ++n) Check(n, /*half=*/false, DrawSeveralPipelinesJob);
}

INSTANTIATE_TEST_SUITE_P(Plans, SeveralPipelinesEquivalenceTest,
                         testing::Combine(testing::Values(Devices::kHosts), Numbers(2, 10)), TestName);
INSTANTIATE_TEST_SUITE_P(SomePlans, SeveralPipelinesEquivalenceTest,
                         testing::Combine(testing::Values(Devices::kCards, Devices::kCardsAndHosts), Numbers(1, 2)), TestName);

// On packed rows: documents apart, some microbatches of which nothing counts.
class RowsEquivalenceTest : public EquivalenceTest {};

TEST_P(RowsEquivalenceTest, PlansTrainLikeOneDevice) {
  const int number = std::get<1>(GetParam());
  for (int n = number * kPlansOfOne; n < (number + 1) * kPlansOfOne; ++n) Check(n, /*half=*/false, DrawRowsJob);
}

INSTANTIATE_TEST_SUITE_P(Plans, RowsEquivalenceTest, testing::Combine(testing::Values(Devices::kHosts), Numbers(2, 8)), TestName);
INSTANTIATE_TEST_SUITE_P(SomePlans, RowsEquivalenceTest,
                         testing::Combine(testing::Values(Devices::kCards, Devices::kCardsAndHosts), Numbers(1, 2)), TestName);

class RowsHalfEquivalenceTest : public HalfEquivalenceTest {};

TEST_P(RowsHalfEquivalenceTest, PlansTrainLikeOneDevice) {
  const int number = std::get<1>(GetParam());
  for (int n = number * kHalfPlansOfOne; n < (number + 1) * kHalfPlansOfOne; ++n) Check(n, /*half=*/true, DrawRowsJob);
}

INSTANTIATE_TEST_SUITE_P(Plans, RowsHalfEquivalenceTest, testing::Combine(testing::Values(Devices::kHosts), Numbers(1, 4)),
                         TestName);

class SeveralPipelinesHalfEquivalenceTest : public HalfEquivalenceTest {};

TEST_P(SeveralPipelinesHalfEquivalenceTest, PlansTrainLikeOneDevice) {
  const int number = std::get<1>(GetParam());
  for (int n = number * kHalfPlansOfOne; n < (number + 1) * kHalfPlansOfOne; ++n) {
    Check(n, /*half=*/true, DrawSeveralPipelinesJob);
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, SeveralPipelinesHalfEquivalenceTest,
                         testing::Combine(testing::Values(Devices::kHosts), Numbers(1, 3)), TestName);

// What waits in host memory drawn by rank, units stepped in turn where they may be, with and without clipping.
class OffloadEquivalenceTest : public EquivalenceTest {
 protected:
  void CheckAll(DrawJob draw) {
    const int number = std::get<1>(GetParam());
    for (int n = number * kOffloadPlansOfOne; n < (number + 1) * kOffloadPlansOfOne; ++n) Check(n, /*half=*/false, draw);
  }
};

TEST_P(OffloadEquivalenceTest, PlansTrainLikeOneDevice) { CheckAll(DrawOffloading<DrawPlannedJob>); }

INSTANTIATE_TEST_SUITE_P(Plans, OffloadEquivalenceTest, testing::Combine(testing::Values(Devices::kHosts), Numbers(5, 67)),
                         TestName);
INSTANTIATE_TEST_SUITE_P(SomePlans, OffloadEquivalenceTest, testing::Combine(testing::Values(Devices::kCards), Numbers(1, 10)),
                         TestName);

class TensorParallelOffloadEquivalenceTest : public OffloadEquivalenceTest {};

TEST_P(TensorParallelOffloadEquivalenceTest, PlansTrainLikeOneDevice) { CheckAll(DrawOffloading<DrawTensorParallelJob>); }

INSTANTIATE_TEST_SUITE_P(Plans, TensorParallelOffloadEquivalenceTest,
                         testing::Combine(testing::Values(Devices::kHosts), Numbers(1, 14)), TestName);

class SeveralPipelinesOffloadEquivalenceTest : public OffloadEquivalenceTest {};

TEST_P(SeveralPipelinesOffloadEquivalenceTest, PlansTrainLikeOneDevice) { CheckAll(DrawOffloading<DrawSeveralPipelinesJob>); }

INSTANTIATE_TEST_SUITE_P(Plans, SeveralPipelinesOffloadEquivalenceTest,
                         testing::Combine(testing::Values(Devices::kHosts), Numbers(1, 14)), TestName);

// In float16 a step overflows on one rank: none applies it.
class OffloadHalfEquivalenceTest : public HalfEquivalenceTest {};

TEST_P(OffloadHalfEquivalenceTest, PlansTrainLikeOneDevice) {
  const int number = std::get<1>(GetParam());
  for (int n = number * kHalfPlansOfOne; n < (number + 1) * kHalfPlansOfOne; ++n) {
    Check(n, /*half=*/true, DrawOffloading<DrawPlannedJob>);
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, OffloadHalfEquivalenceTest, testing::Combine(testing::Values(Devices::kHosts), Numbers(1, 10)),
                         TestName);

// What nothing else needs less memory than: a ministage for each layer, the state sharded, everything recomputed, a sample at a
// time. One rank has a sample more than another, and a third stores only.
PlannedJob FrugalJob(ModelFamily family, ScheduleFamily schedule, const std::filesystem::path& folder) {
  PlannedJob planned;
  planned.job = MakeTinyJob(family, kTinySizes[0], DType::kFloat64, folder);
  planned.plan = OneDevicePlan(planned.job);
  planned.plan.schedule = schedule;
  planner::StagePlan& stage = planned.plan.pipelines[0].stages[0];
  stage.ministages.clear();
  for (int64_t layer = 0; layer < planned.job.model.num_layers; ++layer) stage.ministages.push_back({layer, layer});
  stage.zero_stage = 3;
  stage.units.resize(3, stage.units[0]);
  const int64_t more = planned.plan.global_batch / 2 + 1, samples[] = {more, planned.plan.global_batch - more, 0};
  for (size_t u = 0; u < stage.units.size(); ++u) {
    planner::RankPlan& rank = stage.units[u].ranks[0];
    rank.device = DeviceId("n" + std::to_string(u) + "/gpu0");
    rank.shard_ratio = u == 2 ? 0.5 : 0.25;
    rank.recompute = planner::OpSet::All();
    stage.units[u].microbatches.assign(static_cast<size_t>(samples[u]), 1);
  }
  return planned;
}

class FrugalEquivalenceTest : public PlansTest, public testing::TestWithParam<Devices> {
 protected:
  FrugalEquivalenceTest() : PlansTest(GetParam()) {}
};

TEST_P(FrugalEquivalenceTest, PlansTrainLikeOneDevice) {
  Check(0, FrugalJob(ModelFamily::kLlama, ScheduleFamily::k1F1B, folder()));
  Check(0, FrugalJob(ModelFamily::kGpt2, ScheduleFamily::k1F1B, folder()));
  Check(0, FrugalJob(ModelFamily::kGpt2, ScheduleFamily::kZeroBubble, folder()));
}

INSTANTIATE_TEST_SUITE_P(Plans, FrugalEquivalenceTest, testing::Values(Devices::kHosts, Devices::kCards),
                         [](const testing::TestParamInfo<Devices>& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace motley::engine
