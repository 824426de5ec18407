// Which failure of a first connect is final, and what becomes of one that is not. The channel is the test's.
#include "coordinator/client/first_connection.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/client/connect_reason.h"

namespace motley::client {
namespace {

using testing::HasSubstr;

TEST(ConnectReasonTest, WhatAnAddressAnswersIsItsOwn) {
  for (const char* why : {"Connection refused", "No route to host", "Network is unreachable", "Host is down",
                          "Connection reset by peer", "Permission denied", "Too many open files"}) {
    EXPECT_TRUE(IsOfTheAddress(false, why)) << why;
    EXPECT_TRUE(IsOfTheAddress(true, why)) << why;
  }
}

TEST(ConnectReasonTest, AFileIsASocketsMatterAlone) {
  for (const char* why : {"No such file or directory", "Not a directory", "File name too long"}) {
    EXPECT_FALSE(IsOfTheAddress(false, why)) << why;
    EXPECT_TRUE(IsOfTheAddress(true, why)) << why;
  }
}

TEST(ConnectReasonTest, AnErrnoOfAnotherCallTellsNothing) {
  for (const char* why : {"File exists", "Bad file descriptor", "Is a directory"}) {
    EXPECT_FALSE(IsOfTheAddress(false, why)) << why;
    EXPECT_FALSE(IsOfTheAddress(true, why)) << why;
  }
}

TEST(ConnectReasonTest, GrpcsOwnWordsAreTaken) {
  for (const char* why : {"Domain name not found", "Socket closed", "empty address list"}) {
    EXPECT_TRUE(IsOfTheAddress(false, why)) << why;
  }
}

// Each attempt ends by the next of the reasons, the last stays; an empty one connects.
class Attempts {
 public:
  explicit Attempts(std::vector<std::string> reasons) : reasons_(std::move(reasons)) {}
  absl::Status Await(absl::Duration connect) {
    const Dial dial = {
        .state = [this] { return Now().empty() ? GRPC_CHANNEL_READY : GRPC_CHANNEL_TRANSIENT_FAILURE; },
        .why_not = [this](absl::Time) { return Now(); },
        .changes =
            [this](grpc_connectivity_state, absl::Time) {
              ++attempt_;
              return false;
            },
    };
    return AwaitFirst(dial, {"127.0.0.1:1", connect, connect}, [](const std::string&) {});
  }
  size_t made() const { return attempt_ + 1; }

 private:
  const std::string& Now() const { return reasons_[std::min(attempt_, reasons_.size() - 1)]; }
  std::vector<std::string> reasons_;
  size_t attempt_ = 0;
};

TEST(FirstConnectionTest, AFailureThatIsNotTheAddresssIsTriedAgain) {
  Attempts attempts({"No such file or directory", ""});
  EXPECT_TRUE(attempts.Await(absl::InfiniteDuration()).ok());
  EXPECT_EQ(attempts.made(), 2);
}

TEST(FirstConnectionTest, ARefusalIsSaidAtOnceAlsoBehindSuchAFailure) {
  Attempts at_once({"Connection refused", ""});
  EXPECT_THAT(at_once.Await(absl::InfiniteDuration()).message(), HasSubstr("(Connection refused)"));
  EXPECT_EQ(at_once.made(), 1);
  Attempts behind({"No such file or directory", "Connection refused", ""});
  EXPECT_THAT(behind.Await(absl::InfiniteDuration()).message(), HasSubstr("(Connection refused)"));
  EXPECT_EQ(behind.made(), 2);
}

TEST(FirstConnectionTest, OneThatStaysIsSaidWhenTheTimeIsOver) {
  Attempts attempts({"No such file or directory"});
  const absl::Status status = attempts.Await(absl::Milliseconds(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("no coordinator answers at 127.0.0.1:1 (No such file or directory)"));
}

}  // namespace
}  // namespace motley::client
