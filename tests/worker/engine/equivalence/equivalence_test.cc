// Random plans train like one device: every step's numbers, and every array of every checkpoint.
#include "tests/worker/engine/equivalence/equivalence.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/worker/engine/equivalence/shrink.h"

namespace motley::engine {
namespace {

constexpr uint64_t kSeed = 1;
constexpr int kPlansOfOne = 6, kHalfPlansOfOne = 4;

// Several tests, so that they can run side by side.
class EquivalenceTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { WriteTinyText(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Check(int n, bool half) {
    const PlannedJob planned = DrawPlannedJob(kSeed, n, folder_, half);
    const auto complaint = [&](const PlannedJob& p) { return equivalence_.Complaint(p, kSeed + n); };
    const std::string found = complaint(planned);
    if (found.empty()) return;
    const PlannedJob smallest = Shrink(planned, [&](const PlannedJob& p) { return !complaint(p).empty(); });
    ADD_FAILURE() << "plan " << n << ": " << found << "\n"
                  << ToText(planned) << "\nthe smallest like it: " << complaint(smallest) << "\n"
                  << ToText(smallest);
  }

  Equivalence equivalence_;
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("equivalence_test-" + std::to_string(getpid()));
};

TEST_P(EquivalenceTest, PlansTrainLikeOneDevice) {
  for (int n = GetParam() * kPlansOfOne; n < (GetParam() + 1) * kPlansOfOne; ++n) Check(n, /*half=*/false);
}

INSTANTIATE_TEST_SUITE_P(Plans, EquivalenceTest, testing::Range(0, 10));

using HalfEquivalenceTest = EquivalenceTest;

TEST_P(HalfEquivalenceTest, PlansTrainLikeOneDevice) {
  for (int n = GetParam() * kHalfPlansOfOne; n < (GetParam() + 1) * kHalfPlansOfOne; ++n) Check(n, /*half=*/true);
}

INSTANTIATE_TEST_SUITE_P(Plans, HalfEquivalenceTest, testing::Range(0, 4));

}  // namespace
}  // namespace motley::engine
