#include "worker/engine/transport/pinned_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "common/base/memory_shortage.h"

namespace motley::engine {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// A driver that pins so much and no more.
class FakeDriver {
 public:
  explicit FakeDriver(int64_t most = int64_t{1} << 40) : most_(most) {}

  PinnedMemory::Driver Calls() {
    return {[this](void* begin, int64_t bytes) {
              EXPECT_GT(bytes, 0);
              if (pinned_ + bytes > most_) return absl::ResourceExhaustedError("out of memory");
              parts_[begin] = bytes;
              largest_ = std::max(largest_, bytes);
              pinned_ += bytes;
              ++calls_;
              return absl::OkStatus();
            },
            [this](void* begin) {
              ASSERT_EQ(parts_.count(begin), 1u) << "nothing was pinned there";
              pinned_ -= parts_[begin];
              parts_.erase(begin);
            }};
  }

  int64_t pinned() const { return pinned_; }
  int64_t largest() const { return largest_; }
  int calls() const { return calls_; }

 private:
  const int64_t most_;
  std::map<void*, int64_t> parts_;
  int64_t pinned_ = 0, largest_ = 0;
  int calls_ = 0;
};

TEST(PinnedMemory, IsRegisteredInPiecesAndGivenBack) {
  FakeDriver driver;
  PinnedMemory memory(driver.Calls(), 4 * kMiB);
  const auto room = memory.Allocate(10 * kMiB);
  ASSERT_TRUE(room.ok()) << room.status();
  EXPECT_EQ(driver.calls(), 3);
  EXPECT_EQ(driver.largest(), 4 * kMiB);
  EXPECT_EQ(driver.pinned(), 10 * kMiB);
  static_cast<char*>(*room)[10 * kMiB - 1] = 1;
  memory.Free(*room);
  EXPECT_EQ(driver.pinned(), 0);
  memory.Free(*room);
}

TEST(PinnedMemory, WhatFitsInOnePieceIsOneCall) {
  FakeDriver driver;
  PinnedMemory memory(driver.Calls());
  const auto room = memory.Allocate(3 * kMiB + 5);
  ASSERT_TRUE(room.ok()) << room.status();
  EXPECT_EQ(driver.calls(), 1);
  memory.Free(*room);
}

TEST(PinnedMemory, NothingOfNoBytesIsRegistered) {
  FakeDriver driver;
  PinnedMemory memory(driver.Calls());
  const auto room = memory.Allocate(0);
  ASSERT_TRUE(room.ok()) << room.status();
  EXPECT_EQ(*room, nullptr);
  EXPECT_EQ(driver.calls(), 0);
  memory.Free(*room);
}

TEST(PinnedMemory, ACopyEndsAtABorderOfEitherEnd) {
  FakeDriver driver;
  PinnedMemory memory(driver.Calls(), 4 * kMiB);
  const auto one = memory.Allocate(10 * kMiB), other = memory.Allocate(10 * kMiB);
  ASSERT_TRUE(one.ok() && other.ok());
  char* const a = static_cast<char*>(*one);
  char* const b = static_cast<char*>(*other);
  char elsewhere = 0;
  EXPECT_EQ(memory.OfOneCopy(&elsewhere, a, 10 * kMiB), 4 * kMiB);
  EXPECT_EQ(memory.OfOneCopy(a, &elsewhere, 3 * kMiB), 3 * kMiB);
  EXPECT_EQ(memory.OfOneCopy(a + 3 * kMiB, &elsewhere, 3 * kMiB), kMiB);
  EXPECT_EQ(memory.OfOneCopy(a + 4 * kMiB, b + 2 * kMiB, 4 * kMiB), 2 * kMiB);
  EXPECT_EQ(memory.OfOneCopy(&elsewhere, &elsewhere, 100 * kMiB), 100 * kMiB);
  int64_t done = 0;
  std::vector<int64_t> parts;
  for (; done < 10 * kMiB; done += parts.back()) parts.push_back(memory.OfOneCopy(&elsewhere, a + done, 10 * kMiB - done));
  EXPECT_EQ(parts, (std::vector<int64_t>{4 * kMiB, 4 * kMiB, 2 * kMiB}));
  memory.Free(*one);
  memory.Free(*other);
}

TEST(PinnedMemory, WhatADriverRefusesIsUndoneAndSaysHowMuchWent) {
  FakeDriver driver(15 * kMiB / 2);
  PinnedMemory memory(driver.Calls(), 4 * kMiB);
  const auto room = memory.Allocate(8 * kMiB);
  ASSERT_EQ(room.status().code(), absl::StatusCode::kResourceExhausted) << room.status();
  const auto shortage = MemoryShortageOf(room.status());
  ASSERT_TRUE(shortage.has_value()) << room.status();
  EXPECT_EQ(shortage->tier, MemoryTier::kHost);
  EXPECT_EQ(shortage->held_bytes, 7 * kMiB) << "to a MiB";
  EXPECT_EQ(shortage->asked_bytes, 8 * kMiB);
  EXPECT_EQ(driver.pinned(), 0);
}

TEST(PinnedMemory, AnErrorThatIsNoShortageStaysItself) {
  PinnedMemory memory({[](void*, int64_t) { return absl::FailedPreconditionError("no such card"); }, [](void*) {}});
  const auto room = memory.Allocate(kMiB);
  EXPECT_EQ(room.status(), absl::FailedPreconditionError("no such card"));
}

}  // namespace
}  // namespace motley::engine
