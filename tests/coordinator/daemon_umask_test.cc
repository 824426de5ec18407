#include "coordinator/daemon_umask.h"

#include <gtest/gtest.h>

namespace motley::coordinator {
namespace {

TEST(DaemonUmask, TakesFromOthersAndNothingFromItself) {
  EXPECT_EQ(DaemonUmask(0022), 0066u);
  EXPECT_EQ(DaemonUmask(0077), 0077u);
  EXPECT_EQ(DaemonUmask(0777), 0077u) << "its own store could not be opened at the next start";
}

}  // namespace
}  // namespace motley::coordinator
