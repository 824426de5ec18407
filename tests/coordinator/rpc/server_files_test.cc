// Who comes to the coordinator's files: the state is its own, the socket for people is its group's, too.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/server.h"
#include "tests/common/base/temp_folder.h"

namespace motley::coordinator {
namespace {

mode_t ModeOf(const std::string& path) {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 ? found.st_mode & 07777 : 0;
}

TEST(ServerFiles, TheSocketForPeopleHasAFolderOfItsOwn) {
  if (access("/run/motley", W_OK) == 0) GTEST_SKIP() << "the socket lies in the service's folder here, /run/motley";
  TempFolder folder;
  Config config;
  config.state_folder = folder / "state";
  config.workers_listen = "127.0.0.1:0";
  config.metrics.clear();
  const mode_t before = umask(0066);  // the daemon's
  const auto server = Server::Start(config);
  umask(before);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ((*server)->socket_address(), "unix:" + folder / "state/people/coordinator.sock");
  EXPECT_EQ(ModeOf(folder / "state"), 0710u) << "the group walks through it";
  EXPECT_EQ(ModeOf(folder / "state/people"), 0750u);
  EXPECT_EQ(ModeOf(folder / "state/people/coordinator.sock"), 0660u);
  EXPECT_EQ(ModeOf(folder / "state/coordinator.db"), 0600u);
}

TEST(ServerFiles, AFolderThatIsThereKeepsItsMode) {
  TempFolder folder;
  Config config;
  config.state_folder = folder / "state";
  config.socket = folder / "c.sock";
  config.workers_listen = "127.0.0.1:0";
  config.metrics.clear();
  ASSERT_EQ(mkdir(config.state_folder.c_str(), 0700), 0);
  const auto server = Server::Start(config);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(ModeOf(config.state_folder), 0700u);
  EXPECT_EQ(ModeOf(*config.socket), 0660u);
}

}  // namespace
}  // namespace motley::coordinator
