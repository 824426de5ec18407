#include "common/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "tests/common/metrics/http_client.h"

namespace motley {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Scrape(int port) {
  const int fd = Connect(port);
  (void)!write(fd, "GET /metrics HTTP/1.0\r\n\r\n", 25);
  const std::string text = ReadAll(fd);
  close(fd);
  return text;
}

TEST(Metrics, GaugesAndCountersByLabel) {
  MetricsRegistry registry;
  GaugeFamily nodes = registry.Gauge("motley_nodes", "nodes by state");
  CounterFamily exits = registry.Counter("motley_rank_exits_total", "rank exits");
  nodes.Set({{"state", "ready"}}, 3);
  nodes.Set({{"state", "lost"}}, 1);
  exits.Add({{"node", "a"}}, 2);
  exits.Add({{"node", "a"}});
  exits.Add({{"node", "a"}}, -5);
  EXPECT_THAT(registry.ToText(), HasSubstr("motley_nodes{state=\"ready\"} 3"));
  EXPECT_THAT(registry.ToText(), HasSubstr("motley_rank_exits_total{node=\"a\"} 3"));
  nodes.Remove({{"state", "lost"}});
  EXPECT_THAT(registry.ToText(), Not(HasSubstr("lost")));
  EXPECT_TRUE(registry.status().ok()) << registry.status();
}

TEST(Metrics, BadNamesAreKeptAsStatusAndDoNotThrow) {
  MetricsRegistry registry;
  registry.Gauge("not a name", "").Set(1);
  EXPECT_THAT(std::string(registry.status().message()), HasSubstr("not a name"));
  MetricsRegistry other;
  other.Counter("x_total", "").Add({{"bad label", "v"}});
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("x_total"));
}

TEST(Metrics, ServesOverHttpAndReportsATakenPort) {
  MetricsRegistry registry;
  registry.Gauge("motley_build_info", "always 1").Set({{"version", "1"}}, 1);
  auto server = MetricsServer::Start("127.0.0.1:0", registry);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_GT((*server)->port(), 0);
  EXPECT_THAT(Scrape((*server)->port()), HasSubstr("motley_build_info{version=\"1\"} 1"));
  const auto second = MetricsServer::Start((*server)->address(), registry);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr((*server)->address()));
}

// Each of eight threads served one: forty of these, who came again, kept everybody else waiting for as long as they liked.
TEST(Metrics, SlowRequestsDoNotKeepTheOthersWaiting) {
  MetricsRegistry registry;
  registry.Gauge("motley_build_info", "always 1").Set({{"version", "1"}}, 1);
  auto server = MetricsServer::Start("127.0.0.1:0", registry);
  ASSERT_TRUE(server.ok()) << server.status();
  std::vector<int> slow;
  for (int scrape = 0; scrape < 6; ++scrape) {
    for (int i = 0; i < 40; ++i) {
      slow.push_back(Connect((*server)->port()));
      (void)!write(slow.back(), "GET /met", 8);
    }
    EXPECT_THAT(Scrape((*server)->port()), HasSubstr("motley_build_info"));
  }
  for (const int fd : slow) close(fd);
}

TEST(Metrics, RefusesAnAddressThatIsNotHostPort) {
  MetricsRegistry registry;
  for (const char* address : {"", "9400", ":9400", "127.0.0.1:x", "127.0.0.1:70000"}) {
    EXPECT_EQ(MetricsServer::Start(address, registry).status().code(), absl::StatusCode::kInvalidArgument) << address;
  }
}

}  // namespace
}  // namespace motley
