#include "coordinator/rpc/loopback_name.h"

#include <gtest/gtest.h>

#include "common/base/tcp_listener.h"

namespace motley::coordinator {
namespace {

TEST(LoopbackNameTest, ANameThatStandsForLoopbackHereIsSaid) {
  const auto loopback = TcpListener::Open("workers.listen", "127.0.1.1:0");
  ASSERT_TRUE(loopback.ok()) << loopback.status();
  const std::string why = WhyOthersStayOut("hub.lab:7073", loopback->fd());
  EXPECT_EQ(why.find("workers.listen = 'hub.lab:7073': that name stands for 127.0.1.1 on this machine"), 0u) << why;
  EXPECT_EQ(WhyOthersStayOut("localhost:7073", loopback->fd()), "") << "it is meant";
  EXPECT_EQ(WhyOthersStayOut("127.0.1.1:7073", loopback->fd()), "") << "it is meant";
}

TEST(LoopbackNameTest, OneThatStandsForMoreIsWell) {
  const auto all = TcpListener::Open("workers.listen", "0.0.0.0:0");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(WhyOthersStayOut("hub.lab:7073", all->fd()), "");
}

}  // namespace
}  // namespace motley::coordinator
