#include "worker/engine/nccl/nccl_library.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/worker/engine/nccl/open_fake_nccl.h"

namespace motley::engine {
namespace {

void ExpectRefused(const std::string& name, const std::vector<std::string>& parts) {
  const auto opened = OpenNccl(name);
  ASSERT_FALSE(opened.ok()) << name;
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition);
  for (const std::string& part : parts) {
    EXPECT_NE(opened.status().message().find(part), std::string::npos) << part << " in " << opened.status();
  }
}

std::string BareNccl(const std::string& version) { return MOTLEY_BARE_NCCL_PREFIX + version + ".so"; }

TEST(NcclLibrary, OpensAndSaysWhereAndWhich) {
  const auto opened = OpenNccl(MOTLEY_FAKE_NCCL);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->version, 22809);
  EXPECT_NE(opened->path.find("libfake_nccl.so"), std::string::npos);
  EXPECT_STREQ(opened->api.ncclGetErrorString(ncclRemoteError), "remote process exited or there was a network error");
}

TEST(NcclLibrary, OneThatIsNotThereIsNamedWithItsPackages) {
  ExpectRefused("/nowhere/libnccl.so.2", {"looked for '/nowhere/libnccl.so.2'", "nvidia-nccl-cu13", "libnccl2", "2.18.0"});
  ExpectRefused("libnosuchnccl.so.2", {"'libnosuchnccl.so.2' in the program's own folders, LD_LIBRARY_PATH ("});
}

TEST(NcclLibrary, AMissingFunctionIsNamed) {
  ExpectRefused(BareNccl("22809"),
                {"says that it is 2.28.9 but lacks ncclGetUniqueId, ncclCommInitRankConfig", "ncclReduceScatter"});
}

TEST(NcclLibrary, OneThatIsTooOldIsNamed) { ExpectRefused(BareNccl("21408"), {"libbare_nccl_21408.so is 2.14.8: too old"}); }

TEST(NcclLibrary, AVersionThatCannotBeReadIsNamed) {
  ExpectRefused(BareNccl("0"), {"does not say its version (ncclGetVersion: result 3)"});
  ExpectRefused("libm.so.6", {"libm.so.6", "has no function ncclGetVersion"});
}

// A user's choice holds but where lanes would stand still with it.
TEST(NcclLibrary, SetsItsEnvironment) {
  const auto value = [](const char* name) -> std::string {
    const char* text = std::getenv(name);
    return text == nullptr ? "not set" : text;
  };
  const auto clear = [] {
    for (const char* name : {"NCCL_COMM_BLOCKING", "NCCL_LAUNCH_ORDER_IMPLICIT", "NCCL_MULTI_RANK_GPU_ENABLE",
                             "NCCL_RUNTIME_CONNECT", "NCCL_SOCKET_IFNAME"}) {
      unsetenv(name);
    }
  };
  clear();
  for (const char* name : {"NCCL_COMM_BLOCKING", "NCCL_LAUNCH_ORDER_IMPLICIT", "NCCL_RUNTIME_CONNECT"}) setenv(name, "1", 1);
  PrepareNcclEnvironment("203.0.113.1");  // of no interface here
  for (const char* name : {"NCCL_COMM_BLOCKING", "NCCL_LAUNCH_ORDER_IMPLICIT", "NCCL_RUNTIME_CONNECT"}) {
    EXPECT_EQ(value(name), "0") << name;
  }
  EXPECT_EQ(value("NCCL_MULTI_RANK_GPU_ENABLE"), "1");
  EXPECT_EQ(value("NCCL_SOCKET_IFNAME"), "not set");
  PrepareNcclEnvironment("127.0.0.1");
  EXPECT_EQ(value("NCCL_SOCKET_IFNAME"), "=lo");
  setenv("NCCL_SOCKET_IFNAME", "ib0", 1);
  PrepareNcclEnvironment("127.0.0.1");
  EXPECT_EQ(value("NCCL_SOCKET_IFNAME"), "ib0");
  clear();
}

}  // namespace
}  // namespace motley::engine
