// Who may be a node, as the store keeps it: the authority's keys, tokens, members.
#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "coordinator/store/ledger.h"
#include "coordinator/store/maintenance.h"
#include "coordinator/store/mark_file.h"
#include "coordinator/store/records.h"
#include "tests/coordinator/store/store_fixture.h"

namespace motley::coordinator {
namespace {

constexpr int64_t kJoinedMs = 1'767'225'600'000;

// The coordinator's, as main.cc sets it.
class DaemonUmask {
 public:
  DaemonUmask() : before_(umask(0077)) { umask(before_ | 0066); }
  ~DaemonUmask() { umask(before_); }

 private:
  const mode_t before_;
};

mode_t PermissionsOf(const std::string& path) {
  struct stat found = {};
  EXPECT_EQ(stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 07777;
}

template <typename Record>
std::vector<Row> RowsOf(const absl::StatusOr<std::vector<Record>>& records) {
  EXPECT_TRUE(records.ok()) << records.status();
  std::vector<Row> rows;
  if (!records.ok()) return rows;
  for (const Record& record : *records) rows.push_back(ToRow(record));
  return rows;
}

class MembersStoreTest : public StoreTest {
 protected:
  static AuthorityRecord Authority(int64_t number) {
    return {number, "-----BEGIN PRIVATE KEY-----\nk\n", "-----BEGIN CERTIFICATE-----\nc\n", kJoinedMs + number};
  }
  static MemberRecord Member(const std::string& node) {
    return {NodeName(node), "key of " + node, "t1", 1, kJoinedMs, kJoinedMs + 1000, {"10.0.0.1:7073", "[fd00::2]:7073"}};
  }
  // Two of each, the newer before the older, so that the order is the store's.
  static Batch Two() {
    Batch batch;
    batch.authorities = {Authority(10), Authority(9)};
    batch.tokens = {{"t2", "hash of t2", true, 3, kJoinedMs, kJoinedMs + 5},
                    {"t1", "hash of t1", false, 1, kJoinedMs, kJoinedMs + 6}};
    batch.members = {Member("b"), Member("a")};
    return batch;
  }
  static void Commit(SqliteStore& store, Batch batch) {
    const absl::Status status = store.Commit(batch);
    ASSERT_TRUE(status.ok()) << status;
  }
};

TEST_F(MembersStoreTest, WhatWasWrittenComesBack) {
  EXPECT_TRUE(RowsOf(Open()->LoadMembers()).empty());
  const Batch batch = Two();
  Commit(*Open(), batch);
  auto store = Open();
  EXPECT_EQ(store->findings(), 0);
  EXPECT_EQ(RowsOf(store->LoadAuthorities()), (std::vector<Row>{ToRow(batch.authorities[1]), ToRow(batch.authorities[0])}))
      << "the oldest first, by number";
  EXPECT_EQ(RowsOf(store->LoadTokens()), (std::vector<Row>{ToRow(batch.tokens[1]), ToRow(batch.tokens[0])}));
  EXPECT_EQ(RowsOf(store->LoadMembers()), (std::vector<Row>{ToRow(batch.members[1]), ToRow(batch.members[0])}));
}

TEST_F(MembersStoreTest, WhatEndedIsGone) {
  const Batch two = Two();
  Commit(*Open(), two);
  Batch end;
  end.ended_authorities = {9, 77};
  end.ended_tokens = {"t1", "never was"};
  end.ended_members = {NodeName("a"), NodeName("never was")};
  Commit(*Open(), end);
  auto store = Open();
  EXPECT_EQ(store->findings(), 0);
  EXPECT_EQ(RowsOf(store->LoadAuthorities()), std::vector<Row>{ToRow(two.authorities[0])});
  EXPECT_EQ(RowsOf(store->LoadTokens()), std::vector<Row>{ToRow(two.tokens[0])});
  EXPECT_EQ(RowsOf(store->LoadMembers()), std::vector<Row>{ToRow(two.members[0])});
}

TEST_F(MembersStoreTest, OneOfTheSameNameReplacesTheOther) {
  Batch two = Two();
  Commit(*Open(), two);
  Batch again;
  again.authorities = {Authority(9)};
  again.authorities[0].certificate = "another";
  again.tokens = {two.tokens[1]};
  again.tokens[0].joins = 2;
  again.members = {Member("a")};
  again.members[0].key_hash = "another";
  Commit(*Open(), again);
  auto store = Open();
  EXPECT_EQ(store->findings(), 0);
  EXPECT_EQ(RowsOf(store->LoadAuthorities()), (std::vector<Row>{ToRow(again.authorities[0]), ToRow(two.authorities[0])}));
  EXPECT_EQ(RowsOf(store->LoadTokens()), (std::vector<Row>{ToRow(again.tokens[0]), ToRow(two.tokens[0])}));
  EXPECT_EQ(RowsOf(store->LoadMembers()), (std::vector<Row>{ToRow(again.members[0]), ToRow(two.members[0])}));
}

// Before it no machine joined by a token.
TEST_F(MembersStoreTest, AFileOfVersionSixKeepsItsJobsAndTakesMembers) {
  const std::string secret(64, '5');
  {
    auto database = Database::Open(Db());
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE((*database)->Execute(CreateSql(6)).ok());
    Ledger ledger(**database, 6);
    ledger.Reset({{"six", 6}, {}, secret});
    JobRecord job;
    job.id = JobId("old");
    job.step = 12;
    ASSERT_TRUE(ledger.Put(TableId::kJobs, RowOfVersion(6, job)).ok());
    ASSERT_TRUE(ledger.Put(TableId::kDrained, {std::string("n3")}).ok());
    ASSERT_TRUE(ledger.Seal().ok());
    ASSERT_TRUE((*MarkFile::Open(folder_ + "/coordinator.mark"))->Write(ledger.state().mark).ok());
  }
  auto store = Open();
  EXPECT_EQ(store->findings(), 0);
  EXPECT_EQ(store->mark().store_id, "six");
  EXPECT_GE(store->mark().commits, 7);
  EXPECT_EQ(store->secret(), secret);
  ASSERT_EQ(store->LoadJobs()->size(), 1u);
  EXPECT_EQ(store->LoadJobs()->at(0).step, 12);
  EXPECT_EQ(store->LoadDrained()->at(0).value(), "n3");
  EXPECT_TRUE(RowsOf(store->LoadMembers()).empty());
  Commit(*store, Two());
  store.reset();
  store = Open();
  EXPECT_EQ(store->findings(), 0);
  EXPECT_EQ(RowsOf(store->LoadAuthorities()).size(), 2u);
  EXPECT_EQ(RowsOf(store->LoadTokens()).size(), 2u);
  EXPECT_EQ(RowsOf(store->LoadMembers()).size(), 2u);
}

// Before it nobody took a cluster over.
TEST_F(MembersStoreTest, AFileOfVersionSevenKeepsItsMembers) {
  {
    auto database = Database::Open(Db());
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE((*database)->Execute(CreateSql(7)).ok());
    Ledger ledger(**database, 7);
    ledger.Reset({{"seven", 6}, {}, std::string(64, '5')});
    Row member = ToRow(Member("a"));
    member.pop_back();
    ASSERT_TRUE(ledger.Put(TableId::kMembers, member).ok());
    ASSERT_TRUE(ledger.Put(TableId::kAuthorities, ToRow(Authority(1))).ok());
    ASSERT_TRUE(ledger.Seal().ok());
    ASSERT_TRUE((*MarkFile::Open(folder_ + "/coordinator.mark"))->Write(ledger.state().mark).ok());
  }
  auto store = Open();
  EXPECT_EQ(store->findings(), 0);
  ASSERT_EQ(store->LoadMembers()->size(), 1u);
  EXPECT_EQ(store->LoadMembers()->at(0).key_hash, "key of a");
  EXPECT_TRUE(store->LoadMembers()->at(0).coordinators.empty());
  EXPECT_EQ(RowsOf(store->LoadAuthorities()).size(), 1u);
  EXPECT_TRUE(store->LoadTerms()->empty());
}

TEST_F(MembersStoreTest, TermsAreKeptByNumberAndId) {
  Batch batch;
  batch.terms = {{{10, "b"}, true}, {{9, "a"}, false}, {{10, "a"}, false}};
  Commit(*Open(), batch);
  const auto terms = Open()->LoadTerms();
  ASSERT_TRUE(terms.ok()) << terms.status();
  ASSERT_EQ(terms->size(), 3u);
  EXPECT_EQ(terms->at(0).term, (Term{9, "a"}));
  EXPECT_EQ(terms->at(2).term.number, 10);
  EXPECT_EQ(std::count_if(terms->begin(), terms->end(), [](const TermRecord& term) { return term.own; }), 1);
}

TEST_F(MembersStoreTest, FilesThatAreToGoAreKeptUntilTheyAre) {
  const UnwantedRow known{NodeName("a"), {JobId("j"), JobUid(std::string(32, '1')), JobUid()}},
      by_id{NodeName("a"), {JobId("j"), JobUid(), JobUid()}};
  Batch batch;
  batch.unwanted = {known, by_id};
  Commit(*Open(), batch);
  Commit(*Open(), batch);
  auto rows = Open()->LoadUnwanted();
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 2u) << "the same again is one";
  Batch gone;
  gone.gone = {by_id};
  Commit(*Open(), gone);
  rows = Open()->LoadUnwanted();
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(rows->at(0).node, known.node);
  EXPECT_EQ(rows->at(0).files, known.files);
}

TEST_F(MembersStoreTest, OfDamagedMembersOnlyTheseAreLost) {
  const Batch two = Two();
  Commit(*Open(), two);
  ASSERT_TRUE((*Database::Open(Db()))->Execute("UPDATE members SET key_hash = 'of somebody else' WHERE node = 'b'").ok());
  auto store = Open();
  EXPECT_GT(store->findings(), 0);
  EXPECT_EQ(RowsOf(store->LoadMembers()), std::vector<Row>{ToRow(two.members[1])});
  EXPECT_EQ(RowsOf(store->LoadAuthorities()).size(), 2u);
  EXPECT_EQ(RowsOf(store->LoadTokens()).size(), 2u);
  const auto events = store->EventsAfter(JobId(), 0, 100);
  ASSERT_TRUE(events.ok()) << events.status();
  bool said = false;
  for (const EventRecord& event : *events)
    said |= absl::StrContains(event.message, "table members: 1 row is not what was written ('b')");
  EXPECT_TRUE(said);
  store.reset();
  EXPECT_EQ(Open()->findings(), 0) << "once";
}

// A member that somebody puts there has no hash that fits, and one that is taken away is missed.
TEST_F(MembersStoreTest, MembersThatNobodyAdmittedAreNone) {
  Commit(*Open(), Two());
  ASSERT_TRUE(
      (*Database::Open(Db()))
          ->Execute(
              "INSERT INTO members SELECT 'c', key_hash, token, authority, joined_unix_ms, until_unix_ms, coordinators, hash "
              "FROM members WHERE node = 'b'; DELETE FROM tokens WHERE id = 't1'")
          .ok());
  auto store = Open();
  EXPECT_GE(store->findings(), 2);
  EXPECT_EQ(RowsOf(store->LoadMembers()).size(), 2u);
  EXPECT_EQ(RowsOf(store->LoadTokens()).size(), 1u);
}

// The authority's private key is in it.
TEST_F(MembersStoreTest, ABackupHoldsTheAuthorityForItsOwnerAlone) {
  const DaemonUmask umask;
  const Batch two = Two();
  auto store = Open();
  Commit(*store, two);
  EXPECT_EQ(PermissionsOf(Db()), 0600u);
  const auto summary = BackUpStore(folder_, folder_ + "/backup");
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->rows[static_cast<size_t>(TableId::kAuthorities)], 2);
  EXPECT_EQ(PermissionsOf(folder_ + "/backup"), 0600u);
  ASSERT_TRUE(RestoreStore(folder_ + "/elsewhere", {folder_ + "/backup"}).ok());
  EXPECT_EQ(PermissionsOf(folder_ + "/elsewhere/coordinator.db"), 0600u);
  const auto restored = SqliteStore::Open(folder_ + "/elsewhere");
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(RowsOf((*restored)->LoadAuthorities()), RowsOf(store->LoadAuthorities()));
}

}  // namespace
}  // namespace motley::coordinator
