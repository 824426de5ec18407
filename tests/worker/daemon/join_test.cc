// A machine joins: whom it shows its token, and what it takes for a certificate.
#include "worker/daemon/join.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "tests/worker/daemon/joining_coordinator.h"

namespace motley::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class JoinTest : public testing::Test {
 protected:
  JoinTest() { RequireTls13(); }

  absl::StatusOr<absl::Time> JoinAt(const std::string& address, absl::Duration patience = absl::Seconds(20)) const {
    const auto joined = JoinCluster({token_, address, NodeName("n1")}, identity_, patience);
    EXPECT_THAT(std::string(joined.status().message()), Not(HasSubstr(token_.secret)));
    return joined;
  }
  // That nobody is found there, and why.
  void ExpectUnavailable(const std::string& address, const std::string& why) const {
    const absl::Status status = JoinAt(address, absl::Milliseconds(500)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(address), HasSubstr("does not answer by TLS within 500ms: " + why)));
    EXPECT_FALSE(FileExists(identity_.path())) << "nothing was begun";
  }
  // That the answer is not taken, whatever it is.
  void ExpectNotStored(const JoiningCoordinator& coordinator, const std::string& why) const {
    const absl::Status status = JoinAt(coordinator.address()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << why << ": " << status;
    EXPECT_FALSE(FileExists(identity_.path() + "/node.crt")) << why;
    EXPECT_FALSE(FileExists(identity_.path() + "/authorities.crt")) << why;
  }

  const CertificateAuthority authority_ = CertificateAuthority::Make(absl::Now()).value();
  const CertificateAuthority other_ = CertificateAuthority::Make(absl::Now()).value();
  const JoinToken token_ = MakeJoinToken(authority_.certificate()).value();
  const TempFolder folder_;
  const IdentityFolder identity_{folder_ / "identity"};
};

TEST_F(JoinTest, WritesAnIdentityThatIsGood) {
  const JoiningCoordinator coordinator(authority_);
  const auto joined = JoinAt(coordinator.address());
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(LocalEndOfWay(coordinator.address()).value(), "127.0.0.1");
  const auto identity = identity_.Load();
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(CheckIdentity(*identity, NodeName("n1"), absl::Now()), absl::OkStatus());
  EXPECT_EQ(*joined, Certificate::FromPem(identity->certificate)->front().not_after());
  EXPECT_EQ(identity->authorities, authority_.certificate().ToPem());
  // Of the machine goes out no more than this.
  ASSERT_EQ(coordinator.requests().size(), 1u);
  const v1::JoinRequest request = coordinator.requests()[0];
  EXPECT_EQ(request.token(), ToText(token_));
  EXPECT_EQ(request.node(), "n1");
  EXPECT_EQ(KeyHashOfRequest(request.signing_request()).value(), PrivateKey::FromPem(identity->key)->PublicHash());
  EXPECT_THAT(request.signing_request(), Not(HasSubstr("PRIVATE KEY")));
}

TEST_F(JoinTest, ShowsItsTokenToItsOwnClusterAlone) {
  const JoiningCoordinator elsewhere(other_);
  const absl::Status status = JoinAt(elsewhere.address()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not of the cluster that the token is for"));
  EXPECT_TRUE(elsewhere.requests().empty());
  EXPECT_FALSE(FileExists(identity_.path())) << "nothing was begun";
}

// The authority's certificate is no secret: anybody can show it behind one of his own.
TEST_F(JoinTest, ShowsItsTokenToNobodyInBetween) {
  const auto of_other = [&](const std::string& request) {
    return other_.IssueCoordinator(Term{1, "0123456789abcdef"}, request, absl::Now(), JoiningCoordinator::kLifetime);
  };
  const JoiningCoordinator between(authority_, of_other);
  EXPECT_EQ(JoinAt(between.address()).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(between.requests().empty());
  const auto of_node = [&](const std::string& request) {
    return authority_.IssueNode(NodeName("n2"), request, absl::Now(), JoiningCoordinator::kLifetime);
  };
  const JoiningCoordinator member(authority_, of_node);
  EXPECT_FALSE(JoinAt(member.address()).ok()) << "a node of the cluster is no coordinator";
  EXPECT_TRUE(member.requests().empty());
  EXPECT_FALSE(identity_.Load().ok());
}

// To a machine whose clock is three hours behind the certificate is of times to come.
TEST_F(JoinTest, AClockThatIsHoursBehindIsSaid) {
  const JoiningCoordinator coordinator(authority_, [&](const std::string& request) {
    return authority_.IssueCoordinator(Term{1, "0123456789abcdef"}, request, absl::Now() + absl::Hours(3),
                                       JoiningCoordinator::kLifetime);
  });
  const absl::Status status = JoinAt(coordinator.address()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the coordinator's certificate is valid from 20"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("UTC: set the clock"));
  EXPECT_TRUE(coordinator.requests().empty()) << "the token was not shown";
}

TEST_F(JoinTest, BothTimesAreSaidWhicheverIsWrong) {
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);  // 2027-01-15 08:00
  const CertificateAuthority authority = CertificateAuthority::Make(now).value();
  const PrivateKey key = PrivateKey::Make().value();
  const Certificate coordinator =
      authority.IssueCoordinator(Term{1, "0123456789abcdef"}, key.SigningRequest().value(), now, absl::Hours(24)).value();
  const auto check = [&](absl::Time at) { return CheckClock(coordinator, authority.certificate(), at); };
  EXPECT_EQ(check(now), absl::OkStatus());
  EXPECT_EQ(check(now - absl::Hours(3)).message(),
            "the coordinator's certificate is valid from 2027-01-15 07:00 UTC on, and this machine's clock says 2027-01-15 05:00 "
            "UTC: set the clock");
  EXPECT_EQ(check(now + absl::Hours(25)).message(),
            "the coordinator's certificate was valid until 2027-01-16 08:00 UTC, and this machine's clock says 2027-01-16 09:00 "
            "UTC: set the clock, or the coordinator's, where that is the one that is wrong");
}

TEST_F(JoinTest, RefusalsReachWhoAsked) {
  JoiningCoordinator coordinator(authority_);
  const auto refuse = [&](grpc::StatusCode code, const char* words) {
    coordinator.AnswerWith([=](const auto&, auto&) { return grpc::Status(code, words); });
    return JoinAt(coordinator.address()).status();
  };
  EXPECT_EQ(refuse(grpc::StatusCode::ALREADY_EXISTS, "the name n1 is taken"), absl::AlreadyExistsError("the name n1 is taken"));
  EXPECT_EQ(refuse(grpc::StatusCode::UNAUTHENTICATED, "the token expired"), absl::UnauthenticatedError("the token expired"));
  EXPECT_FALSE(identity_.Load().ok());
  EXPECT_EQ(coordinator.requests().size(), 2u);
}

// Who asks again is known by its key, so half a join can be finished.
TEST_F(JoinTest, AskedAgainItShowsTheSameKey) {
  JoiningCoordinator coordinator(authority_);
  coordinator.AnswerWith([](const auto&, auto&) { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "restarting"); });
  EXPECT_EQ(JoinAt(coordinator.address()).status().code(), absl::StatusCode::kUnavailable);
  coordinator.AnswerWith(nullptr);
  EXPECT_TRUE(JoinAt(coordinator.address()).ok());
  EXPECT_TRUE(JoinAt(coordinator.address()).ok());
  std::vector<std::string> keys;
  for (const v1::JoinRequest& request : coordinator.requests()) {
    keys.push_back(KeyHashOfRequest(request.signing_request()).value());
  }
  EXPECT_EQ(keys, std::vector<std::string>(3, identity_.LoadOrMakeKey()->PublicHash()));
}

TEST_F(JoinTest, NobodyThereIsSaidSoon) {
  // A port that is taken and not listened at: nobody else gets it meanwhile.
  const FileDescriptor taken(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET, address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(taken.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::string there = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  ExpectUnavailable(there, "Connection refused: does motley-coordinator run there");
  // Connections are accepted by the kernel, and nobody says a word.
  ASSERT_EQ(listen(taken.get(), 8), 0);
  ExpectUnavailable(there, "something answers there, but not by TLS");
}

TEST_F(JoinTest, AServerWithoutTlsIsNobody) {
  v1::WorkerService::Service service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  ExpectUnavailable(absl::StrCat("127.0.0.1:", port), "something answers there, but not by TLS");
  server->Shutdown(std::chrono::system_clock::now());
}

TEST_F(JoinTest, WhatComesBackIsLookedAt) {
  JoiningCoordinator coordinator(authority_);
  const auto spoil = [&](const std::function<void(v1::JoinRequest&, v1::JoinResponse&)>& change, const char* why) {
    coordinator.AnswerWith([&](v1::JoinRequest request, v1::JoinResponse& response) {
      const grpc::Status status = coordinator.LetIn(request, response);
      change(request, response);
      return status;
    });
    ExpectNotStored(coordinator, why);
  };
  spoil([](auto&, auto& response) { response.Clear(); }, "empty");
  spoil([](auto&, auto& response) { response.set_certificate("rubbish"); }, "rubbish");
  spoil([](auto&, auto& response) { response.set_authorities("rubbish"); }, "rubbish authorities");
  spoil([&](auto&, auto& response) { response.set_authorities(other_.certificate().ToPem()); }, "another authority");
  spoil(
      [&](auto& request, auto& response) {
        request.set_node("n2");
        EXPECT_TRUE(coordinator.LetIn(request, response).ok());
      },
      "of another node");
  spoil(
      [&](auto& request, auto& response) {
        request.set_signing_request(PrivateKey::Make()->SigningRequest().value());
        EXPECT_TRUE(coordinator.LetIn(request, response).ok());
      },
      "of another key");
  coordinator.AnswerWith(nullptr);
  EXPECT_TRUE(JoinAt(coordinator.address()).ok()) << "and a good one is taken after all that";
}

}  // namespace
}  // namespace motley::worker
