// A coordinator that holds as many connections as it may: the command says so, and not that there is none.
#include "coordinator/client/refusal.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sysexits.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <sstream>
#include <thread>

#include "common/base/tcp_listener.h"
#include "coordinator/client/cli.h"

namespace motley::client {
namespace {

constexpr char kWhy[] = "the coordinator has no free connection for account ada: it holds 512";

// Takes each connection, says something and closes it.
class Refuser {
 public:
  Refuser(int fd, std::string says) : fd_(fd), says_(std::move(says)), thread_([this] { Run(); }) {}
  ~Refuser() {
    ends_ = true;
    thread_.join();
    close(fd_);
  }

 private:
  void Run() {
    while (!ends_) {
      pollfd polled = {fd_, POLLIN, 0};
      if (poll(&polled, 1, 20) <= 0) continue;
      const int taken = accept(fd_, nullptr, nullptr);
      if (taken < 0) continue;
      (void)!send(taken, says_.data(), says_.size(), MSG_NOSIGNAL);
      shutdown(taken, SHUT_WR);
      close(taken);
    }
  }
  const int fd_;
  const std::string says_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

std::string Refusal(const std::string& why) {
  return "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n" + why + "\n";
}

class RefusalTest : public testing::Test {
 protected:
  RefusalTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "motley-refusal-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~RefusalTest() override { std::filesystem::remove_all(folder_); }
  int ListenAt(const std::string& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(fd, 16), 0);
    return fd;
  }
  std::string folder_;
};

TEST_F(RefusalTest, TheCommandSaysThatItIsFull) {
  const std::string path = folder_ + "/full.sock";
  const Refuser full(ListenAt(path), Refusal(kWhy));
  std::ostringstream out, err;
  EXPECT_EQ(RunCli({"list", "--coordinator", "unix:" + path}, out, err), EX_TEMPFAIL) << err.str();
  EXPECT_THAT(err.str(), testing::HasSubstr(kWhy));
  EXPECT_THAT(err.str(), testing::Not(testing::HasSubstr("start motley-coordinator")));
}

TEST_F(RefusalTest, IsReadBySocketAndTcpInOneCleanLine) {
  const std::string path = folder_ + "/full.sock";
  const Refuser by_socket(ListenAt(path), Refusal("no room\n\x1b[31m"));
  EXPECT_EQ(AskRefusal("unix:" + path, absl::Seconds(20)), "no room\\n\\u001b[31m");
  auto listener = TcpListener::Open("the address", "127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  const std::string address = listener->address();
  const Refuser by_tcp(listener->Release(), Refusal(kWhy));
  EXPECT_EQ(AskRefusal(address, absl::Seconds(20)), kWhy);
}

TEST_F(RefusalTest, WhatElseAnswersIsNone) {
  const std::string path = folder_ + "/other.sock";
  const Refuser other(ListenAt(path), "HTTP/1.1 404 Not Found\r\n\r\nno");
  EXPECT_EQ(AskRefusal("unix:" + path, absl::Seconds(20)), std::nullopt);
  EXPECT_EQ(AskRefusal("unix:" + folder_ + "/nobody.sock", absl::Seconds(20)), std::nullopt);
  const int mute = ListenAt(folder_ + "/mute.sock");
  EXPECT_EQ(AskRefusal("unix:" + folder_ + "/mute.sock", absl::Milliseconds(50)), std::nullopt);
  close(mute);
}

}  // namespace
}  // namespace motley::client
