#include "coordinator/rpc/handshake_bound.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/base/files.h"

namespace motley::coordinator {
namespace {

// Connections by TCP from addresses of loopback, each of which counts as a machine.
class HandshakeBoundTest : public testing::Test {
 protected:
  HandshakeBoundTest() {
    sockaddr_in address = At("127.0.0.1", 0);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_.get(), 1024), 0);
    socklen_t length = sizeof(there_);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&there_), &length), 0);
  }
  static sockaddr_in At(const char* host, int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(inet_pton(AF_INET, host, &address.sin_addr), 1);
    return address;
  }
  // The server's end.
  int Begin(const char* from) {
    const sockaddr_in own = At(from, 0);
    clients_.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(clients_.back().get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)), 0);
    EXPECT_EQ(connect(clients_.back().get(), reinterpret_cast<const sockaddr*>(&there_), sizeof(there_)), 0);
    taken_.emplace_back(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    bound_.Add(taken_.back().get(), now_);
    return taken_.back().get();
  }
  void Fill(const char* from) {
    for (size_t i = 0; i < HandshakeBound::kMost; ++i) Begin(from);
  }
  bool IsClosed(size_t i) const {
    char byte = 0;
    return recv(clients_[i].get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  BusyPeers busy_;
  HandshakeBound bound_{busy_, absl::Seconds(10)};
  absl::Duration now_ = absl::Seconds(1000);
  const FileDescriptor listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in there_{};
  std::vector<FileDescriptor> clients_, taken_;
};

TEST_F(HandshakeBoundTest, SoManyAndNoMore) {
  for (size_t i = 0; i < HandshakeBound::kMost; ++i) {
    EXPECT_TRUE(bound_.HasRoom(now_));
    Begin("127.0.0.1");
  }
  EXPECT_FALSE(bound_.HasRoom(now_));
}

TEST_F(HandshakeBoundTest, ACallAndAClosedConnectionMakeRoom) {
  Fill("127.0.0.1");
  const std::string peer = PeerOfSocket(taken_[3].get());
  busy_.Begin(peer);
  EXPECT_TRUE(bound_.HasRoom(now_));
  Begin("127.0.0.1");
  EXPECT_FALSE(bound_.HasRoom(now_));
  taken_[5] = FileDescriptor();
  EXPECT_TRUE(bound_.HasRoom(now_));
  busy_.End(peer);
}

TEST_F(HandshakeBoundTest, WhoDoesNotEndItsOwnKeepsNobodyOut) {
  Begin("127.0.0.2");
  for (size_t i = 1; i < HandshakeBound::kMost; ++i) Begin("127.0.0.3");
  now_ += HandshakeBound::kUsualTime;
  EXPECT_FALSE(bound_.HasRoom(now_)) << "as long as handshakes take in a crowd";
  now_ += absl::Milliseconds(1);
  EXPECT_TRUE(bound_.HasRoom(now_));
  EXPECT_FALSE(IsClosed(0)) << "another address has few, and stays";
  EXPECT_TRUE(IsClosed(1)) << "the oldest of many";
  EXPECT_FALSE(IsClosed(HandshakeBound::kMost - 1)) << "its share it keeps";
}

TEST_F(HandshakeBoundTest, ItsTimeIsOverForEverybody) {
  Fill("127.0.0.2");
  now_ += absl::Seconds(10) + absl::Milliseconds(1);
  EXPECT_TRUE(bound_.HasRoom(now_));
}

}  // namespace
}  // namespace motley::coordinator
