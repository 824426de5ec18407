// Who finds a connection when many hold one: the rules, and a server with crowds of other processes before it.
#include "coordinator/rpc/seats.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "common/rpc/channel.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"
#include "tests/common/base/patience.h"
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class SeatsTest : public testing::Test {
 protected:
  ~SeatsTest() override {
    for (const int fd : open_) close(fd);
  }
  // What the guest is told; empty: it was taken.
  std::string Come(const Guest& guest) {
    std::string why = seats_.MakeRoom(guest);
    if (why.empty()) Sit(guest);
    return why;
  }
  int Sit(const Guest& guest) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    open_.insert(open_.end(), ends, ends + 2);
    seats_.Add(ends[0], guest);
    return ends[1];
  }
  // The server has closed its end.
  static bool IsOver(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
  }

  // 16 in all: 2 for an account, 8 by TCP, 2 for admins and one of them for the coordinator's own.
  Seats seats_{SeatLimits::Shared(16, 0, "limits.people_connections", "unix:/run/motley.sock")};
  BusyPeers calls_, none_;
  const CallMark mark_{calls_, "unix:"};
  const Guest tcp_{std::nullopt, "", SeatClass::kAnybody, &calls_}, alice_{4001, "alice", SeatClass::kAnybody, &calls_},
      admin_{4002, "ada", SeatClass::kAdmin, &calls_}, root_{0, "root", SeatClass::kOwn, &calls_};
  std::vector<int> open_;
};

TEST_F(SeatsTest, AnAccountHasItsShare) {
  EXPECT_EQ(Come(alice_), "");
  EXPECT_EQ(Come(alice_), "");
  EXPECT_EQ(Come(alice_),
            "the coordinator has no free connection for account alice: it holds 2, as many as one may have "
            "(limits.account_connections); close some, or ask an admin");
  EXPECT_EQ(Come(Guest{4003, "bob", SeatClass::kAnybody, &calls_}), "");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Come(root_), "") << "whoever can end the coordinator can fill it";
}

TEST_F(SeatsTest, TcpLeavesHalfToOthers) {
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Come(tcp_), "");
  EXPECT_EQ(Come(tcp_),
            "the coordinator has no free connection by TCP: it holds 8, as many as may come so (a half of "
            "limits.people_connections); on its machine use --coordinator unix:/run/motley.sock, close some, or ask an admin");
  EXPECT_EQ(Come(alice_), "");
}

TEST(SeatLimitsTest, WhereThereIsNoSocketNoneIsNamed) {
  Seats seats(SeatLimits::Shared(16, 0, "limits.people_connections"));
  BusyPeers calls;
  const CallMark mark(calls, "unix:");
  const Guest tcp{std::nullopt, "", SeatClass::kAnybody, &calls};
  std::vector<int> open;
  std::string why;
  while ((why = seats.MakeRoom(tcp)).empty() && open.size() < 32) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    open.insert(open.end(), ends, ends + 2);
    seats.Add(ends[0], tcp);
  }
  EXPECT_THAT(why, testing::EndsWith("(a half of limits.people_connections); close some, or ask an admin"));
  for (const int fd : open) close(fd);
}

TEST_F(SeatsTest, TheLastOnesAreKept) {
  for (uint32_t uid = 5000; seats_.MakeRoom({uid, "x", SeatClass::kAnybody, &calls_}).empty(); ++uid) {
    Sit({uid, "x", SeatClass::kAnybody, &calls_});
    ASSERT_LT(uid, 5014u);
  }
  EXPECT_EQ(Come(alice_),
            "the coordinator has no free connection: it holds 14 of 16 (limits.people_connections), and the others are kept for "
            "admins; try again when some are closed, or ask an admin");
  EXPECT_EQ(Come(admin_), "");
  EXPECT_THAT(Come(admin_), HasSubstr("it holds 15 of 16"));
  EXPECT_EQ(Come(root_), "");
  EXPECT_THAT(Come(root_), HasSubstr("it holds 16 of 16 (limits.people_connections); try again"));
}

TEST_F(SeatsTest, WhoeverHasNoCallMakesRoom) {
  const Guest idle{4001, "alice", SeatClass::kAnybody, &none_};
  const int first = Sit(idle), second = Sit(idle);
  EXPECT_EQ(Come(idle), "");
  EXPECT_TRUE(IsOver(first)) << "the oldest";
  EXPECT_FALSE(IsOver(second));
}

TEST_F(SeatsTest, WhatWasClosedDoesNotCount) {
  Sit(alice_), Sit(alice_);
  const int number = open_[0];
  close(number);
  EXPECT_EQ(open("/dev/null", O_RDONLY | O_CLOEXEC), number) << "takes the number";
  EXPECT_EQ(Come(alice_), "");
  EXPECT_NE(Come(alice_), "");
}

TEST(SeatLimitsTest, SmallServersServeEverybody) {
  const SeatLimits one = SeatLimits::Shared(1, 0, "");
  EXPECT_EQ(one.account, 1u);
  EXPECT_EQ(one.tcp, 1u);
  EXPECT_EQ(one.kept_for_admins, 0u);
  EXPECT_EQ(SeatLimits::Shared(4096, 0, "").account, 512u);
  EXPECT_EQ(SeatLimits::Shared(4096, 100, "").account, 100u);
  EXPECT_EQ(SeatLimits::Shared(64, 100, "").account, 64u);
}

// HTTP/2's preface and an empty SETTINGS frame: gRPC holds such a connection for ten minutes.
constexpr std::string_view kGreeting("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);

// Other processes' connections: those of this one are the watchdog's. Between fork and exit there is nothing but system calls.
class Crowds : public ClusterTest {
 protected:
  Crowds() {
    config_.owners = true;
    config_.workers_listen = "";
    config_.people_connections = 16;
    Start();
    EXPECT_EQ(chmod(folder_.c_str(), 0711), 0);
    EXPECT_EQ(chmod(Path().c_str(), 0666), 0) << "as if all accounts were of the group";
  }
  ~Crowds() override {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  std::string Path() const { return server_->socket_address().substr(5); }
  static int Greet(const sockaddr_un& address) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return -1;
    (void)!write(fd, kGreeting.data(), kGreeting.size());
    return fd;
  }
  sockaddr_un Address() const {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    Path().copy(address.sun_path, sizeof(address.sun_path) - 1);
    return address;
  }
  // So many connections of the account, which stay open at its end.
  void Gather(uid_t uid, int connections) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const sockaddr_un address = Address();
    const pid_t child = fork();
    if (child == 0) {
      if (setuid(uid) != 0) _exit(1);
      for (int i = 0; i < connections; ++i) {
        if (Greet(address) < 0) _exit(1);
      }
      (void)!write(ready[1], "x", 1);
      pause();
      _exit(0);
    }
    children_.push_back(child);
    close(ready[1]);
    char byte;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  // Whether a connection of the account is answered as HTTP/2 is.
  bool Serves(uid_t uid) {
    const sockaddr_un address = Address();
    const pid_t child = fork();
    if (child == 0) {
      if (setuid(uid) != 0) _exit(1);
      const int fd = Greet(address);
      std::array<char, 4> head = {};
      alarm(60);
      const bool all = recv(fd, head.data(), head.size(), MSG_WAITALL) == static_cast<ssize_t>(head.size());
      _exit(all && head[3] == 4 ? 0 : 2);  // a SETTINGS frame
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  std::vector<pid_t> children_;
};

TEST_F(Crowds, OneAccountLocksNobodyOut) {
  if (geteuid() != 0) GTEST_SKIP() << "other accounts need root";
  Gather(4001, 60);
  EXPECT_TRUE(Serves(0));
  EXPECT_TRUE(Serves(4002));
  EXPECT_TRUE(Serves(4001)) << "its idle ones make room";
}

TEST_F(Crowds, WhoComesByTcpLocksNobodyOutAndIsToldWhy) {
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  std::vector<std::unique_ptr<grpc::ClientReader<grpc::health::v1::HealthCheckResponse>>> calls;
  for (int i = 0; i < 8; ++i) {
    channels.push_back(OpenChannel(server_->address()));
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    calls.push_back(grpc::health::v1::Health::NewStub(channels.back())->Watch(contexts.back().get(), {}));
    grpc::health::v1::HealthCheckResponse answer;
    ASSERT_TRUE(calls.back()->Read(&answer));
  }
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET, address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string& listens = server_->address();
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(listens.substr(listens.rfind(':') + 1))));
  ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  std::string told;
  std::array<char, 1024> part;
  for (ssize_t bytes; (bytes = recv(fd, part.data(), part.size(), 0)) > 0;) told.append(part.data(), static_cast<size_t>(bytes));
  close(fd);
  EXPECT_THAT(told, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(told, HasSubstr("\r\n\r\nthe coordinator has no free connection by TCP: it holds 8"));
  EXPECT_THAT(told, HasSubstr("--coordinator " + server_->socket_address()));
  EXPECT_TRUE(Serves(geteuid()));
  for (const auto& context : contexts) context->TryCancel();
  grpc::health::v1::HealthCheckResponse rest;
  for (const auto& call : calls) {
    while (call->Read(&rest)) {
    }
    (void)call->Finish();
  }
}

}  // namespace
}  // namespace motley::coordinator
