// All-reduces of values drawn by a seed, against sums in float64, and against each other to the last bit.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "tests/worker/engine/transport/typed_values.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// One for all ranks of a process. Thread-safe.
class AllReduceCheck {
 public:
  // Sums what each member draws by the seed and its rank. Each call of a rank has another seed. The call's status.
  absl::Status Sum(Communicator& communicator, int group, const std::vector<int>& members, DType dtype, int64_t elements,
                   unsigned seed) {
    std::vector<char> array = Drawn(dtype, elements, seed, communicator.rank());
    const absl::Status status = communicator.AllReduce(group, array.data(), dtype, elements);
    if (!status.ok()) return status;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [at, is_first] = sums_.try_emplace(seed, array);
    if (!is_first) {
      EXPECT_TRUE(at->second == array) << "all-reduce of " << elements << " " << DTypeName(dtype) << ": another sum on rank "
                                       << communicator.rank();
      return status;
    }
    std::vector<std::vector<char>> brought;
    for (const int r : members) brought.push_back(Drawn(dtype, elements, seed, r));
    for (int64_t i = 0; i < elements; ++i) {
      const SumWithBound sum = SumOfValues(dtype, brought, i);
      EXPECT_NEAR(ValueAt(dtype, array, i), sum.sum, sum.bound) << "all-reduce of " << DTypeName(dtype) << ", element " << i;
      if (testing::Test::HasFailure()) break;
    }
    return status;
  }

 private:
  static std::vector<char> Drawn(DType dtype, int64_t elements, unsigned seed, int rank) {
    return RandomValues(dtype, elements, 31 * seed + static_cast<unsigned>(rank));
  }

  std::mutex mutex_;
  std::map<unsigned, std::vector<char>> sums_;  // by seed
};

inline constexpr DType kSummedTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};

// Sums of all types, of few and many elements, in all groups.
inline void CheckAllReduces(AllReduceCheck* check, Communicator& communicator, const std::vector<std::vector<int>>& groups) {
  unsigned seed = 0;
  for (const DType dtype : kSummedTypes) {
    for (const int64_t elements : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{1000}, int64_t{150'001}}) {
      for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
        ++seed;
        if (std::count(groups[g].begin(), groups[g].end(), communicator.rank()) == 0) continue;
        ASSERT_EQ(check->Sum(communicator, g, groups[g], dtype, elements, seed), absl::OkStatus());
      }
    }
  }
}

}  // namespace motley::engine
