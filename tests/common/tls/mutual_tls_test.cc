// The authority's certificates between a server and clients of gRPC: who gets in, and as whom.
#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "common/tls/certificate_authority.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kDay = absl::Hours(24);

// Notes who calls; every call succeeds.
class Server {
 public:
  Server(const CertificateAuthority& authority, const PrivateKey& key, const Certificate& certificate) {
    grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = authority.certificate().ToPem();
    options.pem_key_cert_pairs.push_back({key.ToPem().value(), certificate.ToPem()});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(options), &port_);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    service_.RequestCall(&context_, &stream_, queue_.get(), queue_.get(), this);
    loop_ = std::thread([this] { Loop(); });
  }
  ~Server() {
    server_->Shutdown(std::chrono::system_clock::now());
    queue_->Shutdown();
    loop_.join();
  }
  int port() const { return port_; }
  // Of the one call. After it.
  const std::vector<std::string>& callers() const { return callers_; }

 private:
  void Loop() {
    void* tag = nullptr;
    bool ok = false;
    for (bool called = false; queue_->Next(&tag, &ok);) {
      if (!ok || std::exchange(called, true)) continue;
      for (const grpc::string_ref& id : context_.auth_context()->FindPropertyValues("peer_spiffe_id")) {
        callers_.emplace_back(id.data(), id.size());
      }
      stream_.Finish(grpc::Status::OK, this);
    }
  }
  int port_ = 0;
  grpc::AsyncGenericService service_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::string> callers_;
  std::thread loop_;
};

// One call. `authority`: whom the client believes.
grpc::Status Call(int port, const CertificateAuthority& authority, const PrivateKey& key, const Certificate& certificate) {
  const grpc::SslCredentialsOptions options = {authority.certificate().ToPem(), key.ToPem().value(), certificate.ToPem()};
  grpc::ChannelArguments arguments = DirectArguments();
  arguments.SetSslTargetNameOverride(kCoordinatorName);
  grpc::GenericStub stub(OpenChannel(absl::StrCat("127.0.0.1:", port), arguments, grpc::SslCredentials(options)));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, "/motley.test/Any", grpc::ByteBuffer(), &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, &queue);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  // The server answers without a message, which a unary call counts as none: who got so far got in.
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ? status : grpc::Status::OK;
}

class MutualTlsTest : public testing::Test {
 protected:
  Certificate NodeCertificate(const CertificateAuthority& by, absl::Time now = absl::Now()) const {
    return by.IssueNode(NodeName("n1"), key_.SigningRequest().value(), now, kDay).value();
  }
  Certificate CoordinatorCertificate(const CertificateAuthority& by) const {
    return by.IssueCoordinator(2, server_key_.SigningRequest().value(), absl::Now(), kDay).value();
  }
  const CertificateAuthority authority_ = CertificateAuthority::Make(absl::Now()).value();
  const CertificateAuthority other_ = CertificateAuthority::Make(absl::Now()).value();
  const PrivateKey key_ = PrivateKey::Make().value(), server_key_ = PrivateKey::Make().value();
};

TEST_F(MutualTlsTest, AMemberGetsInAsTheNodeOfItsCertificate) {
  const Server server(authority_, server_key_, CoordinatorCertificate(authority_));
  const grpc::Status status = Call(server.port(), authority_, key_, NodeCertificate(authority_));
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(server.callers(), ElementsAre("spiffe://motley/node/n1"));
}

TEST_F(MutualTlsTest, OthersDoNot) {
  const Server server(authority_, server_key_, CoordinatorCertificate(authority_));
  EXPECT_FALSE(Call(server.port(), authority_, key_, NodeCertificate(other_)).ok()) << "of another cluster";
  EXPECT_FALSE(Call(server.port(), authority_, key_, NodeCertificate(authority_, absl::Now() - 2 * kDay)).ok()) << "expired";
  EXPECT_FALSE(Call(server.port(), authority_, key_, NodeCertificate(authority_, absl::Now() + 2 * kDay)).ok()) << "of tomorrow";
  EXPECT_THAT(server.callers(), IsEmpty());
}

TEST_F(MutualTlsTest, AMemberBelievesNoOtherCoordinator) {
  const Server of_others(authority_, server_key_, CoordinatorCertificate(other_));
  EXPECT_FALSE(Call(of_others.port(), authority_, key_, NodeCertificate(authority_)).ok());
  const Server node(authority_, key_, NodeCertificate(authority_));
  EXPECT_FALSE(Call(node.port(), authority_, key_, NodeCertificate(authority_)).ok()) << "a node that says to be it";
}

}  // namespace
}  // namespace motley
