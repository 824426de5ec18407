// Who may be a worker by the Unix socket: the account of the process that dials decides.
#include "coordinator/rpc/own_workers.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <thread>

#include "tests/coordinator/rpc/cluster.h"
#include "tests/coordinator/rpc/log_reader.h"

namespace motley::coordinator {
namespace {

using testing::HasSubstr;

// Numbers of nobody.
constexpr uint32_t kAlice = 65'501, kBob = 65'502;

TEST(MayBeWorker, RootTheOwnAccountAndThoseThatAreNamed) {
  EXPECT_TRUE(MayBeWorker(0, {}));
  EXPECT_TRUE(MayBeWorker(geteuid(), {}));
  EXPECT_FALSE(MayBeWorker(kAlice, {}));
  EXPECT_TRUE(MayBeWorker(kAlice, {"65501"}));
  EXPECT_FALSE(MayBeWorker(kBob, {"65501", "no such account"}));
}

// Only root makes connections of another account. Its thread alone becomes that one, as the kernel has it.
class OwnWorkersTest : public ClusterTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root dials as another account";
    ASSERT_EQ(chmod(folder_.c_str(), 0711), 0);
  }
  std::string Path() const { return server_->workers_socket_address().substr(5); }
  int ConnectAs(uint32_t uid) {
    int fd = -1;
    std::thread([&] {
      if (syscall(SYS_setresuid, -1, uid, -1) != 0) return;
      sockaddr_un address = {};
      address.sun_family = AF_UNIX;
      Path().copy(address.sun_path, sizeof(address.sun_path) - 1);
      fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) close(std::exchange(fd, -1));
    }).join();
    EXPECT_GE(fd, 0) << "the socket's group may dial";
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
  }
  std::unique_ptr<FakeWorker> DialAs(uint32_t uid, const std::string& node) {
    FakeWorker::Options options;
    options.channel = grpc::CreateInsecureChannelFromFd("workers", ConnectAs(uid));
    return std::make_unique<FakeWorker>("", node, std::move(options));
  }
};

TEST_F(OwnWorkersTest, AnotherAccountIsToldWhoMayAndTheLogSaysIt) {
  LogReader log;
  const auto alices = DialAs(kAlice, "alices");
  const grpc::Status status = alices->WaitForEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("you are 65501 (65501), and workers by unix:" + Path() +
                                                " are processes of root, the coordinator's own account, motley-worker. "));
  EXPECT_THAT(status.error_message(), HasSubstr("[workers] accounts = [\"65501\"]"));
  EXPECT_TRUE(log.WaitFor("audit: 65501 (65501) Session at unix:" + Path() + ": PERMISSION_DENIED", Patience(absl::Seconds(20))));
  auto own = std::make_unique<FakeWorker>(server_->workers_socket_address(), "own", FakeWorker::Options());
  EXPECT_TRUE(own->WaitForWelcome());
}

TEST_F(OwnWorkersTest, AnAccountThatIsNamedIsLetIn) {
  config_.worker_accounts = {"65501"};
  Start();
  EXPECT_TRUE(DialAs(kAlice, "alices")->WaitForWelcome());
  EXPECT_THAT(DialAs(kBob, "bobs")->WaitForEnd().error_message(), HasSubstr("motley-worker, 65501. "));
}

// At boot a directory server may not answer yet.
TEST_F(ClusterTest, AnAccountThatIsNotKnownYetIsWarnedOfAndKeepsNobodyOut) {
  config_.worker_accounts = {"nobody has this name"};
  LogReader log;
  Start();
  EXPECT_TRUE(
      log.WaitFor("workers.accounts: 'nobody has this name' is no account of this machine; 'getent passwd' lists them, and a "
                  "number needs none. Its workers are refused until the machine knows it",
                  Patience(absl::Seconds(20))));
  FakeWorker own(server_->workers_socket_address(), "own", FakeWorker::Options());
  EXPECT_TRUE(own.WaitForWelcome());
}

// They greet as HTTP/2 has it, say no more, and would be held for ten minutes. Of those that are refused some are open at once,
// for seconds, and no other is kept out.
TEST_F(OwnWorkersTest, ManyThatAreRefusedKeepNobodyOut) {
  constexpr char kGreeting[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
  std::vector<int> many;
  for (int i = 0; i < 100; ++i) {
    many.push_back(ConnectAs(kAlice));
    (void)send(many.back(), kGreeting, sizeof(kGreeting) - 1, MSG_NOSIGNAL);  // it may be closed already
  }
  auto own = std::make_unique<FakeWorker>(server_->workers_socket_address(), "own", FakeWorker::Options());
  EXPECT_TRUE(own->WaitForWelcome());
  for (const int fd : many) {
    char bytes[4096];
    ssize_t got = 1;
    for (pollfd polled = {fd, POLLIN, 0}; got != 0 && poll(&polled, 1, 60'000) == 1;) got = read(fd, bytes, sizeof(bytes));
    EXPECT_LE(got, 0) << "it is not closed";
    close(fd);
  }
}

// With owners there is no door without a look at who comes.
TEST_F(ClusterTest, WhereJobsHaveOwnersWorkersComeByTheSocketAlone) {
  config_.owners = true;
  server_.reset();
  const absl::Status refused = Server::Start(config_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("Say workers.listen = \"\"; the machine's own workers come by a socket, with worker.coordinator = \"unix:" +
                folder_ + "/workers.sock\" in worker.toml"));
  config_.workers_listen = "";
  Start();
  EXPECT_EQ(server_->workers_address(), "");
  FakeWorker own(server_->workers_socket_address(), "own", {});
  EXPECT_TRUE(own.WaitForWelcome());
}

}  // namespace
}  // namespace motley::coordinator
