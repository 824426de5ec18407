#include "common/base/address.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(Address, HostAndPortAreTakenApart) {
  const auto v4 = ParseHostPort("server.listen", "127.0.0.1:7070", 0);
  ASSERT_TRUE(v4.ok()) << v4.status();
  EXPECT_EQ(v4->host, "127.0.0.1");
  EXPECT_EQ(v4->port, 7070);
  EXPECT_EQ(ParseHostPort("k", "[::1]:0", 0)->host, "::1");
  EXPECT_EQ(ParseHostPort("k", "node-a.lab_2:65535", 1)->host, "node-a.lab_2");
}

TEST(Address, WhatIsNoAddressNamesTheKey) {
  for (const std::string text : {"", ":", "host", "host:", ":7070", "host:-1", "host:65536", "host:7x", "host: 7", "::1:7070",
                                 "[::1]7070", "[::1:7070", "[host]:7070", "[]:1", "a b:1", "a\nb:1", "host:7\n", "ho'st:1"}) {
    const auto parsed = ParseHostPort("server.listen", text, 0);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().message().find("server.listen must be host:port"), 0u) << parsed.status();
    EXPECT_EQ(parsed.status().message().find('\n'), std::string::npos);
  }
  EXPECT_FALSE(ParseHostPort("k", "host:0", 1).ok());
}

TEST(Address, LoopbackIsNumericOrTheOneName) {
  for (const char* host : {"127.0.0.1", "127.255.3.4", "::1", "0:0:0:0:0:0:0:1", "localhost"})
    EXPECT_TRUE(IsLoopback(host)) << host;
  for (const char* host : {"127.evil.example", "127.0.0.1.evil.example", "127.1", "127.", "localhost.example", "0.0.0.0",
                           "::", "10.0.0.1", "[::1]", "::ffff:10.0.0.1", "128.0.0.1", "LOCALHOST ", "", "127.0.0.1:70"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

}  // namespace
}  // namespace motley
