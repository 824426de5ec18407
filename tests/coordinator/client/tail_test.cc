#include "coordinator/client/tail.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

TEST(TailTest, SinceIsAnAgeOrATime) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  const absl::Time now = absl::FromUnixSeconds(1'000'000'000);  // 2001-09-09 01:46:40
  EXPECT_EQ(*ParseSince("10m", now, utc), now - absl::Minutes(10));
  EXPECT_EQ(*ParseSince("1h30m", now, utc), now - absl::Minutes(90));
  EXPECT_EQ(*ParseSince("2001-09-09 01:46:40", now, utc), now);
  EXPECT_EQ(*ParseSince("2001-09-09T03:46:40+02:00", now, utc), now);
  EXPECT_EQ(*ParseSince("2001-09-09", now, utc), now - absl::Hours(1) - absl::Minutes(46) - absl::Seconds(40));
  for (const char* wrong : {"", "yesterday", "-5m", "10"}) {
    EXPECT_NE(std::string(ParseSince(wrong, now, utc).status().message()).find("such as 10m"), std::string::npos) << wrong;
  }
}

TEST(TailTest, TheNewestLinesAndThoseSinceATime) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_RUNNING);
  for (int i = 1; i <= 5; ++i) {
    v1::LogLine& line = fake.lines.emplace_back();
    line.set_sequence(i);
    line.set_unix_ms(int64_t{1'000'000'000'000} + 60'000 * i);
    line.set_text(absl::StrCat("line ", i));
    v1::Event& event = fake.events.emplace_back();
    event.set_sequence(i);
    event.set_unix_ms(line.unix_ms());
    event.set_job_id("j");
    event.set_kind("replan");
    event.set_message(line.text());
  }
  for (const char* command : {"logs", "events"}) {
    const std::string last = Motley(fake, {command, "j", "-n", "2"}).out;
    EXPECT_EQ(last.find("line 3"), std::string::npos) << last;
    EXPECT_NE(last.find("line 4"), std::string::npos) << last;
    EXPECT_EQ(Motley(fake, {command, "j", "-n", "0"}).out, "") << command;
    const std::string since = Motley(fake, {command, "j", "--since", "2001-09-09T01:50:40Z"}).out;
    EXPECT_EQ(since.find("line 3"), std::string::npos) << since;
    EXPECT_NE(since.find("line 4"), std::string::npos) << since;
    EXPECT_EQ(Motley(fake, {command, "j", "--since", "soon"}).code, 64);
  }
  EXPECT_NE(Motley(fake, {"logs", "j", "-n", "1", "-f"}).out.find("line 5"), std::string::npos);
  fake.lines.back().set_source("coordinator");
  EXPECT_EQ(Motley(fake, {"logs", "j"}).out.find("line 5"), std::string::npos) << "what happened is told by events";
}

}  // namespace
}  // namespace motley::client
