#include "worker/daemon/child_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::worker {
namespace {

TEST(ChildEnvironment, HoldsWhatIsListedAndNothingElse) {
  const char* const environment[] = {
      "PATH=/bin",        "AWS_SECRET_ACCESS_KEY=x", "LC_ALL=C", "OMP_NUM_THREADS=2", "LD_PRELOAD=/tmp/x.so",
      "NOTIFY_SOCKET=/x", "MOTLEY_TEST=a=b",         "odd",      "PATHS=1",           nullptr};
  EXPECT_THAT(ChildEnvironment(environment),
              testing::ElementsAre("PATH=/bin", "LC_ALL=C", "OMP_NUM_THREADS=2", "MOTLEY_TEST=a=b"));
}

}  // namespace
}  // namespace motley::worker
