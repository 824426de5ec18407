#include "coordinator/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sysexits.h>

#include "tests/common/base/temp_folder.h"

namespace motley::coordinator {
namespace {

using testing::AllOf;
using testing::HasSubstr;

FlagsResult Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "motley-coordinator");
  return ParseFlags(static_cast<int>(arguments.size()), const_cast<char**>(arguments.data()));
}

TEST(CoordinatorFlags, ACheckSaysByWhatPeopleAndWorkersCome) {
  TempFolder folder;
  const std::string file = folder.Write("c.toml",
                                        "[server]\nowners = true\nsocket = '/s/c.sock'\n[workers]\nlisten = ''\n"
                                        "accounts = ['root', 4001]\n[state]\nfolder = '/state'\n");
  testing::internal::CaptureStdout();
  const FlagsResult checked = Parse({"--config", file.c_str(), "--check"});
  EXPECT_EQ(
      testing::internal::GetCapturedStdout(),
      "people come by unix:/s/c.sock; jobs have owners\nworkers come by unix:/s/workers.sock; by the socket these accounts: "
      "root, the coordinator's own account, motley-worker, root, 4001\nstate in /state\n");
  EXPECT_FALSE(checked.config);
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_TRUE(Parse({"--config", file.c_str()}).config) << "without it the coordinator is to be run";
}

TEST(CoordinatorFlags, ACheckNamesFileKeyAndValue) {
  TempFolder folder;
  const std::string file = folder.Write("c.toml", "[workers]\naccounts = ['alcie the typo', 'root', 'another slip']\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(Parse({"--config", file.c_str(), "--check"}).exit_code, EX_CONFIG);
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* slip : {"alcie the typo", "another slip"}) {
    EXPECT_THAT(said,
                HasSubstr("motley-coordinator: " + file + ": workers.accounts: '" + slip + "' is no account of this machine"));
  }
  EXPECT_TRUE(Parse({"--config", file.c_str()}).config) << "at boot the directory server may not answer yet";
}

// As packages of before brought it.
TEST(CoordinatorFlags, AFileOfBeforeIsToldTheLineToChange) {
  TempFolder folder;
  const std::string file = folder.Write("c.toml", "[server]\nowners = true\n[workers]\nlisten = '127.0.0.1:7073'\n");
  testing::internal::CaptureStderr();
  const FlagsResult flags = Parse({"--config", file.c_str()});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr(file), HasSubstr("Say workers.listen = \"\""), HasSubstr("worker.coordinator = \"unix:")));
  EXPECT_FALSE(flags.config);
  EXPECT_EQ(flags.exit_code, EX_CONFIG);
  EXPECT_TRUE(Parse({"--config", file.c_str(), "--workers", ""}).config) << "none by a flag";
}

}  // namespace
}  // namespace motley::coordinator
