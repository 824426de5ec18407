// Who gets in by a token, and who by a certificate.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/tls/join_token.h"
#include "tests/common/base/patience.h"
#include "tests/coordinator/rpc/members_fixture.h"

namespace motley::coordinator {
namespace {

using ::testing::HasSubstr;

std::string NewRequest() { return PrivateKey::Make()->SigningRequest().value(); }

TEST_F(MembersTest, AMemberWorksAndIsListedUntilItsCertificateExpires) {
  const NodeIdentity n1 = Member("n1");
  EXPECT_EQ(NodeOf("n1").state(), "lost") << "a member that has not come yet";
  auto worker = Join("n1", As(n1));
  const v1::Node node = NodeOf("n1");
  EXPECT_EQ(node.state(), "ready");
  EXPECT_NEAR(node.certificate_until_unix_ms() - node.member_since_unix_ms(), 30.0 * 24 * 3600 * 1000, 5000);
  EXPECT_TRUE(Submit("a", MakeConfig(2)).ok());
  EXPECT_FALSE(worker->WaitForStart().empty());
}

TEST_F(MembersTest, WithoutACertificateNobodyIsANode) {
  FakeWorker::Options nobody;
  nobody.credentials = Nobodys();
  const grpc::Status status = Refused("n1", nobody);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("motley-worker --join"));
  EXPECT_EQ(NodeOf("n1").name(), "");
}

// A call that says nothing holds no connection that counts as busy.
TEST_F(MembersTest, WhoShowsNoCertificateIsNotListenedTo) {
  const auto stub = StubOf(Nobodys());
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(20))));
  const auto stream = stub->Session(&context);
  v1::CoordinatorMessage message;
  EXPECT_FALSE(stream->Read(&message)) << "nothing was sent, and it ends";
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(MembersTest, ACertificateIsOfOneName) {
  const NodeIdentity n1 = Member("n1"), n2 = Member("n2");
  const grpc::Status status = Refused("n2", As(n1));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("the certificate is of node n1, and the worker says to be n2"));
}

// Of a certificate that is a server's alone the handshake is refused already.
TEST_F(MembersTest, TheCoordinatorsOwnCertificateIsNoNodes) {
  const auto read = [&](const char* name) { return ReadSmallFile(config_.state_folder + "/tls/" + name, 1 << 16).value(); };
  const NodeIdentity own = {read("coordinator.key"), read("coordinator.crt"), read("authorities.crt")};
  const auto stub = StubOf(TlsNodeCredentials(own));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(20))));
  v1::JoinRequest request;
  request.set_token("what reaches the method is no token");
  v1::JoinResponse response;
  EXPECT_EQ(stub->Join(&context, request, &response).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(MembersTest, AForgottenNodeEndsAtOnceAndStaysOut) {
  const NodeIdentity n1 = Member("n1");
  auto worker = Join("n1", As(n1));
  ASSERT_TRUE(Forget("n1").ok());
  EXPECT_EQ(worker->WaitForEnd().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(NodeOf("n1").name(), "");
  EXPECT_THAT(Refused("n1", As(n1)).error_message(), HasSubstr("no member of this cluster any more"));
  Start();
  EXPECT_EQ(Refused("n1", As(n1)).error_code(), grpc::StatusCode::PERMISSION_DENIED) << "after a restart too";
  EXPECT_EQ(Forget("n1").error_code(), grpc::StatusCode::NOT_FOUND);
  auto again = Join("n1", As(Member("n1")));
  EXPECT_EQ(NodeOf("n1").state(), "ready") << "with a new token it is a member again";
  EXPECT_THAT(Refused("n1", As(n1)).error_message(), HasSubstr("another key")) << "and the old key counts no more";
}

TEST_F(MembersTest, AJobGoesOnWithoutAForgottenNode) {
  auto n1 = Join("n1", As(Member("n1"))), n2 = Join("n2", As(Member("n2")));
  ASSERT_TRUE(Submit("a", MakeConfig(3)).ok());
  const auto ranks = n1->WaitForStart();
  ASSERT_FALSE(ranks.empty() || n2->WaitForStart().empty());
  for (FakeWorker* worker : {n1.get(), n2.get()}) worker->SendAll(v1::RankEvent::KIND_READY);
  WaitForState("a", v1::JOB_STATE_RUNNING);
  ASSERT_TRUE(Forget("n2").ok());
  const auto alone = n1->WaitForStart(ranks[0].epoch());
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].device_ids_size(), 1);
}

TEST_F(MembersTest, TheLostAnswerIsGivenAgainToTheSameKeyAlone) {
  const std::string token = Token(), request = NewRequest();
  v1::JoinResponse first, again;
  ASSERT_TRUE(JoinBy(token, "n1", request, &first).ok());
  EXPECT_TRUE(JoinBy(token, "n1", request, &again).ok());
  EXPECT_EQ(JoinBy(token, "n1", NewRequest(), &again).error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(JoinBy(token, "n2", NewRequest(), &again).error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(MembersTest, BadTokensAndRequestsAreRefusedByWhatIsWrong) {
  const std::string token = Token(/*reusable=*/true);
  v1::JoinResponse response;
  const auto refusal = [&](const std::string& shown, const std::string& node, const std::string& request) {
    while (true) {  // as one who guesses it would be held back for the rest of the second
      grpc::Status status = JoinBy(shown, node, request, &response);
      if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) return status;
    }
  };
  std::string wrong = token;
  wrong.back() = wrong.back() == 'a' ? 'b' : 'a';
  EXPECT_EQ(refusal(wrong, "n1", NewRequest()).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  for (const std::string& bad : {std::string(), token.substr(0, 40), token + "x", std::string(1 << 20, 'a')}) {
    const grpc::Status status = refusal(bad, "n1", NewRequest());
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << bad.size();
    EXPECT_LT(status.error_message().size(), 1000u);
  }
  for (const std::string& name : {std::string("a/b"), std::string(300, 'n'), std::string("n\0", 2), std::string("../n")}) {
    EXPECT_EQ(refusal(token, name, NewRequest()).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
  }
  for (const std::string& request : {std::string(), std::string("-----BEGIN"), std::string(64 << 10, 'x')}) {
    EXPECT_EQ(refusal(token, "n1", request).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << request.size();
  }
  EXPECT_EQ(refusal(token, "n1", NewRequest()).error_code(), grpc::StatusCode::OK) << "none of them used it up";
}

TEST_F(MembersTest, WhoGuessesIsHeldBackAndSaidOnce) {
  v1::JoinResponse response;
  const std::string token = Token();
  int held_back = 0;
  for (int i = 0; i < 30; ++i) {
    held_back += JoinBy("no token", "n1", "", &response).error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
  }
  EXPECT_GT(held_back, 0);
  grpc::ClientContext context;
  auto events = stub_->ListEvents(&context, {});
  v1::Event event;
  int said = 0;
  while (events->Read(&event)) said += event.kind() == "join_refused";
  EXPECT_EQ(said, 1);
}

TEST_F(MembersTest, ATokenCanBeRevoked) {
  v1::JoinResponse response;
  const std::string revoked = Token();
  grpc::ClientContext context;
  v1::RevokeTokenRequest request;
  request.set_id(ParseJoinToken(revoked)->id);
  v1::RevokeTokenResponse unused;
  ASSERT_TRUE(stub_->RevokeToken(&context, request, &unused).ok());
  EXPECT_THAT(JoinBy(revoked, "n1", NewRequest(), &response).error_message(), HasSubstr("not known here"));
}

TEST_F(MembersTest, TheMachinesOwnWorkersNeedNoCertificateAndTakeNoMembersName) {
  FakeWorker own(server_->workers_socket_address(), "own", {});
  EXPECT_TRUE(own.WaitForWelcome());
  EXPECT_EQ(NodeOf("own").member_since_unix_ms(), 0);
  const NodeIdentity n1 = Member("n1");
  FakeWorker pretender(server_->workers_socket_address(), "n1", {});
  const grpc::Status status = pretender.WaitForEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("comes by its certificate"));
  v1::JoinResponse response;
  EXPECT_THAT(JoinBy(Token(), "own", NewRequest(), &response).error_message(), HasSubstr("connected without a certificate"));
}

TEST_F(MembersTest, OverALineThatIsNotEncryptedNobodyJoins) {
  const auto stub = v1::WorkerService::NewStub(OpenChannel(server_->workers_socket_address()));
  grpc::ClientContext context;
  v1::JoinRequest request;
  request.set_token(Token());
  request.set_node("n1");
  v1::JoinResponse response;
  EXPECT_EQ(stub->Join(&context, request, &response).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ClusterTest, WhereNoOtherMachineReachesItThereAreNoTokens) {
  grpc::ClientContext context;
  v1::CreateTokenResponse response;
  const grpc::Status status = stub_->CreateToken(&context, {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("[workers] listen"));
}

}  // namespace
}  // namespace motley::coordinator
