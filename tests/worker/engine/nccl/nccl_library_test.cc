#include "worker/engine/nccl/nccl_library.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <iostream>

#include "tests/common/base/folders.h"
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

std::string BareNccl(const std::string& version) { return BuildFolder() + "/tests/libbare_nccl_" + version + ".so"; }

TEST(NcclLibrary, OpensAndSaysWhereAndWhich) {
  const auto opened = OpenNccl(BuildFolder() + kFakeNccl);
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

// As systemd's RestrictAddressFamilies does where AF_NETLINK is not among them.
bool ForbidNetlink() {
  constexpr uint32_t kFamily = offsetof(seccomp_data, args[0]), kNumber = offsetof(seccomp_data, nr);
  std::array<sock_filter, 6> steps = {
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFamily), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog program = {.len = static_cast<uint16_t>(steps.size()), .filter = steps.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(NcclLibrary, MakesIdsWhereInterfacesCanBeListed) {
  const auto opened = OpenNccl(BuildFolder() + kFakeNccl);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(CheckNcclMakesIds(*opened).ok());
  const auto forbidden = [&] {
    if (!ForbidNetlink()) _exit(2);
    std::cerr << CheckNcclMakesIds(*opened) << std::endl;
    _exit(0);
  };
  EXPECT_EXIT(forbidden(), testing::ExitedWithCode(0),
              "UNAVAILABLE: .*libfake_nccl.so can make no communicator: .*the network interfaces cannot be listed .*AF_NETLINK");
}

// A user's choice holds but where lanes would stand still with it.
TEST(NcclLibrary, SetsItsEnvironment) {
  const auto value = [](const char* name) -> std::string {
    const char* text = std::getenv(name);
    return text == nullptr ? "not set" : text;
  };
  const auto clear = [] {
    for (const char* name : {"NCCL_COMM_BLOCKING", "NCCL_LAUNCH_ORDER_IMPLICIT", "NCCL_MULTI_RANK_GPU_ENABLE",
                             "NCCL_RUNTIME_CONNECT", "NCCL_SET_STACK_SIZE", "NCCL_SOCKET_IFNAME"}) {
      unsetenv(name);
    }
  };
  clear();
  for (const char* name : {"NCCL_COMM_BLOCKING", "NCCL_LAUNCH_ORDER_IMPLICIT", "NCCL_RUNTIME_CONNECT"}) setenv(name, "1", 1);
  PrepareNcclEnvironment("203.0.113.1");  // of no interface here
  for (const char* name : {"NCCL_COMM_BLOCKING", "NCCL_LAUNCH_ORDER_IMPLICIT", "NCCL_RUNTIME_CONNECT"}) {
    EXPECT_EQ(value(name), "0") << name;
  }
  EXPECT_EQ(value("NCCL_SET_STACK_SIZE"), "1");
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
