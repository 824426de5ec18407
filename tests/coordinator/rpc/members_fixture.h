// A coordinator whose workers come by TLS, here on loopback, and nodes that join it by token.
#pragma once

#include <memory>
#include <string>

#include "common/rpc/tls_credentials.h"
#include "common/tls/certificate_authority.h"
#include "tests/common/base/patience.h"
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {

class MembersTest : public ClusterTest {
 protected:
  MembersTest() {
    RequireTls13();
    config_.workers_tls = true;
    Start();
  }
  std::string Token(bool reusable = false, int64_t ttl_seconds = 0) {
    grpc::ClientContext context;
    v1::CreateTokenRequest request;
    request.set_reusable(reusable);
    request.set_ttl_seconds(ttl_seconds);
    v1::CreateTokenResponse response;
    const grpc::Status status = stub_->CreateToken(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.token();
  }
  // Believing whoever is there: what the token is for is the worker's matter.
  static std::shared_ptr<grpc::ChannelCredentials> Nobodys() {
    return TlsCredentialsJudging([](const auto&) { return absl::OkStatus(); });
  }
  std::unique_ptr<v1::WorkerService::Stub> StubOf(const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments = DirectArguments();
    ExpectCoordinator(arguments);
    return v1::WorkerService::NewStub(OpenChannel(server_->workers_address(), arguments, credentials));
  }
  grpc::Status JoinBy(const std::string& token, const std::string& node, const std::string& request, v1::JoinResponse* response) {
    const auto stub = StubOf(Nobodys());
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(20))));
    v1::JoinRequest wanted;
    wanted.set_token(token);
    wanted.set_node(node);
    wanted.set_signing_request(request);
    return stub->Join(&context, wanted, response);
  }
  NodeIdentity Member(const std::string& node, const std::string& token) {
    const PrivateKey key = PrivateKey::Make().value();
    v1::JoinResponse response;
    const grpc::Status status = JoinBy(token, node, key.SigningRequest().value(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {key.ToPem().value(), response.certificate(), response.authorities()};
  }
  NodeIdentity Member(const std::string& node) { return Member(node, Token()); }
  static FakeWorker::Options As(const NodeIdentity& identity, FakeWorker::Options options = {}) {
    options.credentials = TlsNodeCredentials(identity);
    return options;
  }
  // How a session ends that is refused.
  grpc::Status Refused(const std::string& node, FakeWorker::Options options) {
    FakeWorker worker(server_->workers_address(), node, std::move(options));
    return worker.WaitForEnd();
  }
};

}  // namespace motley::coordinator
