// Random groups, owners, types and costs over the fake NCCL, slow and late by lot, against sums in float64; aborts among them.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/worker/engine/nccl/card_ranks.h"
#include "tests/worker/engine/transport/all_reduce_check.h"

namespace motley::engine {
namespace {

constexpr int kJobs = 100, kRounds = 10;  // each an all-gather, a reduce-scatter and an all-reduce: 3,000 collectives

struct Round {
  int group = 0;
  DType dtype = DType::kFloat32;
  int64_t elements = 0;
  Owners owners;
  unsigned seed = 0;
};

struct Job {
  int world = 0;
  std::vector<std::vector<int>> groups;
  std::vector<Round> rounds;
  NcclCosts costs;
  int aborts = -1, aborts_before = -1;  // rank and round
};

Job DrawJob(std::mt19937& random) {
  Job job;
  job.world = 2 + static_cast<int>(random() % 4);
  const int groups = 1 + static_cast<int>(random() % 3);
  for (int g = 0; g < groups; ++g) {
    std::vector<int> members = EveryRank(job.world);
    std::shuffle(members.begin(), members.end(), random);
    members.resize(g == 0 ? members.size() : 1 + random() % members.size());
    job.groups.push_back(members);
  }
  for (int i = 0; i < kRounds; ++i) {
    Round round;
    round.group = static_cast<int>(random() % job.groups.size());
    round.dtype = std::array{DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}[random() % 4];
    round.elements = 1 + static_cast<int64_t>(random() % 2000);
    const int members = static_cast<int>(job.groups[round.group].size());
    // Every third time even pieces, which the other draw would hardly ever give.
    std::vector<int64_t> bounds(members + 1);
    for (int m = 0; m <= members; ++m) bounds[m] = round.elements * m;
    if (random() % 3 == 0) {
      round.owners = OwnersOf(bounds);
      round.elements *= members;
    } else {
      round.owners = RandomOwners(random, members, round.elements);
    }
    round.seed = static_cast<unsigned>(random());
    job.rounds.push_back(round);
  }
  // Calls that cost more are padded more often.
  job.costs.seconds_per_call = random() % 2 == 0 ? 1e-3 : 1e-6;
  if (random() % 5 == 0) {
    job.aborts = static_cast<int>(random() % job.world);
    job.aborts_before = static_cast<int>(random() % kRounds);
  }
  return job;
}

std::vector<char> Brought(const Round& round, int rank) {
  return RandomValues(round.dtype, round.elements, round.seed + static_cast<unsigned>(rank));
}

void CheckGathered(const Job& job, const Round& round, int rank, const std::vector<char>& array) {
  const std::vector<int>& members = job.groups[round.group];
  const std::vector<char> own = Brought(round, rank);
  std::vector<char> expected = own;  // what nobody owns is not touched
  const int64_t element_bytes = SizeOfBytes(round.dtype);
  for (size_t m = 0; m < members.size(); ++m) {
    const std::vector<char> theirs = Brought(round, members[m]);
    for (const ElementRange& range : round.owners[m]) {
      std::copy(theirs.begin() + range.begin * element_bytes, theirs.begin() + range.end * element_bytes,
                expected.begin() + range.begin * element_bytes);
    }
  }
  ASSERT_TRUE(array == expected) << "all-gather of " << round.elements << " " << DTypeName(round.dtype) << " on rank " << rank;
}

void CheckSummed(const Job& job, const Round& round, int rank, const std::vector<char>& array) {
  const std::vector<int>& members = job.groups[round.group];
  std::vector<std::vector<char>> brought;
  for (const int r : members) brought.push_back(Brought(round, r));
  const size_t member = static_cast<size_t>(std::find(members.begin(), members.end(), rank) - members.begin());
  for (const ElementRange& range : round.owners[member]) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      const SumWithBound sum = SumOfValues(round.dtype, brought, i);
      ASSERT_NEAR(ValueAt(round.dtype, array, i), sum.sum, sum.bound)
          << "reduce-scatter of " << round.elements << " " << DTypeName(round.dtype) << " on rank " << rank << ", element " << i;
    }
  }
}

// False: the communicator is dead, as is allowed where a rank aborts.
bool RunRound(const Job& job, const Round& round, CardRank& one, AllReduceCheck* all_reduces) {
  const std::vector<int>& members = job.groups[round.group];
  if (std::count(members.begin(), members.end(), one.rank) == 0) return true;
  std::vector<char> array = Brought(round, one.rank);
  absl::Status status = one.communicator().AllGather(round.group, array.data(), round.dtype, round.owners);
  if (status.ok()) CheckGathered(job, round, one.rank, array);
  if (status.ok()) {
    array = Brought(round, one.rank);
    status = one.communicator().ReduceScatter(round.group, array.data(), round.dtype, round.owners);
    if (status.ok()) CheckSummed(job, round, one.rank, array);
  }
  if (status.ok()) {
    status = all_reduces->Sum(one.communicator(), round.group, members, round.dtype, round.elements, round.seed);
  }
  if (status.ok()) return true;
  EXPECT_GE(job.aborts, 0) << status;
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  return false;
}

TEST(NcclRandom, EqualsSumsInFloat64) {
  int aborted = 0;
  for (int j = 0; j < kJobs; ++j) {
    std::mt19937 random(static_cast<unsigned>(j));
    const Job job = DrawJob(random);
    aborted += job.aborts >= 0 ? 1 : 0;
    TheFakeNccl().Reset();
    const FakeNcclBehaviour behaviour{
        .in_progress_polls = j % 4, .latest_us = j % 2 == 0 ? 0 : 300, .seed = static_cast<uint32_t>(j)};
    TheFakeNccl().Behave(&behaviour);
    AllReduceCheck all_reduces;
    WithCards(
        job.world,
        [&](CardRank& one) {
          ASSERT_TRUE(one.connected.ok()) << one.connected.status();
          HealthWatch watch(one.communicator());
          for (int i = 0; i < kRounds; ++i) {
            if (one.rank == job.aborts && i == job.aborts_before) one.communicator().Abort("told to");
            if (!RunRound(job, job.rounds[i], one, &all_reduces)) break;
          }
          // Nobody leaves before all are done, or an abort would find nobody.
          EXPECT_EQ(one.communicator().GatherScalars({0}).ok(), job.aborts < 0);
          if (job.aborts < 0) EXPECT_EQ(watch.FirstError(), absl::OkStatus());
        },
        [&](CommunicatorOptions& options) {
          options.groups = job.groups;
          options.nccl.costs = job.costs;
        });
    if (testing::Test::HasFailure()) FAIL() << "job " << j;
  }
  TheFakeNccl().Reset();
  EXPECT_GE(aborted, kJobs / 10);
}

}  // namespace
}  // namespace motley::engine
