// Connections in numbers: descriptors that run out, bounds, sockets that are taken, and what the watchdog sees of it.
#include "coordinator/rpc/acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "absl/time/clock.h"
#include "common/rpc/channel.h"
#include "coordinator/rpc/busy_peers.h"
#include "coordinator/rpc/listening_socket.h"
#include "coordinator/watchdog.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"
#include "tests/common/base/patience.h"
#include "tests/coordinator/rpc/cluster.h"
#include "tests/coordinator/rpc/log_reader.h"

namespace motley::coordinator {
namespace {

class AcceptorTest : public ClusterTest {
 protected:
  int Connect() {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string path = server_->socket_address().substr(5);
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0) << strerror(errno);
    return fd;
  }
  absl::Status Ask(absl::Duration patience = absl::Seconds(20)) { return AskHealth(server_->socket_address(), patience); }
};

// gRPC's own listener stayed dead for good after this.
TEST_F(AcceptorTest, ServesAgainWhenDescriptorsAreFreeAgain) {
  ASSERT_TRUE(Ask().ok());
  LogReader log;
  const int highest = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(highest);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit lowered = before;
  lowered.rlim_cur = static_cast<rlim_t>(highest) + 30;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &lowered), 0);
  // All that is left, so that accept finds none; the connection that asks needs one on each side. Again where gRPC has just
  // given one back.
  std::vector<int> taken, waiting;
  testing::AssertionResult said = testing::AssertionFailure();
  for (int attempt = 0; attempt < 40 && !said; ++attempt) {
    for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken.push_back(fd);
    EXPECT_EQ(errno, EMFILE);
    close(taken.back());
    taken.pop_back();
    waiting.push_back(Connect());  // takes the last one: it cannot be accepted
    said = log.WaitFor("no connection can be taken: Too many open files", absl::Milliseconds(500));
  }
  EXPECT_TRUE(said);
  for (const int fd : taken) close(fd);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(log.WaitFor("descriptors are free again", Patience(absl::Seconds(20))));
  EXPECT_TRUE(Ask().ok());
  for (const int fd : waiting) close(fd);
}

TEST_F(AcceptorTest, ConnectionsBeyondTheBoundAreClosedAndThoseOfTheWatchdogAreTaken) {
  config_.people_connections = 3;
  Start();
  // This process is the watchdog's: a child's connections are somebody else's.
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const std::string path = server_->socket_address().substr(5);
  const pid_t child = fork();
  if (child == 0) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    for (int i = 0; i < 20; ++i) {
      const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
      if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) _exit(1);
    }
    (void)!write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(Ask().ok());
  kill(child, SIGKILL);
  int status;
  waitpid(child, &status, 0);
  for (const int fd : ready) close(fd);
  EXPECT_TRUE(Ask().ok());
}

TEST_F(AcceptorTest, SilentConnectionsAreGivenUp) {
  const int fd = Connect();
  char buffer[256];
  // gRPC may greet first; after its handshake's time the connection ends.
  while (read(fd, buffer, sizeof(buffer)) > 0) {
  }
  close(fd);
  EXPECT_TRUE(Ask().ok());
}

TEST_F(AcceptorTest, TheSocketIsForItsGroupAndGoesWithTheServer) {
  const std::string path = server_->socket_address().substr(5);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0660u);
  server_.reset();
  EXPECT_NE(stat(path.c_str(), &info), 0);
}

TEST_F(AcceptorTest, SocketsOfOthersAreLeftAlone) {
  const std::string path = server_->socket_address().substr(5);
  const auto second = ListeningSocket::Unix("server.socket", path);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << second.status();
  EXPECT_TRUE(Ask().ok());
  const std::string file = folder_ + "/file";
  std::ofstream(file) << "data";
  EXPECT_EQ(ListeningSocket::Unix("server.socket", file).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ListeningSocket::Unix("server.socket", folder_ + "/none/x").status().code(), absl::StatusCode::kNotFound);
  const auto longest = ListeningSocket::Unix("server.socket", "/" + std::string(200, 'x'));
  EXPECT_EQ(longest.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(longest.status().message().find("107"), std::string::npos);
}

TEST_F(AcceptorTest, AStaleSocketIsReplaced) {
  const std::string path = folder_ + "/stale";
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(fd);  // as after kill -9: the file stays
  EXPECT_TRUE(ListeningSocket::Unix("server.socket", path).ok());
}

TEST_F(AcceptorTest, TheWatchdogIsQuietWhenNobodyAnswers) {
  absl::Mutex mutex;
  int alive = 0;
  const auto count = [&] {
    absl::MutexLock lock(&mutex);
    ++alive;
  };
  {
    Watchdog watchdog(server_->socket_address(), absl::Milliseconds(200), count);
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(
                                           +[](int* n) { return *n >= 2; }, &alive),
                                       absl::Seconds(30)));
  }
  alive = 0;
  // Takes connections and closes them without a word.
  const auto mute = ListeningSocket::Unix("server.socket", folder_ + "/mute");
  ASSERT_TRUE(mute.ok()) << mute.status();
  Watchdog watchdog(mute->address(), absl::Milliseconds(50), count);
  for (int beats = 0; beats < 5; ++beats) {
    pollfd polled = {mute->fd(), POLLIN, 0};
    ASSERT_EQ(poll(&polled, 1, 30'000), 1);
    close(accept(mute->fd(), nullptr, nullptr));
  }
  absl::MutexLock lock(&mutex);
  EXPECT_EQ(alive, 0);
}

// They have greeted, and would have been held for ten minutes: everybody else was locked out meanwhile.
TEST_F(AcceptorTest, TheOldestWithoutACallMakesRoom) {
  config_.people_connections = 4;
  Start();
  const auto channel_with_a_call = OpenChannel(server_->address());
  grpc::ClientContext context;
  auto watch = grpc::health::v1::Health::NewStub(channel_with_a_call)->Watch(&context, {});
  grpc::health::v1::HealthCheckResponse answer;
  ASSERT_TRUE(watch->Read(&answer));
  std::vector<std::shared_ptr<grpc::Channel>> idle;
  for (int i = 0; i < 3; ++i) {
    idle.push_back(OpenChannel(server_->address()));
    ASSERT_TRUE(idle.back()->WaitForConnected(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(20)))));
  }
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(AskHealth(server_->address(), absl::Seconds(10)).ok()) << i;
  context.TryCancel();
  EXPECT_FALSE(watch->Read(&answer));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED) << "its connection was not closed";
}

TEST(BusyPeers, ACallIsFoundByItsConnection) {
  for (const char* address : {"127.0.0.1:0", "[::1]:0"}) {
    const auto listener = ListeningSocket::Tcp("the address", address);
    if (!listener.ok()) continue;  // a machine without IPv6
    const int port = std::stoi(listener->address().substr(listener->address().rfind(':') + 1));
    sockaddr_in6 v6 = {};
    v6.sin6_family = AF_INET6, v6.sin6_addr = in6addr_loopback, v6.sin6_port = htons(static_cast<uint16_t>(port));
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET, v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK), v4.sin_port = v6.sin6_port;
    const bool is_v4 = address[0] != '[';
    const int from = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM, 0);
    ASSERT_EQ(is_v4 ? connect(from, reinterpret_cast<sockaddr*>(&v4), sizeof(v4))
                    : connect(from, reinterpret_cast<sockaddr*>(&v6), sizeof(v6)),
              0);
    pollfd polled = {listener->fd(), POLLIN, 0};
    ASSERT_EQ(poll(&polled, 1, 20'000), 1);
    const int fd = accept(listener->fd(), nullptr, nullptr);
    const std::string peer = PeerOfSocket(fd), number = peer.substr(peer.rfind(':'));
    EXPECT_EQ(peer, (is_v4 ? "ipv4:127.0.0.1" : "ipv6:[::1]") + number);
    BusyPeers busy;
    {
      const CallMark mark(busy, (is_v4 ? "ipv4:127.0.0.1" : "ipv6:%5B::1%5D") + number);
      const CallMark second(busy, (is_v4 ? "ipv4:127.0.0.1" : "ipv6:[::1]") + number);
      EXPECT_TRUE(busy.Has(peer));
    }
    EXPECT_FALSE(busy.Has(peer));
    close(from), close(fd);
  }
  EXPECT_EQ(PeerOfCall("ipv6:%5Bfe80::1%25eth0%5D:47"), "ipv6:[fe80::1]:47");
}

TEST(FitConnections, LeavesDescriptorsForTheRest) {
  size_t people = 4096, workers = 16384;
  FitConnections(65536, &people, &workers);
  EXPECT_EQ(people, 4096u);
  EXPECT_EQ(workers, 16384u);
  FitConnections(1024, &people, &workers);
  EXPECT_EQ(people, 480u);
  EXPECT_EQ(workers, 480u);
  FitConnections(10, &people, &workers);
  EXPECT_GE(people, 1u);
  EXPECT_GE(workers, 1u);
}

}  // namespace
}  // namespace motley::coordinator
