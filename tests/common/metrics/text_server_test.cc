#include "common/metrics/text_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/common/metrics/http_client.h"

namespace motley {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TextAnswer Text(const TextRequest& request) {
  if (request.path != "/metrics") return NoSuchPath("/metrics");
  return TextAnswerOf("text of the server\n");
}

std::string AllOf(const TextAnswer& answer) { return HeadOf(answer) + *answer.body; }

TEST(AnswerTo, AGetOfThePathHasTheText) {
  for (const char* request :
       {"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "GET /metrics?x=1 HTTP/1.0\r\n\r\n", "GET /metrics\n\n"}) {
    const auto answer = AnswerTo(request, Text);
    ASSERT_TRUE(answer) << request;
    EXPECT_THAT(AllOf(*answer), StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(AllOf(*answer), HasSubstr("Content-Length: 19\r\n"));
    EXPECT_THAT(AllOf(*answer), HasSubstr("\r\n\r\ntext of the server\n"));
  }
}

TEST(AnswerTo, WaitsForTheWholeRequest) {
  EXPECT_FALSE(AnswerTo("", Text));
  EXPECT_FALSE(AnswerTo("GET /metrics HTTP/1.1\r\nHost: a\r\n", Text));
}

TEST(AnswerTo, RefusesEverythingElse) {
  EXPECT_THAT(HeadOf(*AnswerTo("POST /metrics HTTP/1.1\r\n\r\n", Text)), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(HeadOf(*AnswerTo("\r\n\r\n", Text)), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(HeadOf(*AnswerTo("GET\r\n\r\n", Text)), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(HeadOf(*AnswerTo("GET /metricsx HTTP/1.1\r\n\r\n", Text)), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(HeadOf(*AnswerTo(std::string(9000, 'x'), Text)), StartsWith("HTTP/1.1 431"));
}

TEST(AnswerTo, GivesPathQueryAndHeaders) {
  std::string path, query, key, host, none;
  const auto answer = AnswerTo("GET /data/job/a?after=3&life=x HTTP/1.1\r\nHost: here\r\nMOTLEY-key:  abc \r\n\r\n",
                               [&](const TextRequest& request) {
                                 path = std::string(request.path), query = std::string(request.query);
                                 key = std::string(request.Header("Motley-Key")), host = std::string(request.Header("host"));
                                 none = std::string(request.Header("key"));
                                 return TextAnswerOf("");
                               });
  ASSERT_TRUE(answer);
  EXPECT_EQ(path, "/data/job/a");
  EXPECT_EQ(query, "after=3&life=x");
  EXPECT_EQ(key, "abc");
  EXPECT_EQ(host, "here");
  EXPECT_EQ(none, "");
}

TEST(AnswerTo, DecodesNothing) {
  for (const char* path : {"/../metrics", "/%6detrics", "/metrics%00", "//metrics", "metrics", "*", "http://a/metrics"}) {
    EXPECT_THAT(HeadOf(*AnswerTo(absl::StrCat("GET ", path, " HTTP/1.1\r\n\r\n"), Text)), StartsWith("HTTP/1.1 404")) << path;
  }
}

TEST(HeadOf, HasTheAnswersOwnHeaders) {
  TextAnswer answer = TextAnswerOf("{}");
  answer.type = "application/json";
  answer.headers = "Cache-Control: no-store\r\n";
  EXPECT_EQ(HeadOf(answer),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nContent-Length: 2\r\n"
            "Connection: close\r\n\r\n");
}

class TextServerTest : public testing::Test {
 protected:
  void Start(TextServerOptions options) {
    auto listener = TcpListener::Open("the address", "127.0.0.1:0");
    ASSERT_TRUE(listener.ok()) << listener.status();
    server_ = std::make_unique<TextServer>(*std::move(listener), route_, options);
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
  TextRoute route_ = Text;
  std::unique_ptr<TextServer> server_;
};

// Longer than what the kernel takes for a reader that does not read.
TEST_F(TextServerTest, SlowReadersOfPagesLeaveRoomForOthers) {
  route_ = [](const TextRequest& request) {
    if (request.path != "/page") return Text(request);
    TextAnswer answer = TextAnswerOf(std::string(64 << 20, 'x'));
    answer.of_page = true;
    return answer;
  };
  Start({.most_connections = 4, .patience = absl::Hours(1)});
  std::vector<int> slow;
  for (int i = 0; i < 8; ++i) slow.push_back(Begin("GET /page HTTP/1.1\r\n\r\n"));
  const int metrics = Begin("GET /me");
  EXPECT_THAT(End(Begin(""), "GET /metrics HTTP/1.1\r\n\r\n"), HasSubstr("text of the server"));
  EXPECT_THAT(End(metrics, "trics HTTP/1.1\r\n\r\n"), HasSubstr("text of the server"));
  for (const int fd : slow) close(fd);
}

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
