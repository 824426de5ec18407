// Connections in numbers: descriptors that run out, bounds, sockets that are taken, and what the watchdog sees of it.
#include "coordinator/rpc/acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <fstream>

#include "coordinator/watchdog.h"
#include "tests/coordinator/rpc/cluster.h"

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
  const int highest = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(highest);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit lowered = before;
  lowered.rlim_cur = static_cast<rlim_t>(highest) + 30;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &lowered), 0);
  // All that is left, so that accept finds none; the connection that asks needs one on each side.
  std::vector<int> taken;
  for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken.push_back(fd);
  EXPECT_EQ(errno, EMFILE);
  close(taken.back());
  taken.pop_back();
  const int waits = Connect();  // takes the last one: it cannot be accepted
  absl::SleepFor(absl::Milliseconds(500));
  for (const int fd : taken) close(fd);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(Ask().ok());
  close(waits);
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
  const auto second = ListeningSocket::Unix(path);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << second.status();
  EXPECT_TRUE(Ask().ok());
  const std::string file = folder_ + "/file";
  std::ofstream(file) << "data";
  EXPECT_EQ(ListeningSocket::Unix(file).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ListeningSocket::Unix(folder_ + "/none/x").status().code(), absl::StatusCode::kNotFound);
  const auto longest = ListeningSocket::Unix("/" + std::string(200, 'x'));
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
  EXPECT_TRUE(ListeningSocket::Unix(path).ok());
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
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(+[](int* n) { return *n >= 2; }, &alive), absl::Seconds(30)));
  }
  server_.reset();
  alive = 0;
  Watchdog watchdog("unix:" + folder_ + "/nobody", absl::Milliseconds(50), count);
  absl::SleepFor(absl::Milliseconds(500));
  absl::MutexLock lock(&mutex);
  EXPECT_EQ(alive, 0);
}

TEST(ConnectionBound, CountsWhatIsStillOpen) {
  ConnectionBound bound(2);
  int first[2], second[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, first), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, second), 0);
  bound.Add(first[0]);
  EXPECT_TRUE(bound.HasRoom());
  bound.Add(second[0]);
  EXPECT_FALSE(bound.HasRoom());
  close(first[0]);
  const int reused = open("/dev/null", O_RDONLY);  // takes the number
  EXPECT_EQ(reused, first[0]);
  EXPECT_TRUE(bound.HasRoom());
  for (const int fd : {reused, first[1], second[0], second[1]}) close(fd);
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
