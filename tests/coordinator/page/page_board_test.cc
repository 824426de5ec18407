#include "coordinator/page/page_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace motley::coordinator {
namespace {

using nlohmann::json;
using ::testing::IsEmpty;

class PageBoardTest : public testing::Test {
 protected:
  json Read(const std::string& topic, int64_t after = 0, const std::string& life = "life") {
    const auto text = board_.Read(topic, after, life);
    EXPECT_TRUE(text.ok()) << text.status();
    return !text.ok() || *text == nullptr ? json() : json::parse(**text);
  }
  void Publish(const std::string& name, PageNews news) {
    for (const PageTopic& topic : board_.LookedAt()) {
      if (topic.name == name) board_.Publish(topic, news);
    }
  }
  static PageNews Rows(std::map<std::string, std::string> rows, std::set<std::string> same = {}) {
    PageNews news;
    news.rows = std::move(rows);
    news.same = std::move(same);
    return news;
  }
  static PageNews Steps(std::vector<std::string> steps) {
    PageNews news;
    news.lists["steps"] = std::move(steps);
    return news;
  }
  FakeClock clock_;
  PageBoard board_{clock_, "life", "digest"};
};

TEST_F(PageBoardTest, WhatNobodyAsksForIsNotMade) {
  EXPECT_THAT(board_.LookedAt(), IsEmpty());
  board_.Publish({"job/a", 1}, Rows({{"job", "{}"}}));
  EXPECT_TRUE(Read("job/a").is_null()) << "nobody had asked";
  ASSERT_EQ(board_.LookedAt().size(), 1u);
  EXPECT_EQ(board_.LookedAt()[0].name, "job/a");
  clock_.Advance(PageBoard::kLookedAt + absl::Seconds(1));
  EXPECT_THAT(board_.LookedAt(), IsEmpty());
}

TEST_F(PageBoardTest, APageIsToldWhatIsNewBehindItsCursor) {
  EXPECT_TRUE(Read("cluster").is_null());
  Publish("cluster", Rows({{"node:a", "1"}, {"node:b", "2"}}));
  const json first = Read("cluster");
  EXPECT_EQ(first["rows"], json::parse(R"({"node:a":1,"node:b":2})"));
  EXPECT_EQ(first["from"], 0);
  EXPECT_EQ(first["life"], "life");
  EXPECT_EQ(first["page"], "digest");
  const int64_t cursor = first["cursor"];
  EXPECT_FALSE(Read("cluster", cursor).contains("rows"));
  Publish("cluster", Rows({{"node:a", "1"}, {"node:b", "3"}}));
  EXPECT_EQ(Read("cluster", cursor)["rows"], json::parse(R"({"node:b":3})"));
  Publish("cluster", Rows({}, {"node:b"}));
  EXPECT_EQ(Read("cluster", cursor)["gone"], json::parse(R"(["node:a"])"));
  EXPECT_EQ(Read("cluster")["rows"], json::parse(R"({"node:b":3})"));
  EXPECT_FALSE(Read("cluster").contains("gone"));
}

TEST_F(PageBoardTest, StepsComeOnceAndTheHistoryToThoseWhoBegin) {
  Read("job/a");
  PageNews news = Steps({"1", "2"});
  news.lists["logs"] = {"\"x\""};
  news.history = "{}";
  Publish("job/a", news);
  const json first = Read("job/a");
  EXPECT_EQ(first["steps"], json::parse("[1,2]"));
  EXPECT_EQ(first["logs"], json::parse(R"(["x"])"));
  EXPECT_TRUE(first.contains("history"));
  Publish("job/a", Steps({"3"}));
  const json next = Read("job/a", first["cursor"]);
  EXPECT_EQ(next["steps"], json::parse("[3]"));
  EXPECT_FALSE(next.contains("history"));
  EXPECT_FALSE(next.contains("logs"));
  EXPECT_EQ(Read("job/a")["steps"], json::parse("[1,2,3]"));
}

TEST_F(PageBoardTest, ACursorOfAnotherLifeOrTheFutureBeginsAnew) {
  Read("job/a");
  PageNews news = Steps({"1"});
  news.rows["job"] = "{}";
  Publish("job/a", news);
  const int64_t cursor = Read("job/a")["cursor"];
  EXPECT_EQ(Read("job/a", cursor)["from"], cursor);
  for (const json& answer : {Read("job/a", cursor, "other"), Read("job/a", cursor + 1)}) {
    EXPECT_EQ(answer["from"], 0);
    EXPECT_TRUE(answer.contains("rows"));
  }
}

// A page that was hidden: what it knew is of a topic that was forgotten meanwhile.
TEST_F(PageBoardTest, WhoComesBackToAForgottenTopicBeginsAnew) {
  Read("job/a");
  Publish("job/a", Rows({{"job", "1"}}));
  const int64_t cursor = Read("job/a")["cursor"];
  clock_.Advance(PageBoard::kLookedAt + absl::Seconds(1));
  EXPECT_THAT(board_.LookedAt(), IsEmpty());
  EXPECT_TRUE(Read("job/a", cursor).is_null());
  Publish("job/a", Rows({{"job", "2"}}));
  for (const int64_t after : {int64_t{1}, cursor}) EXPECT_EQ(Read("job/a", after)["from"], 0);
}

TEST_F(PageBoardTest, NewsOfATopicThatWasForgottenAreDropped) {
  Read("job/a");
  const PageTopic before = board_.LookedAt()[0];
  clock_.Advance(PageBoard::kLookedAt + absl::Seconds(1));
  board_.LookedAt();
  Read("job/a");
  board_.Publish(before, Rows({{"job", "1"}}));
  EXPECT_TRUE(Read("job/a").is_null());
}

TEST_F(PageBoardTest, AnotherJobOfTheSameIdBeginsAnew) {
  Read("job/a");
  Publish("job/a", Steps({"1"}));
  const int64_t cursor = Read("job/a")["cursor"];
  PageNews news = Steps({"7"});
  news.anew = true;
  Publish("job/a", news);
  EXPECT_EQ(Read("job/a", cursor)["from"], 0);
  EXPECT_EQ(Read("job/a", cursor)["steps"], json::parse("[7]"));
}

TEST_F(PageBoardTest, WhoIsFarBehindBeginsAnew) {
  Read("job/a");
  Publish("job/a", Steps({"1"}));
  const int64_t cursor = Read("job/a")["cursor"];
  for (size_t i = 0; i < PageBoard::kMostEntries; ++i) Publish("job/a", Steps({"2"}));
  EXPECT_EQ(Read("job/a", cursor)["from"], cursor) << "it has what went";
  Publish("job/a", Steps({"3"}));
  const json answer = Read("job/a", cursor);
  EXPECT_EQ(answer["from"], 0);
  EXPECT_EQ(answer["steps"].size(), PageBoard::kMostEntries);
}

TEST_F(PageBoardTest, TopicsAreBounded) {
  for (size_t i = 0; i < PageBoard::kMostTopics; ++i) Read("job/" + std::to_string(i));
  EXPECT_EQ(board_.Read("cluster", 0, "life").status().code(), absl::StatusCode::kResourceExhausted);
  clock_.Advance(PageBoard::kLookedAt + absl::Seconds(1));
  EXPECT_TRUE(Read("cluster").is_null());
  EXPECT_EQ(board_.LookedAt().size(), 1u);
}

}  // namespace
}  // namespace motley::coordinator
