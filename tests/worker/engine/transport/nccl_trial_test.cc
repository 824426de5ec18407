#include "worker/engine/transport/nccl_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/worker/engine/nccl/open_fake_nccl.h"

namespace motley::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class NcclTrialTest : public testing::Test {
 protected:
  void SetUp() override { fake_.Reset(); }
  void TearDown() override {
    EXPECT_EQ(fake_.LiveComms(), 0);
    EXPECT_EQ(memory_.live(), 0);
    fake_.Reset();
  }
  absl::Status Try(absl::Duration limit = absl::Seconds(20)) { return TryNccl(fake_.library, memory_, &stream_, limit); }

  const FakeNccl& fake_ = TheFakeNccl();
  HostMemory memory_;
  char stream_ = 0;
};

TEST_F(NcclTrialTest, SumsOnceAndLeavesNothing) {
  EXPECT_EQ(Try(), absl::OkStatus());
  EXPECT_EQ(fake_.Calls(), 1);
  EXPECT_GT(memory_.asked(), 0);
}

TEST_F(NcclTrialTest, SaysWhatNcclSaysTheCauseAndTheRemedy) {
  const FakeNcclBehaviour behaviour{.making_fails = ncclUnhandledCudaError,
                                    .words = "Cuda failure 35 'CUDA driver version is insufficient for CUDA runtime version'"};
  fake_.Behave(&behaviour);
  const absl::Status status = Try();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("libfake_nccl.so does not work on this machine's card"), HasSubstr("unhandled cuda error"),
                    HasSubstr("driver version is insufficient"), HasSubstr("likely cause: the NVIDIA driver is older"),
                    HasSubstr("install a newer driver")));
}

TEST_F(NcclTrialTest, OneThatNeverEndsIsGivenUp) {
  const FakeNcclBehaviour behaviour{.in_progress_polls = std::numeric_limits<int>::max()};
  fake_.Behave(&behaviour);
  const absl::Status status = Try(absl::Milliseconds(200));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("nothing came for 200ms"), HasSubstr("likely cause: ")));
}

TEST_F(NcclTrialTest, ACallThatHangsIsLeftBehind) {
  static absl::Notification over;
  const absl::Status status = EndsWithin(absl::Milliseconds(50), "the trial", [] {
    over.WaitForNotification();
    return absl::OkStatus();
  });
  over.Notify();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("the trial has not ended within 50ms; likely cause: "));
  EXPECT_EQ(EndsWithin(absl::Seconds(20), "it", [] { return absl::NotFoundError("x"); }), absl::NotFoundError("x"));
}

}  // namespace
}  // namespace motley::engine
