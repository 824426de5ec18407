#include "common/base/data_way.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <string>
#include <utility>

#include "common/base/files.h"

namespace motley {
namespace {

sockaddr_storage PeerAddress(const char* address) {
  sockaddr_storage peer{};
  auto* v4 = reinterpret_cast<sockaddr_in*>(&peer);
  v4->sin_family = AF_INET;
  inet_pton(AF_INET, address, &v4->sin_addr);
  return peer;
}

std::string BoundAddress(const FileDescriptor& fd) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
  return text;
}

TEST(DataWayTest, OneLeavesFromTheAddressThatIsMeant) {
  const FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(LeaveFrom(fd.get(), "127.0.0.9", PeerAddress("127.0.0.1")), "");
  EXPECT_EQ(BoundAddress(fd), "127.0.0.9");
}

// From loopback nothing leaves the machine, and between families there is no way at all: the kernel's choice may be one.
TEST(DataWayTest, WhatCannotBeMeantIsLeftToTheKernel) {
  for (const auto& [own, peer] : {std::pair("127.0.0.1", "192.0.2.1"), std::pair("192.0.2.1", "127.0.0.1"),
                                  std::pair("::1", "127.0.0.1"), std::pair("fd00::1", "192.0.2.1")}) {
    const FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(LeaveFrom(fd.get(), own, PeerAddress(peer)), "") << own << " to " << peer;
    EXPECT_EQ(BoundAddress(fd), "0.0.0.0") << own << " to " << peer;
  }
}

TEST(DataWayTest, AnAddressThatIsGoneIsSaid) {
  const FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_NE(LeaveFrom(fd.get(), "192.0.2.1", PeerAddress("192.0.2.2")).find("cannot leave from 192.0.2.1: "), std::string::npos);
}

TEST(DataWayTest, WhoseAddressItIs) {
  EXPECT_TRUE(IsOfThisMachine("127.0.0.1"));
  EXPECT_TRUE(IsOfThisMachine("127.8.8.8"));
  EXPECT_TRUE(IsOfThisMachine("::1"));
  EXPECT_FALSE(IsOfThisMachine("192.0.2.1"));
  EXPECT_FALSE(IsOfThisMachine("a.name"));
  EXPECT_FALSE(IsOfThisMachine(""));
}

}  // namespace
}  // namespace motley
