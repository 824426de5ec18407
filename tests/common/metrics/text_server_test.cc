#include "common/metrics/text_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/common/metrics/http_client.h"

namespace motley {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Text() { return "text of the server\n"; }

TEST(AnswerTo, AGetOfThePathHasTheText) {
  for (const char* request :
       {"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "GET /metrics?x=1 HTTP/1.0\r\n\r\n", "GET /metrics\n\n"}) {
    const auto answer = AnswerTo(request, "/metrics", Text);
    ASSERT_TRUE(answer) << request;
    EXPECT_THAT(*answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(*answer, HasSubstr("Content-Length: 19\r\n"));
    EXPECT_THAT(*answer, HasSubstr("\r\n\r\ntext of the server\n"));
  }
}

TEST(AnswerTo, WaitsForTheWholeRequest) {
  EXPECT_FALSE(AnswerTo("", "/metrics", Text));
  EXPECT_FALSE(AnswerTo("GET /metrics HTTP/1.1\r\nHost: a\r\n", "/metrics", Text));
}

TEST(AnswerTo, RefusesEverythingElse) {
  EXPECT_THAT(*AnswerTo("POST /metrics HTTP/1.1\r\n\r\n", "/metrics", Text), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(*AnswerTo("\r\n\r\n", "/metrics", Text), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(*AnswerTo("GET\r\n\r\n", "/metrics", Text), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(*AnswerTo("GET /metricsx HTTP/1.1\r\n\r\n", "/metrics", Text), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(*AnswerTo(std::string(9000, 'x'), "/metrics", Text), StartsWith("HTTP/1.1 431"));
}

class TextServerTest : public testing::Test {
 protected:
  void Start(TextServerOptions options) {
    auto listener = TcpListener::Open("the address", "127.0.0.1:0");
    ASSERT_TRUE(listener.ok()) << listener.status();
    server_ = std::make_unique<TextServer>(*std::move(listener), "/metrics", Text, options);
  }
  int Begin(const std::string& words) {
    const int fd = Connect(server_->port());
    (void)!write(fd, words.data(), words.size());
    return fd;
  }
  // What comes to the end of a request.
  std::string End(int fd, const std::string& words) {
    (void)!send(fd, words.data(), words.size(), MSG_NOSIGNAL);
    std::string text = ReadAll(fd);
    close(fd);
    return text;
  }
  std::unique_ptr<TextServer> server_;
};

TEST_F(TextServerTest, WhoHasWaitedLongestMakesRoom) {
  Start({.most_connections = 2, .patience = absl::Hours(1)});
  const int first = Begin("GET /me"), second = Begin("GET /me");
  EXPECT_THAT(End(Begin(""), "GET /metrics HTTP/1.1\r\n\r\n"), HasSubstr("text of the server"));
  EXPECT_EQ(End(first, "trics HTTP/1.1\r\n\r\n"), "");
  EXPECT_THAT(End(second, "trics HTTP/1.1\r\n\r\n"), HasSubstr("text of the server"));
}

TEST_F(TextServerTest, HalfARequestEndsWithItsTime) {
  Start({.most_connections = 2, .patience = absl::Milliseconds(20)});
  const int fd = Begin("GET /me");
  EXPECT_EQ(ReadAll(fd), "");
  close(fd);
}

TEST_F(TextServerTest, EndsWithOpenConnections) {
  Start({.most_connections = 2, .patience = absl::Hours(1)});
  const int fd = Begin("GET /me");
  server_.reset();
  EXPECT_EQ(ReadAll(fd), "");
  close(fd);
}

}  // namespace
}  // namespace motley
