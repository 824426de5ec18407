#include "worker/engine/base/memory.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/engine/base/torch_pch.h"

namespace motley::engine {
namespace {

// The cap is the process's: each test leaves none behind.
class MemoryTest : public ::testing::Test {
 protected:
  void SetUp() override { InstallMemoryLimit(0); }
  void TearDown() override { InstallMemoryLimit(0); }
};

TEST_F(MemoryTest, CountsWhatTensorsHoldAndForgetsWhatIsFreed) {
  const int64_t before = CurrentBytes();
  ResetPeak();
  {
    const at::Tensor a = at::empty({1000}, at::kFloat);
    const at::Tensor view = a.narrow(0, 10, 100);
    EXPECT_EQ(CurrentBytes() - before, 4000);
    const at::Tensor b = at::empty({10}, at::kDouble);
    EXPECT_EQ(CurrentBytes() - before, 4080);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data_ptr()) % 64, 0u);
  }
  EXPECT_EQ(CurrentBytes(), before);
  EXPECT_EQ(PeakBytes() - before, 4080);
  ResetPeak();
  EXPECT_EQ(PeakBytes(), before);
}

TEST_F(MemoryTest, EmptyTensorsCostNothing) {
  const int64_t before = CurrentBytes();
  const at::Tensor empty = at::empty({0}, at::kFloat);
  EXPECT_EQ(CurrentBytes(), before);
}

TEST_F(MemoryTest, AllocationOverTheCapFailsNamingDeviceBytesAndCap) {
  const int64_t cap = CurrentBytes() + 4096;
  InstallMemoryLimit(cap, "n1/gpu0");
  const int64_t before = CurrentBytes();
  const at::Tensor fits = at::empty({1024}, at::kFloat);
  try {
    at::empty({1}, at::kFloat);
    FAIL() << "the allocation over the cap succeeded";
  } catch (const c10::OutOfMemoryError& error) {
    const std::string text = error.what_without_backtrace();
    EXPECT_THAT(text, ::testing::HasSubstr("n1/gpu0"));
    EXPECT_THAT(text, ::testing::HasSubstr("asked for 4 bytes"));
    EXPECT_THAT(text, ::testing::HasSubstr(std::to_string(cap) + " bytes"));
  }
  EXPECT_EQ(CurrentBytes() - before, 4096);
}

TEST_F(MemoryTest, WorksAgainAfterARefusal) {
  InstallMemoryLimit(CurrentBytes() + 100, "n1/gpu0");
  EXPECT_THROW(at::empty({1000}, at::kFloat), c10::Error);
  EXPECT_NO_THROW(at::empty({25}, at::kFloat));
}

}  // namespace
}  // namespace motley::engine
