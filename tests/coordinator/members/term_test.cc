#include "coordinator/members/term.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "absl/time/clock.h"
#include "common/base/version.h"
#include "coordinator/members/joining.h"
#include "coordinator/members/registry.h"
#include "coordinator/store/sqlite.h"
#include "tests/coordinator/core/core_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kOther[] = "0123456789abcdef";

class TermTest : public CoreTest {
 protected:
  TermTest() {
    RequireTls13();
    config_.workers_tls = true;
    Batch batch;
    batch.authorities.push_back(NewAuthority(1, absl::Now()).value());
    batch.members.push_back({NodeName("n1"), "key", "token", 1, 0, 0, {}});
    EXPECT_TRUE(store_->Commit(batch).ok());
    core_->authority = ClusterAuthority::FromRecords(batch.authorities).value();
    core_->state.members[NodeName("n1")] = batch.members[0];
    EXPECT_TRUE(LoadTerm(*core_).ok());
  }
  static Certificate Shown(const CertificateAuthority& by, const Term& term) {
    return by.IssueCoordinator(term, PrivateKey::Make()->SigningRequest().value(), absl::Now(), absl::Hours(1)).value();
  }
  Certificate Shown(const Term& term) const { return Shown(core_->authority->newest(), term); }
  static NodeDescription Node(const std::string& certificate) {
    NodeDescription node;
    node.protocol = kSessionProtocol;
    node.name = NodeName("n1");
    node.version = kVersion;
    node.incarnation = 7;
    node.data_address = "127.0.0.1";
    node.term_certificate = certificate;
    return node;
  }
  std::vector<std::string> EventKinds() const {
    std::vector<std::string> kinds;
    const auto events = store_->EventsAfter(JobId(), 0, 100);
    for (const EventRecord& event : *events) kinds.push_back(event.kind);
    return kinds;
  }
  bool IsForeign() { return registry_.ToText().find("foreign_reports_total{kind=\"hello_term\"} 1") != std::string::npos; }
};

TEST_F(TermTest, TheFirstIsOneAndStays) {
  const Term first = core_->term;
  EXPECT_EQ(first.number, 1);
  core_->term = Term();
  ASSERT_TRUE(LoadTerm(*core_).ok());
  EXPECT_EQ(core_->term, first);
  EXPECT_EQ(store_->LoadTerms()->size(), 1u) << "written once";
}

TEST_F(TermTest, OfAStoreFromBeforeThereWereTermsItIsTheSameAgain) {
  const Term first = core_->term;
  core_.reset();
  store_.reset();
  ASSERT_TRUE((*Database::Open(folder_ + "/coordinator.db"))->Execute("DELETE FROM terms").ok());
  store_ = SqliteStore::Open(folder_).value();
  core_ = std::make_unique<Core>(config_, clock_, *store_, executor_, registry_, [](std::function<void()> task) { task(); });
  core_->authority = ClusterAuthority::FromRecords(store_->LoadAuthorities().value()).value();
  ASSERT_TRUE(LoadTerm(*core_).ok());
  EXPECT_EQ(core_->term, first) << "so no node takes it for another's";
}

TEST_F(TermTest, WhereTheRowIsLostItsCertificateSaysIt) {
  const Term taken = {7, kOther};
  ASSERT_TRUE(core_->authority->WriteFiles(TlsFolder(config_), taken, absl::Now(), /*with_key=*/true).ok());
  ASSERT_TRUE(LoadTerm(*core_).ok());
  EXPECT_EQ(core_->term, taken);
  EXPECT_EQ(store_->LoadTerms()->back().term, taken);
}

TEST_F(TermTest, WhoIsShownAHigherOneEndsAndKnowsItAtTheNextStart) {
  const absl::Status met = MeetTerm(*core_, Node(Shown({2, kOther}).ToPem()));
  EXPECT_EQ(met.code(), absl::StatusCode::kUnavailable) << "the node has to try another one";
  ASSERT_TRUE(core_->ended);
  EXPECT_TRUE(core_->stopping);
  EXPECT_EQ(core_->ended->code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(core_->ended->message()),
              HasSubstr("node n1 shows term 2 (0123456789abcdef), this coordinator has term 1"));
  EXPECT_THAT(EventKinds(), ElementsAre("taken_over"));
  core_->ended.reset();
  EXPECT_EQ(CheckAlone(*core_).code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(LoadTerm(*core_).ok());
  EXPECT_EQ(core_->term.number, 1) << "a term that another one showed is not its own";
}

TEST_F(TermTest, ItsOwnAndLowerOnesEndNobody) {
  Batch batch;
  batch.terms.push_back({{3, kOther}, true});
  ASSERT_TRUE(store_->Commit(batch).ok());
  ASSERT_TRUE(LoadTerm(*core_).ok());
  EXPECT_TRUE(MeetTerm(*core_, Node("")).ok());
  EXPECT_TRUE(MeetTerm(*core_, Node(Shown({3, kOther}).ToPem())).ok());
  EXPECT_TRUE(MeetTerm(*core_, Node(Shown({2, kOther}).ToPem())).ok());
  EXPECT_FALSE(core_->ended);
}

TEST_F(TermTest, ANodeOfAnotherOneOfTheSameNumberIsNotLetIn) {
  const absl::Status met = MeetTerm(*core_, Node(Shown({1, kOther}).ToPem()));
  EXPECT_EQ(met.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(met.message()), HasSubstr("restore --take-over"));
  EXPECT_FALSE(core_->ended);
}

TEST_F(TermTest, WhatNobodySignedForEndsNobody) {
  EXPECT_TRUE(MeetTerm(*core_, Node(Shown(CertificateAuthority::Make(absl::Now()).value(), {9, kOther}).ToPem())).ok());
  EXPECT_TRUE(IsForeign());
  EXPECT_TRUE(MeetTerm(*core_, Node("no certificate")).ok());
  const auto of_node = core_->authority->newest().IssueNode(NodeName("n1"), PrivateKey::Make()->SigningRequest().value(),
                                                            absl::Now(), absl::Hours(1));
  EXPECT_TRUE(MeetTerm(*core_, Node(of_node->ToPem())).ok());
  EXPECT_FALSE(core_->ended);
}

// Before it is asked whether it is a member: an old coordinator may not know who joined since.
TEST_F(TermTest, AHigherTermIsMetBeforeTheNodeIsJudged) {
  NodeDescription stranger = Node(Shown({2, kOther}).ToPem());
  stranger.name = NodeName("joined-later");
  EXPECT_EQ(Admit(*core_, stranger, std::make_shared<Link>()).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(core_->ended);
}

TEST_F(TermTest, WhereMembersLookIsKeptAndBounded) {
  NodeDescription node = Node("");
  node.coordinators = {"10.0.0.1:7073", "no address", "unix:/run/motley/workers.sock", "b.lab:7073",
                       std::string(300, 'x') + ":1"};
  NoteCoordinators(*core_, node);
  EXPECT_THAT(store_->LoadMembers()->at(0).coordinators, ElementsAre("10.0.0.1:7073", "b.lab:7073"));
  const int64_t commits = store_->mark().commits;
  NoteCoordinators(*core_, node);
  EXPECT_EQ(store_->mark().commits, commits) << "nothing new";
  node.coordinators.assign(20, "c.lab:7073");
  NoteCoordinators(*core_, node);
  EXPECT_EQ(store_->LoadMembers()->at(0).coordinators.size(), kMostCoordinators);
  node.name = NodeName("of-the-socket");
  NoteCoordinators(*core_, node);
}

TEST_F(TermTest, OthersThatShowAHigherOneEndIt) {
  const CertificateAuthority stranger = CertificateAuthority::Make(absl::Now()).value();
  MeetOthers(*core_, {{"a:1", Shown(core_->term)}, {"b:1", Shown(stranger, {7, kOther})}});
  EXPECT_FALSE(core_->ended) << "itself, and who is of another cluster";
  MeetOthers(*core_, {{"a:1", Shown(core_->term)}, {"b:1", Shown({2, kOther})}});
  ASSERT_TRUE(core_->ended);
  EXPECT_THAT(std::string(core_->ended->message()), HasSubstr("b:1 shows term 2"));
}

TEST_F(TermTest, ARivalIsSaidOnce) {
  MeetOthers(*core_, {{"b:1", Shown({1, kOther})}});
  MeetOthers(*core_, {{"b:1", Shown({1, kOther})}});
  EXPECT_FALSE(core_->ended);
  EXPECT_THAT(EventKinds(), ElementsAre("rival_coordinator"));
}

// Another coordinator at an address where members look.
class AnotherCoordinator : public TermTest {
 protected:
  // It shows this term.
  void Serve(const Term& term) {
    const std::string folder = folder_ + "/other";
    ASSERT_TRUE(core_->authority->WriteFiles(folder, term, absl::Now(), /*with_key=*/true).ok());
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", TlsServerCredentials(ClusterAuthority::FilesIn(folder)), &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    NodeDescription node = Node("");
    node.coordinators = {"127.0.0.1:1", absl::StrCat("127.0.0.1:", port_)};  // nobody listens at the first
    NoteCoordinators(*core_, node);
  }
  grpc::CallbackGenericService service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

TEST_F(AnotherCoordinator, OfAHigherTermIsFoundAtStart) {
  Serve({2, kOther});
  const absl::Status status = CheckAlone(*core_);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("127.0.0.1:", port_, " shows term 2")));
  EXPECT_EQ(store_->LoadTerms()->back().term.number, 2) << "known also when it is not there";
}

TEST_F(AnotherCoordinator, OfALowerTermIsNoReasonToWait) {
  Batch batch;
  batch.terms.push_back({{5, kOther}, true});
  ASSERT_TRUE(store_->Commit(batch).ok());
  Serve({2, kOther});
  EXPECT_EQ(LookAtCertificates({"127.0.0.1:1", absl::StrCat("127.0.0.1:", port_)}, absl::Seconds(20)).size(), 1u);
  EXPECT_TRUE(CheckAlone(*core_).ok());
}

TEST_F(AnotherCoordinator, OfTheSameStateKeepsItFromStarting) {
  Serve(core_->term);
  EXPECT_THAT(std::string(CheckAlone(*core_).message()), HasSubstr("a coordinator of the same number runs at"));
}

TEST_F(AnotherCoordinator, WithoutTlsNobodyIsAsked) {
  Serve({2, kOther});
  config_.workers_tls = false;
  config_.workers_listen = "127.0.0.1:0";
  EXPECT_TRUE(CheckAlone(*core_).ok());
}

}  // namespace
}  // namespace motley::coordinator
