#include "worker/engine/base/memory.h"

#include <string>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/engine/base/counted_pass.h"
#include "worker/engine/base/torch_pch.h"

namespace motley::engine {
namespace {

class MemoryTest : public ::testing::Test {
 protected:
  MemoryTest() { InstallCounting(); }

  const MemoryAccountPtr account_ = std::make_shared<MemoryAccount>();
};

TEST_F(MemoryTest, CountsWhatTensorsHoldAndForgetsWhatIsFreed) {
  const CountingIn counting(account_);
  {
    const at::Tensor a = at::empty({1000}, at::kFloat);
    const at::Tensor view = a.narrow(0, 10, 100);
    EXPECT_EQ(account_->current_bytes(), 4000);
    const at::Tensor b = at::empty({10}, at::kDouble);
    EXPECT_EQ(account_->current_bytes(), 4080);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data_ptr()) % 64, 0u);
  }
  EXPECT_EQ(account_->current_bytes(), 0);
  EXPECT_EQ(account_->peak_bytes(), 4080);
  account_->ResetPeak();
  EXPECT_EQ(account_->peak_bytes(), 0);
}

at::Tensor Bytes(int64_t bytes) { return at::empty({bytes}, at::kByte); }

TEST_F(MemoryTest, CountsByPurposeAndFreedBytesLeaveTheirs) {
  const CountingIn counting(account_);
  at::Tensor parameters, freed_elsewhere;
  {
    const CountingAs as(MemoryPurpose::kParameters);
    parameters = Bytes(1000);
    const CountingAs within(MemoryPurpose::kSlots);
    freed_elsewhere = Bytes(100);
  }
  const at::Tensor told_nothing = Bytes(10);
  EXPECT_EQ(account_->most(), (MemoryByPurpose{.parameters = 1000, .slots = 100, .workspace = 10}));
  std::thread([&freed_elsewhere] {
    const CountingAs as(MemoryPurpose::kGradients);
    freed_elsewhere.reset();
  }).join();
  account_->ResetPeak();
  EXPECT_EQ(account_->most(), (MemoryByPurpose{.parameters = 1000, .workspace = 10}));
}

// It makes 8 and 2, keeps 8 of them beside 32 that it found, of which it frees 16 before it makes the last.
TEST_F(MemoryTest, APassKeepsBesideWhatItFoundAndTheRestIsItsWorkspace) {
  const CountingIn counting(account_);
  at::Tensor found, other, kept;
  {
    const CountingAs as(MemoryPurpose::kBoundaries);
    found = Bytes(16), other = Bytes(16);
  }
  {
    CountedPass pass;
    kept = Bytes(8);
    { const at::Tensor temporary = Bytes(2); }
    found.reset();
    { const at::Tensor temporary = Bytes(12); }
    pass.Keep(kept, MemoryPurpose::kBoundaries);
    pass.Keep(other, MemoryPurpose::kSaved);
    pass.Keep(at::Tensor(), MemoryPurpose::kSaved);
  }
  EXPECT_EQ(account_->most(), (MemoryByPurpose{.boundaries = 40, .saved = 16, .workspace = 2}))
      << "12 were made where 16 had been freed";
  account_->ResetPeak();
  EXPECT_EQ(account_->most(), (MemoryByPurpose{.boundaries = 8, .saved = 16}));
  EXPECT_EQ(account_->current_bytes(), 24);
}

// It uses 32 up, and keeps 8 in their place.
TEST_F(MemoryTest, WhatAPassKeepsInPlaceOfWhatItUsesUpIsItsWorkspaceUntilItsEnd) {
  const CountingIn counting(account_);
  at::Tensor used, kept;
  {
    const CountingAs as(MemoryPurpose::kSaved);
    used = Bytes(32);
  }
  {
    CountedPass pass;
    kept = Bytes(8);
    used.reset();
    pass.KeepInPlace(kept, MemoryPurpose::kSaved);
  }
  EXPECT_EQ(account_->most(), (MemoryByPurpose{.saved = 32, .workspace = 8}));
  account_->ResetPeak();
  EXPECT_EQ(account_->most(), (MemoryByPurpose{.saved = 8}));
}

TEST_F(MemoryTest, APassLeavesStateToItsPurposeAndWhatItForgetsToWorkspace) {
  const CountingIn counting(account_);
  at::Tensor slot, forgotten;
  {
    const CountingAs as(MemoryPurpose::kSlots);
    slot = Bytes(64);
  }
  {
    CountedPass pass;
    forgotten = Bytes(4);
    pass.Keep(slot.narrow(0, 8, 8), MemoryPurpose::kBoundaries);
    pass.Keep(at::from_blob(slot.mutable_data_ptr(), {8}, at::kByte), MemoryPurpose::kSaved);
  }
  account_->ResetPeak();
  EXPECT_EQ(account_->most(), (MemoryByPurpose{.slots = 64, .workspace = 4}));
  forgotten.reset();
  account_->ResetPeak();
  EXPECT_EQ(account_->most(), (MemoryByPurpose{.slots = 64}));
}

TEST_F(MemoryTest, EmptyTensorsCostNothing) {
  const CountingIn counting(account_);
  const at::Tensor empty = at::empty({0}, at::kFloat);
  EXPECT_EQ(account_->current_bytes(), 0);
}

TEST_F(MemoryTest, AllocationOverTheCapFailsNamingDeviceBytesAndCap) {
  const CountingIn counting(account_);
  account_->SetLimit(4096, "n1/gpu0");
  const at::Tensor fits = at::empty({1024}, at::kFloat);
  try {
    at::empty({1}, at::kFloat);
    FAIL() << "the allocation over the cap succeeded";
  } catch (const c10::OutOfMemoryError& error) {
    const std::string text = error.what_without_backtrace();
    EXPECT_THAT(text, ::testing::HasSubstr("n1/gpu0"));
    EXPECT_THAT(text, ::testing::HasSubstr("asked for 4 bytes"));
    EXPECT_THAT(text, ::testing::HasSubstr("4096 bytes in use"));
  }
  EXPECT_EQ(account_->current_bytes(), 4096);
}

TEST_F(MemoryTest, WorksAgainAfterARefusal) {
  const CountingIn counting(account_);
  account_->SetLimit(100, "n1/gpu0");
  EXPECT_THROW(at::empty({1000}, at::kFloat), c10::Error);
  EXPECT_NO_THROW(at::empty({25}, at::kFloat));
}

TEST_F(MemoryTest, ThreadsCountWhereTheyWereTold) {
  const auto other = std::make_shared<MemoryAccount>();
  const CountingIn counting(account_);
  other->SetLimit(100, "n1/gpu0");
  at::Tensor theirs;
  std::thread thread([&] {
    CountIn(other);
    theirs = at::empty({10}, at::kFloat);
    EXPECT_THROW(at::empty({1000}, at::kFloat), c10::OutOfMemoryError) << "the other account's cap";
  });
  thread.join();
  const at::Tensor mine = at::empty({1000}, at::kFloat);
  EXPECT_EQ(other->current_bytes(), 40);
  EXPECT_EQ(account_->current_bytes(), 4000);
  theirs = at::Tensor();
  EXPECT_EQ(other->current_bytes(), 0) << "freed by a thread that counts elsewhere";
  EXPECT_EQ(account_->current_bytes(), 4000);
}

TEST_F(MemoryTest, ThreadsThatWereToldNothingCountInTheProcesss) {
  const CountingIn counting(account_);
  std::thread thread([] {
    const int64_t before = ProcessMemory()->current_bytes();
    const at::Tensor tensor = at::empty({10}, at::kFloat);
    EXPECT_EQ(ProcessMemory()->current_bytes() - before, 40);
  });
  thread.join();
  EXPECT_EQ(account_->current_bytes(), 0);
}

TEST_F(MemoryTest, AScopeGivesTheThreadBackToTheOneBefore) {
  const auto inner = std::make_shared<MemoryAccount>();
  const CountingIn counting(account_);
  {
    const CountingIn counting_inside(inner);
    at::empty({10}, at::kFloat);
  }
  at::empty({20}, at::kFloat);
  EXPECT_EQ(inner->peak_bytes(), 40);
  EXPECT_EQ(account_->peak_bytes(), 80);
}

TEST_F(MemoryTest, TensorsMayOutliveTheirDevice) {
  auto account = std::make_shared<MemoryAccount>();
  at::Tensor tensor;
  {
    const CountingIn counting(account);
    tensor = at::empty({10}, at::kFloat);
  }
  const std::weak_ptr<MemoryAccount> watched = account;
  account = nullptr;
  EXPECT_FALSE(watched.expired());
  tensor = at::Tensor();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace motley::engine
