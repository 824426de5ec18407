// How long a token is good when clocks jump, and while the coordinator is down.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "common/tls/certificate_authority.h"
#include "coordinator/members/joining.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kDay = absl::Hours(24);

class TokenLife : public CoreTest {
 protected:
  TokenLife() {
    config_.workers_tls = true;
    clock_.MoveWall(20'000 * kDay);
    Restart("one");
  }
  // As after a restart of the coordinator, in the given start of the machine.
  void Restart(const std::string& boot) {
    core_.reset();
    store_.reset();
    store_ = *SqliteStore::Open(folder_);
    core_ = std::make_unique<Core>(config_, clock_, *store_, executor_, registry_, [](std::function<void()> task) { task(); });
    core_->counted.Load(boot);
    ASSERT_TRUE(LoadMembers(*core_).ok());
  }
  std::string Token() {
    const auto token = MakeToken(*core_, absl::Hours(1), /*reusable=*/true);
    EXPECT_TRUE(token.ok()) << token.status();
    return ToText(*token);
  }
  // Empty: it was let in.
  std::string JoinBy(const std::string& token) {
    const std::string request = PrivateKey::Make()->SigningRequest().value();
    const NodeName node("n" + std::to_string(++nodes_));
    return std::string(JoinNode(*core_, token, node, request, "here").status().message());
  }
  int nodes_ = 0;
};

TEST_F(TokenLife, AWallClockThatJumpsMakesItNoLonger) {
  for (const absl::Duration jump : {200 * kDay, -200 * kDay}) {
    for (const bool for_ever : {false, true}) {
      const std::string token = Token();
      EXPECT_EQ(JoinBy(token), "");
      clock_.MoveWall(jump);
      clock_.Advance(absl::Minutes(1));
      EXPECT_EQ(JoinBy(token) == "", jump < absl::ZeroDuration()) << "ahead it is expired, as far as anybody knows";
      if (!for_ever) clock_.MoveWall(-jump);
      clock_.Advance(absl::Minutes(58));
      if (!for_ever) {
        EXPECT_EQ(JoinBy(token), "") << "a minute did nothing to it";
      }
      clock_.Advance(absl::Minutes(1));
      EXPECT_NE(JoinBy(token), "");
    }
  }
}

TEST_F(TokenLife, ItEndsWhileTheCoordinatorIsDownWhateverTheWallClockSays) {
  const std::string token = Token();
  clock_.Advance(absl::Minutes(30));
  clock_.MoveWall(-200 * kDay);
  Restart("one");
  EXPECT_EQ(JoinBy(token), "");
  clock_.Advance(absl::Minutes(30));
  Restart("one");
  EXPECT_THAT(JoinBy(token), HasSubstr("is older"));
}

TEST_F(TokenLife, AfterAStartOfTheMachineItIsAsOldAsTheWallClockSays) {
  const std::string token = Token();
  clock_.MoveWall(absl::Minutes(59));  // the steady clock stood still, or began anew
  Restart("two");
  EXPECT_EQ(JoinBy(token), "");
  clock_.MoveWall(-absl::Minutes(30));
  clock_.Advance(absl::Minutes(1));
  EXPECT_THAT(JoinBy(token), HasSubstr("is older"));
  clock_.MoveWall(absl::Minutes(30));
  Restart("three");
  EXPECT_THAT(JoinBy(token), HasSubstr("expired at"));
}

TEST_F(TokenLife, AWallClockThatStandsBackAfterAStartOfTheMachineEndsAll) {
  const std::string token = Token();
  clock_.MoveWall(-absl::Minutes(1));
  Restart("two");
  EXPECT_THAT(JoinBy(token), HasSubstr("not known here"));
  const auto events = store_->EventsAfter(JobId(), 0, 100);
  ASSERT_TRUE(events.ok());
  EXPECT_TRUE(std::any_of(events->begin(), events->end(), [](const EventRecord& event) {
    return event.kind == kind::kTokenRevoked && event.message.find("1 token is ended") == 0;
  }));
  EXPECT_EQ(JoinBy(Token()), "");
}

}  // namespace
}  // namespace motley::coordinator
