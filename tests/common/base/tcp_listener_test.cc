#include "common/base/tcp_listener.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace motley {
namespace {

std::string SocketAddress(const char* address, int port) {
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
  EXPECT_EQ(inet_pton(AF_INET, address, &v4.sin_addr), 1);
  return {reinterpret_cast<const char*>(&v4), sizeof(v4)};
}

// As "localhost" does where there is no IPv6: its first address is none of this machine's.
TEST(TcpListenerTest, ANameIsTriedAddressByAddress) {
  const auto listener = TcpListener::OpenOneOf({SocketAddress("192.0.2.1", 0), SocketAddress("127.0.0.1", 0)}, "localhost:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_GT(listener->port(), 0);
  EXPECT_EQ(listener->address(), "localhost:" + std::to_string(listener->port()));
}

TEST(TcpListenerTest, WhereNoneIsOursTheNameIsSaid) {
  const absl::Status status = TcpListener::OpenOneOf({SocketAddress("192.0.2.1", 0)}, "a.name:7").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message().find("cannot listen on a.name:7: "), 0u) << status;
}

TEST(TcpListenerTest, OneThatIsTakenIsNotPassedOver) {
  const auto first = TcpListener::OpenOneOf({SocketAddress("127.0.0.1", 0)}, "localhost:0");
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second =
      TcpListener::OpenOneOf({SocketAddress("127.0.0.1", first->port()), SocketAddress("127.0.0.2", first->port())},
                             "localhost:7")
          .status();
  EXPECT_EQ(second.code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace motley
