#include "worker/engine/transport/meeting_words.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "common/base/gmac.h"

namespace motley::engine {
namespace {

const MeetingPair kPair = {std::string(16, 'a'), std::string(16, 'b'), 2, 3, 7};
const std::string kNonceA(kNonceBytes, '1'), kNonceB(kNonceBytes, '2');

std::vector<MeetingPair> OtherPairs() {
  std::vector<MeetingPair> others(6, kPair);
  others[0].callers_secret[3] ^= 1;
  others[1].callees_secret[3] ^= 1;
  others[2].caller = 1;
  others[3].callee = 4;
  others[4].channel = 8;
  std::swap(others[5].callers_secret, others[5].callees_secret);
  return others;
}

TEST(MeetingWords, BothKnowEachOther) {
  const std::string hello = Hello(kPair, kNonceA), welcome = Welcome(kPair, hello, kNonceB);
  EXPECT_TRUE(IsHello(kPair, hello));
  EXPECT_TRUE(IsWelcome(kPair, hello, welcome));
  EXPECT_TRUE(IsConfirm(kPair, hello, welcome, Confirm(kPair, hello, welcome)));
}

TEST(MeetingWords, NoWordHoldsASecret) {
  const std::string hello = Hello(kPair, kNonceA), welcome = Welcome(kPair, hello, kNonceB);
  for (const std::string& said : {hello, welcome, Confirm(kPair, hello, welcome)}) {
    for (const std::string& secret : {kPair.callers_secret, kPair.callees_secret}) {
      EXPECT_EQ(said.find(secret.substr(0, 4)), std::string::npos);
    }
  }
}

TEST(MeetingWords, OfAnotherPairTheyProveNothing) {
  const std::string hello = Hello(kPair, kNonceA), welcome = Welcome(kPair, hello, kNonceB);
  for (const MeetingPair& other : OtherPairs()) {
    EXPECT_FALSE(IsHello(other, hello));
    EXPECT_FALSE(IsWelcome(other, Hello(other, kNonceA), welcome));
  }
}

// Who listened to one meeting says what it heard in another.
TEST(MeetingWords, SaidAgainTheyProveNothing) {
  const std::string hello = Hello(kPair, kNonceA), welcome = Welcome(kPair, hello, kNonceB);
  const std::string confirm = Confirm(kPair, hello, welcome);
  const std::string later_hello = Hello(kPair, std::string(kNonceBytes, '3'));
  const std::string later_welcome = Welcome(kPair, hello, std::string(kNonceBytes, '4'));
  EXPECT_FALSE(IsWelcome(kPair, later_hello, welcome));
  EXPECT_FALSE(IsConfirm(kPair, hello, later_welcome, confirm));
}

TEST(MeetingWords, EachConnectionAndDirectionHasAKeyOfItsOwn) {
  const std::string hello = Hello(kPair, kNonceA), welcome = Welcome(kPair, hello, kNonceB);
  const std::string other_hello = Hello(kPair, kNonceB), other_welcome = Welcome(kPair, hello, kNonceA);
  std::set<std::string> keys;
  const auto add = [&](const MeetingPair& pair, const std::string& said, const std::string& answered) {
    const absl::StatusOr<ConnectionKeys> made = KeysOf(pair, said, answered);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->callers.size(), Gmac::kKeyBytes);
    EXPECT_TRUE(keys.insert(made->callers).second && keys.insert(made->callees).second);
  };
  add(kPair, hello, welcome);
  add(kPair, other_hello, welcome);
  add(kPair, hello, other_welcome);
  MeetingPair with_other_secret = kPair;
  with_other_secret.callers_secret[3] ^= 1;
  add(with_other_secret, hello, welcome);
  for (const MeetingPair& other : OtherPairs()) {
    const std::string said = Hello(other, kNonceA);
    add(other, said, Welcome(other, said, kNonceB));
  }
  const absl::StatusOr<ConnectionKeys> again = KeysOf(kPair, hello, welcome);
  EXPECT_TRUE(keys.contains(again->callers) && keys.contains(again->callees)) << "both ends make the same";
}

TEST(MeetingWords, CutAlteredOrEmptyTheyProveNothing) {
  const std::string hello = Hello(kPair, kNonceA), welcome = Welcome(kPair, hello, kNonceB);
  for (size_t at = 0; at < hello.size(); ++at) {
    std::string altered = hello;
    altered[at] ^= 1;
    EXPECT_FALSE(IsHello(kPair, altered)) << at;
  }
  for (const std::string& said : {std::string(), hello.substr(1), hello + "x"}) {
    EXPECT_FALSE(IsHello(kPair, said));
    EXPECT_FALSE(IsWelcome(kPair, hello, said));
    EXPECT_FALSE(IsConfirm(kPair, hello, welcome, said));
  }
}

}  // namespace
}  // namespace motley::engine
