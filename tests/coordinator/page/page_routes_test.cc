#include "coordinator/page/page_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "coordinator/page/page_key.h"
#include "coordinator/page/web/page_text.h"
#include "tests/coordinator/store/store_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kKey[] = "0123456789abcdef0123456789abcdef";

class PageRoutesTest : public testing::Test {
 protected:
  TextAnswer Get(const std::string& path, const std::string& key = kKey) {
    const std::string request =
        absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: a\r\n", key.empty() ? "" : "Motley-Key: " + key + "\r\n", "\r\n");
    return *AnswerTo(request, PageRoutes(board_, kKey));
  }
  void PublishNode() {
    PageNews news;
    news.rows["node:a"] = "{}";
    for (const PageTopic& topic : board_.LookedAt()) board_.Publish(topic, news);
  }
  FakeClock clock_;
  PageBoard board_{clock_, "life", PageDigest()};
};

TEST_F(PageRoutesTest, ThePageIsForAnybodyAndSaysNothing) {
  const TextAnswer page = Get("/", "");
  EXPECT_EQ(page.status, "200 OK");
  EXPECT_THAT(*page.body, HasSubstr("<!doctype html>"));
  EXPECT_THAT(*page.body, Not(HasSubstr(kKey)));
  EXPECT_THAT(page.headers, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(page.headers, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(page.headers, Not(HasSubstr("unsafe")));
  EXPECT_THAT(page.headers, Not(HasSubstr("Access-Control")));
  EXPECT_LE(page.body->size(), 150u << 10);
}

TEST_F(PageRoutesTest, DataNeedTheKey) {
  for (const std::string& key : {std::string(), std::string("0"), std::string(32, '0'), std::string(kKey) + "0"}) {
    const TextAnswer answer = Get("/data/cluster", key);
    EXPECT_EQ(answer.status, "401 Unauthorized") << key;
    EXPECT_THAT(*answer.body, HasSubstr("motley open"));
  }
  EXPECT_TRUE(board_.LookedAt().empty()) << "who has no key makes no work";
  EXPECT_EQ(*Get("/data/cluster").body, "{\"again\":true}");
  PublishNode();
  EXPECT_THAT(*Get("/data/cluster").body, HasSubstr("\"node:a\":{}"));
  EXPECT_THAT(*Get("/data/cluster?after=2&life=life").body, Not(HasSubstr("node:a")));
}

TEST_F(PageRoutesTest, TooManyPagesAreRefused) {
  for (size_t i = 0; i < PageBoard::kMostTopics; ++i) Get(absl::StrCat("/data/job/", i));
  const TextAnswer answer = Get("/data/cluster");
  EXPECT_EQ(answer.status, "503 Service Unavailable");
  EXPECT_THAT(*answer.body, HasSubstr("close a page"));
}

TEST_F(PageRoutesTest, OtherPathsAreNotThere) {
  for (const char* path : {"/data", "/data/", "/data/job/", "/data/job/A", "/data/job/../x", "/data/job/a/b", "/data/job/a%00",
                           "/x", "/index.html", "/data/cluster/x", "/metric"}) {
    EXPECT_EQ(Get(path).status, "404 Not Found") << path;
  }
  EXPECT_TRUE(board_.LookedAt().empty());
}

TEST_F(PageRoutesTest, WrongCursorsBeginAnew) {
  Get("/data/cluster");
  PublishNode();
  for (const char* query :
       {"?after=x", "?after=-1", "?after=99999999999999999999&life=life", "?", "?after", "?life=life&after=1x"}) {
    EXPECT_THAT(*Get(absl::StrCat("/data/cluster", query)).body, HasSubstr("\"from\":0,")) << query;
  }
}

TEST(PageText, AReportHoldsNoKeyAndAsksNobody) {
  const std::string html = ReportHtml("a-job", "{\"x\":\"</script><script>alert(1)</script>\"}");
  EXPECT_THAT(html, HasSubstr("connect-src 'none'"));
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, HasSubstr("\\u003c/script>"));
  EXPECT_THAT(html, HasSubstr("name=\"report\" content=\"a-job\""));
  for (const char* address : {"src=\"", "href=\"http", "url(", "@import"}) EXPECT_THAT(html, Not(HasSubstr(address)));
}

class PageKeyTest : public StoreTest {};

TEST_F(PageKeyTest, IsMadeOnceForItsOwnerAlone) {
  const auto key = PageKey(folder_);
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(key->size(), 32u);
  EXPECT_EQ(*PageKey(folder_), *key);
  struct stat status;
  ASSERT_EQ(stat((folder_ + "/page.key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_TRUE(WriteFileDurably(folder_ + "/page.key", "no key\n").ok());
  const auto other = PageKey(folder_);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->size(), 32u);
  EXPECT_NE(*other, *key);
}

}  // namespace
}  // namespace motley::coordinator
