#include "coordinator/store/number_key.h"

#include <gtest/gtest.h>

namespace motley::coordinator {
namespace {

const std::string kSecret(64, 'a');

SeenEpoch Given(const NumberKey& key, const std::string& job, int64_t epoch) {
  return {JobId(job), Epoch(epoch), key.TokenOf(JobId(job), Epoch(epoch)), key.id()};
}

TEST(NumberKey, WhatWasGivenIsKnownByEveryCopyOfTheKey) {
  const NumberKey key(kSecret, "store"), copy(kSecret, "store");
  EXPECT_TRUE(copy.Gave(Given(key, "a", 7)));
  EXPECT_TRUE(copy.Gave(key.WithToken({"store", 12})));
  EXPECT_EQ(copy.id(), key.id());
}

TEST(NumberKey, ATokenHoldsForItsNumberJobStoreAndPurposeAlone) {
  const NumberKey key(kSecret, "store");
  SeenEpoch seen = Given(key, "a", 7);
  seen.epoch = Epoch(8);
  EXPECT_FALSE(key.Gave(seen));
  seen = Given(key, "a", 7);
  seen.job = JobId("b");
  EXPECT_FALSE(key.Gave(seen));
  seen = Given(key, "a", 7);
  seen.token.clear();
  EXPECT_FALSE(key.Gave(seen));
  seen.token = "7";
  EXPECT_FALSE(key.Gave(seen));
  StoreMark mark = key.WithToken({"store", 7});
  mark.commits = 8;
  EXPECT_FALSE(key.Gave(mark));
  mark.commits = 7;
  EXPECT_TRUE(key.Gave(mark));
  seen.token = mark.token;
  EXPECT_FALSE(key.Gave(seen)) << "commits are no generation";
  EXPECT_FALSE(NumberKey(kSecret, "another").Gave(Given(key, "a", 7)));
  EXPECT_FALSE(NumberKey(kSecret, "another").Gave(mark));
}

TEST(NumberKey, AnotherKeyGaveNothing) {
  const NumberKey key(kSecret, "store"), other(std::string(64, 'b'), "store");
  EXPECT_NE(other.id(), key.id());
  EXPECT_FALSE(other.Gave(Given(key, "a", 7)));
  SeenEpoch seen = Given(key, "a", 7);
  seen.key_id = other.id();
  EXPECT_FALSE(other.Gave(seen));
  EXPECT_FALSE(other.Gave(key.WithToken({"store", 7})));
}

TEST(NumberKey, AMarkHoldsForOneCheckpointAlone) {
  const NumberKey key(kSecret, "store");
  const JobUid uid(std::string(32, '1')), other(std::string(32, '2'));
  const std::string mark = key.MarkOf(uid, Epoch(3), 40, "digest");
  EXPECT_EQ(mark.size(), 32u);
  EXPECT_TRUE(NumberKey(kSecret, "store").Marked(mark, uid, Epoch(3), 40, "digest")) << "a store that was put back";
  EXPECT_FALSE(key.Marked(mark, other, Epoch(3), 40, "digest"));
  EXPECT_FALSE(key.Marked(mark, uid, Epoch(4), 40, "digest"));
  EXPECT_FALSE(key.Marked(mark, uid, Epoch(3), 60, "digest"));
  EXPECT_FALSE(key.Marked(mark, uid, Epoch(3), 40, "another"));
  EXPECT_FALSE(key.Marked("", uid, Epoch(3), 40, "digest"));
  EXPECT_FALSE(NumberKey(std::string(64, 'b'), "store").Marked(mark, uid, Epoch(3), 40, "digest"));
}

TEST(NumberKey, EachSessionOfANodeHasASecretOfItsOwn) {
  const NumberKey key(kSecret, "store");
  const std::string secret = key.FilesSecretOf(NodeName("a"), 1);
  EXPECT_EQ(secret.size(), 32u);
  EXPECT_NE(secret, key.FilesSecretOf(NodeName("a"), 2));
  EXPECT_NE(secret, key.FilesSecretOf(NodeName("b"), 1));
}

TEST(NumberKey, SecretsAreNewEachTime) {
  const auto a = NumberKey::NewSecret(), b = NumberKey::NewSecret();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->size(), 64u);
  EXPECT_NE(*a, *b);
}

}  // namespace
}  // namespace motley::coordinator
