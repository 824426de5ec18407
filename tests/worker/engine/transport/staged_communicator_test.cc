#include "worker/engine/transport/staged_communicator.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/worker/engine/lanes/fake_device_memory.h"
#include "tests/worker/engine/transport/all_reduce_check.h"
#include "tests/worker/engine/transport/ranks.h"

namespace motley::engine {
namespace {

// A rank on a card that is not there: copies to and from it come late.
struct Card {
  explicit Card(unsigned seed) : device(seed) {
    for (auto& stream : streams) stream = device.MakeStream();
  }
  void Describe(CommunicatorOptions& options) {
    for (size_t lane = 0; lane < kNumLanes; ++lane) options.streams[lane] = streams[lane]->handle();
    options.memory = &memory;
  }

  FakeStreamDevice device;
  std::array<std::unique_ptr<DeviceStream>, kNumLanes> streams;
  FakeDeviceMemory memory;
};

// Half of the ranks are on cards, the others are CPUs.
class StagedCommunicatorTest : public testing::Test {
 protected:
  static constexpr int kWorld = 4;

  template <typename Body>
  void OnCardsAndCpus(std::vector<std::vector<int>> groups, Body body) {
    std::vector<std::unique_ptr<Card>> cards;
    for (int r = 0; r < kWorld; ++r) cards.push_back(r % 2 == 0 ? std::make_unique<Card>(r) : nullptr);
    WithRanks(kWorld, {}, body, [&](CommunicatorOptions& options) {
      if (!groups.empty()) options.groups = groups;
      EverybodyHandsOver(options);
      if (cards[options.rank] != nullptr) cards[options.rank]->Describe(options);
    });
    for (const auto& card : cards) {
      if (card == nullptr) continue;
      EXPECT_GT(card->memory.copies(), 0);
      EXPECT_EQ(card->memory.live(), 0);
    }
  }
};

TEST_F(StagedCommunicatorTest, CardsAndCpusSumTogether) {
  const std::vector<std::vector<int>> groups = {EveryRank(kWorld), {0, 1}, {2, 3}, {2, 0}};
  std::mt19937 random(5);
  std::vector<std::pair<int64_t, std::vector<Owners>>> rounds;
  for (int i = 0; i < 12; ++i) {
    auto& [elements, owners] = rounds.emplace_back(1 + static_cast<int64_t>(random() % 20'000), std::vector<Owners>());
    for (const auto& members : groups) owners.push_back(RandomOwners(random, static_cast<int>(members.size()), elements));
  }
  OnCardsAndCpus(groups, [&](int rank, Communicator& communicator) {
    for (size_t i = 0; i < rounds.size(); ++i) {
      const auto& [elements, owners] = rounds[i];
      for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
        if (std::count(groups[g].begin(), groups[g].end(), rank) == 0) continue;
        CheckGroup<float>(communicator, g, groups[g], DType::kFloat32, owners[g], elements, static_cast<int>(i));
        CheckGroup<double>(communicator, g, groups[g], DType::kFloat64, owners[g], elements, static_cast<int>(i));
      }
    }
  });
}

TEST_F(StagedCommunicatorTest, AnAllReduceIsTheSameOnCardsAndCpus) {
  const std::vector<std::vector<int>> groups = {EveryRank(kWorld), {0, 1}, {3, 2, 0}, {2}};
  AllReduceCheck check;
  OnCardsAndCpus(groups, [&](int, Communicator& communicator) { CheckAllReduces(&check, communicator, groups); });
}

TEST_F(StagedCommunicatorTest, HandsOverBetweenCardsAndCpus) {
  OnCardsAndCpus({}, [&](int rank, Communicator& communicator) {
    for (int from = 0; from < kWorld; ++from) {
      for (int to = 0; to < kWorld; ++to) {
        if (from == to) continue;
        const std::vector<float> sent = Contribution<float>(from, 5'000, to);
        const auto bytes = static_cast<int64_t>(sent.size() * sizeof(float));
        if (rank == from) {
          ASSERT_EQ(communicator.Send(to, sent.data(), bytes), absl::OkStatus());
        }
        if (rank != to) continue;
        std::vector<float> got(sent.size());
        ASSERT_EQ(communicator.Receive(from, got.data(), bytes), absl::OkStatus());
        EXPECT_EQ(got, sent);
      }
    }
  });
}

TEST_F(StagedCommunicatorTest, AGroupThatIsNoneIsNamed) {
  OnCardsAndCpus({}, [&](int rank, Communicator& communicator) {
    float value = 0;
    EXPECT_EQ(communicator.AllGather(3, &value, DType::kFloat32, {{}}).code(), absl::StatusCode::kInternal);
    EXPECT_EQ(communicator.ReduceScatter(0, &value, DType::kFloat32, {{}}).code(), absl::StatusCode::kInternal);
    EXPECT_EQ(communicator.AllReduce(3, &value, DType::kFloat32, 1).code(), absl::StatusCode::kInternal);
    const std::vector<int64_t> bounds = {0, 0, 0, 0, 1};
    EXPECT_EQ(communicator.ReduceScatter(0, &value, DType::kFloat32, OwnersOf(bounds)), absl::OkStatus());
  });
}

}  // namespace
}  // namespace motley::engine
