// What of a job's reason is in the coordinator's log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "common/base/logging.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ReasonTest : public CoreTest {
 protected:
  // The lines that these reasons of one job, one behind the other, leave in the log.
  std::vector<std::string> LinesOf(const std::vector<std::string>& reasons) {
    AddRun("j");
    testing::internal::CaptureStderr();
    InitLogging("motley-test", LogLevel::kInfo);
    for (const std::string& reason : reasons) core_->SetReason(core_->state.jobs.at(JobId("j")), reason);
    FlushLog();
    return absl::StrSplit(testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  }
};

TEST_F(ReasonTest, ASentenceWithOtherNumbersIsLoggedOnce) {
  EXPECT_THAT(LinesOf({"training", "training; b/gpu0 slows the job down: in 15 of 15 steps, 13 s, predicted 3 s",
                       "training; b/gpu0 slows the job down: in 16 of 16 steps, 12.5 s, predicted 3 s",
                       "training; b/gpu0 slows the job down: in 17 of 17 steps, 12 s, predicted 3 s",
                       "training; c/gpu0 slows the job down: in 17 of 17 steps, 12 s, predicted 3 s", "training"}),
              ElementsAre(HasSubstr(": training"), HasSubstr("in 15 of 15"), HasSubstr("c/gpu0"), HasSubstr(": training")));
  EXPECT_EQ(core_->state.jobs.at(JobId("j")).reason, "training");
}

TEST_F(ReasonTest, PeopleSeeTheNewestNumbers) {
  LinesOf({"in 15 of 15 steps", "in 16 of 16 steps"});
  EXPECT_EQ(core_->state.jobs.at(JobId("j")).reason, "in 16 of 16 steps");
}

}  // namespace
}  // namespace motley::coordinator
