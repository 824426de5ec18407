#include "common/metrics/metrics.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <vector>

namespace motley {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Scrape(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  std::string text;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
    (void)!write(fd, request.data(), request.size());
    char buffer[4096];
    for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(n));
  }
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

// Two threads served all: four of these kept everybody else waiting for 48 s.
TEST(Metrics, SlowRequestsDoNotKeepTheOthersWaiting) {
  MetricsRegistry registry;
  registry.Gauge("motley_build_info", "always 1").Set({{"version", "1"}}, 1);
  auto server = MetricsServer::Start("127.0.0.1:0", registry);
  ASSERT_TRUE(server.ok()) << server.status();
  std::vector<int> slow;
  for (int i = 0; i < 20; ++i) {
    const int fd = slow.emplace_back(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>((*server)->port()));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    (void)!write(fd, "GET /met", 8);
  }
  // Three turns of eight, 3 s each; before, one turn of two took 24 s.
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(Scrape((*server)->port()), HasSubstr("motley_build_info"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(40));
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
