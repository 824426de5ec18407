#include "coordinator/state/joining.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace motley::coordinator {
namespace {

constexpr int64_t kHourMs = 3600 * 1000;
constexpr int64_t kNewYear = 1'767'225'600'000;  // 2026-01-01 00:00 UTC

// A token that was made at the new year and is good for an hour.
ClusterState StateWithToken(bool reusable = false) {
  ClusterState state;
  state.tokens["t1"] = {"t1", "hash of t1", reusable, 0, kNewYear, kNewYear + kHourMs};
  return state;
}

JoinAttempt AttemptOf(const std::string& node) { return {"t1", "hash of t1", NodeName(node), "key of " + node, kNewYear + 1000}; }

// As the coordinator does with a decision.
void AdmitNode(ClusterState& state, const JoinAttempt& attempt) {
  const auto decision = DecideJoin(state, attempt);
  ASSERT_TRUE(decision.ok()) << decision.status();
  state.tokens[attempt.token_id] = decision->token;
  state.members[attempt.node] = {attempt.node, attempt.key_hash, attempt.token_id, 1, attempt.unix_ms, 0};
}

bool SaysAll(const absl::Status& status, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (!absl::StrContains(std::string(status.message()), word)) return false;
  }
  return true;
}

TEST(Joining, AMachineWithATokenBecomesANode) {
  const auto decision = DecideJoin(StateWithToken(), AttemptOf("a"));
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_TRUE(decision->is_new);
  EXPECT_EQ(decision->token.id, "t1");
  EXPECT_EQ(decision->token.joins, 1);
  EXPECT_EQ(decision->token.expires_unix_ms, kNewYear + kHourMs);
}

TEST(Joining, WhichPartOfATokenIsWrongIsNotSaid) {
  const ClusterState state = StateWithToken();
  JoinAttempt unknown = AttemptOf("a"), wrong = AttemptOf("a"), none = AttemptOf("a");
  unknown.token_id = "t2";
  wrong.secret_hash = "hash of t2";
  none.secret_hash = "";
  const absl::Status said = DecideJoin(state, unknown).status();
  EXPECT_EQ(said.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(SaysAll(said, {"is not known here", "motley node token"})) << said;
  EXPECT_EQ(DecideJoin(state, wrong).status(), said);
  EXPECT_EQ(DecideJoin(state, none).status(), said);
}

// Else whoever has no secret could ask who is a member and which tokens there are.
TEST(Joining, WithoutTheSecretNothingElseIsLearned) {
  ClusterState state = StateWithToken();
  AdmitNode(state, AttemptOf("a"));
  JoinAttempt wrong = AttemptOf("a");
  wrong.secret_hash = "guess";
  const absl::Status said = DecideJoin(state, wrong).status();
  wrong.node = NodeName("b");
  EXPECT_EQ(DecideJoin(state, wrong).status(), said) << "used";
  wrong.unix_ms = kNewYear + 2 * kHourMs;
  EXPECT_EQ(DecideJoin(state, wrong).status(), said) << "expired";
}

TEST(Joining, ATokenExpiresAtItsTime) {
  const ClusterState state = StateWithToken();
  JoinAttempt attempt = AttemptOf("a");
  attempt.unix_ms = kNewYear + kHourMs - 1;
  EXPECT_TRUE(DecideJoin(state, attempt).ok());
  attempt.unix_ms = kNewYear + kHourMs;
  const absl::Status late = DecideJoin(state, attempt).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(SaysAll(late, {"expired at 2026-01-01 01:00 UTC", "motley node token"})) << late;
}

TEST(Joining, ATokenIsForOneNodeUnlessItIsReusable) {
  ClusterState once = StateWithToken(), often = StateWithToken(true);
  AdmitNode(once, AttemptOf("a"));
  const absl::Status used = DecideJoin(once, AttemptOf("b")).status();
  EXPECT_EQ(used.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(SaysAll(used, {"used already", "motley node token"})) << used;
  AdmitNode(often, AttemptOf("a"));
  AdmitNode(often, AttemptOf("b"));
  EXPECT_EQ(often.tokens["t1"].joins, 2);
}

TEST(Joining, TheNameOfAMemberIsTaken) {
  ClusterState state = StateWithToken(true);
  AdmitNode(state, AttemptOf("a"));
  state.tokens["t2"] = {"t2", "hash of t2", true, 0, kNewYear, kNewYear + kHourMs};
  JoinAttempt other_key = AttemptOf("a"), other_token = AttemptOf("a");
  other_key.key_hash = "another";
  other_token.token_id = "t2", other_token.secret_hash = "hash of t2";
  const absl::Status taken = DecideJoin(state, other_key).status();
  EXPECT_EQ(taken.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(SaysAll(taken, {"node a is a member since 2026-01-01 00:00 UTC", "'motley node forget a'", "--node"})) << taken;
  // By its own key it is the member, whose certificate has expired say.
  const auto again = DecideJoin(state, other_token);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->is_new);
  EXPECT_EQ(again->token.joins, 1);
  state.tokens["t2"].reusable = false, state.tokens["t2"].joins = 1;
  EXPECT_EQ(DecideJoin(state, other_token).status().code(), absl::StatusCode::kAlreadyExists) << "a token that was used";
  state.members.clear();
  EXPECT_TRUE(DecideJoin(state, other_key).ok()) << "forgotten";
}

// Its answer was lost on the way: it has the key, and the token is used by itself.
TEST(Joining, WhoAsksAgainWithTheSameKeyIsAnsweredAgain) {
  for (const bool reusable : {false, true}) {
    ClusterState state = StateWithToken(reusable);
    AdmitNode(state, AttemptOf("a"));
    NodeRecord& node = state.nodes[NodeName("a")];
    node.connected = true;
    const auto again = DecideJoin(state, AttemptOf("a"));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_FALSE(again->is_new);
    EXPECT_EQ(again->token.joins, 1) << "counted once";
    JoinAttempt late = AttemptOf("a");
    late.unix_ms = kNewYear + kHourMs;
    EXPECT_EQ(DecideJoin(state, late).status().code(), absl::StatusCode::kUnauthenticated);
  }
}

TEST(Joining, AWorkerOfTheNameThatIsConnectedKeepsIt) {
  ClusterState state = StateWithToken();
  NodeRecord& node = state.nodes[NodeName("a")];
  node.connected = true;
  const absl::Status taken = DecideJoin(state, AttemptOf("a")).status();
  EXPECT_EQ(taken.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(SaysAll(taken, {"a worker named a is connected without a certificate", "--node"})) << taken;
  EXPECT_TRUE(DecideJoin(state, AttemptOf("b")).ok());
  node.connected = false;
  EXPECT_TRUE(DecideJoin(state, AttemptOf("a")).ok());
}

TEST(Joining, NamesAreChecked) {
  const ClusterState state = StateWithToken();
  for (const std::string& bad : {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string(300, 'a'),
                                 std::string("a\0b", 3), std::string("a b"), std::string("a\n"), std::string("*")}) {
    const absl::Status refused = DecideJoin(state, AttemptOf(bad)).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << bad << ": " << refused;
    EXPECT_LT(refused.message().size(), 500u);
  }
}

TEST(Joining, AWorkerIsWhoItsCertificateSays) {
  ClusterState state = StateWithToken();
  AdmitNode(state, AttemptOf("a"));
  const NodeName a("a"), b("b");
  EXPECT_TRUE(CheckCaller(state, b, std::nullopt).ok()) << "of the coordinator's own machine";
  EXPECT_TRUE(CheckCaller(state, a, NodeKey{a, "key of a"}).ok());
  const auto denied = [&](const NodeName& said, const std::optional<NodeKey>& identity, const std::vector<std::string>& words) {
    const absl::Status status = CheckCaller(state, said, identity);
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_TRUE(SaysAll(status, words)) << status;
  };
  denied(a, std::nullopt, {"node a is a member", "came without one"});
  denied(b, NodeKey{a, "key of a"}, {"the certificate is of node a", "says to be b", "worker.name"});
  denied(a, NodeKey{b, "key of a"}, {"the certificate is of node b", "says to be a"});
  denied(b, NodeKey{b, "key of b"}, {"node b is no member of this cluster any more", "--join TOKEN"});
  denied(a, NodeKey{a, "key from before"}, {"node a joined again on 2026-01-01 00:00 UTC with another key", "--join TOKEN"});
  denied(a, NodeKey{a, ""}, {"another key"});
}

TEST(Joining, TokensEndADayAfterTheyExpired) {
  ClusterState state = StateWithToken();
  state.tokens["t2"] = {"t2", "hash of t2", true, 7, kNewYear, kNewYear + 48 * kHourMs - 1};
  const auto ended = [&](absl::Duration age) { return TokensToEnd(state, {{"t1", age}, {"t2", age}}); };
  EXPECT_TRUE(ended(absl::Hours(1)).empty());
  EXPECT_TRUE(ended(absl::Hours(25)).empty());
  EXPECT_EQ(ended(absl::Hours(25) + absl::Milliseconds(1)), std::vector<std::string>{"t1"});
  EXPECT_EQ(ended(absl::Hours(73)), (std::vector<std::string>{"t1", "t2"}));
  EXPECT_TRUE(TokensToEnd({}, {}).empty());
}

TEST(Joining, AWallClockThatWasSetBackMakesNoTokenGoodAgain) {
  const ClusterState state = StateWithToken();
  JoinAttempt attempt = AttemptOf("a");
  attempt.unix_ms = kNewYear - 200 * 24 * kHourMs;
  attempt.token_age = absl::Hours(1) - absl::Milliseconds(1);
  EXPECT_TRUE(DecideJoin(state, attempt).ok());
  attempt.token_age = absl::Hours(1);
  const absl::Status late = DecideJoin(state, attempt).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(SaysAll(late, {"was good for", "and is older", "motley node token"})) << late;
}

}  // namespace
}  // namespace motley::coordinator
