#include "worker/engine/base/memory.h"

#include <string>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
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
