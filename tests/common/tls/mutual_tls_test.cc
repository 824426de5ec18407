// The authority's certificates between a server and clients of gRPC: who gets in, and as whom.
#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/files.h"
#include "common/rpc/channel.h"
#include "common/rpc/tls_credentials.h"
#include "common/tls/certificate_authority.h"
#include "common/tls/openssl_types.h"
#include "tests/common/base/patience.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kDay = absl::Hours(24);

// Notes who calls; every call succeeds. Its files lie in a folder of their own.
class Server {
 public:
  Server(const CertificateAuthority& authority, const PrivateKey& key, const Certificate& certificate) {
    RequireTls13();
    std::string pattern = testing::TempDir() + "motley-tls-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    Write("key", key.ToPem().value());
    Write("roots", authority.certificate().ToPem());
    Show(certificate, authority);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", TlsServerCredentials({folder_ + "/key", folder_ + "/own", folder_ + "/roots"}),
                             &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~Server() { server_->Shutdown(std::chrono::system_clock::now()); }
  int port() const { return port_; }
  // From now on it is this one that the server shows and signs with.
  void Show(const Certificate& certificate, const CertificateAuthority& authority) {
    Write("own", certificate.ToPem() + authority.certificate().ToPem());
  }
  // Of the calls so far: who it was by its certificate, "nobody" or "plain".
  std::vector<std::string> callers() const {
    absl::MutexLock lock(&service_.mutex);
    return service_.callers;
  }

 private:
  struct Service : grpc::CallbackGenericService {
    struct Answer : grpc::ServerGenericBidiReactor {
      Answer() { Finish(grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "you are in")); }
      void OnDone() override { delete this; }
    };
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
      const std::optional<Certificate> shown = CertificateOf(*context->auth_context());
      absl::MutexLock lock(&mutex);
      if (!IsEncrypted(*context->auth_context())) {
        callers.push_back("plain");
      } else {
        callers.push_back(shown ? shown->Uris().front() : "nobody");
      }
      return new Answer;
    }
    mutable absl::Mutex mutex;
    std::vector<std::string> callers;
  };
  // As one file in place of the other: half a file would be read.
  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(WriteFileDurably(folder_ + "/" + name, text).ok());
  }
  std::string folder_;
  int port_ = 0;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

// One call. The server's answer says that it got in.
absl::Status Call(int port, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments = DirectArguments();
  ExpectCoordinator(arguments);
  grpc::GenericStub stub(OpenChannel(absl::StrCat("127.0.0.1:", port), arguments, credentials));
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
  return status.error_code() == grpc::StatusCode::ALREADY_EXISTS ? absl::OkStatus()
                                                                 : absl::UnavailableError(status.error_message());
}

class MutualTlsTest : public testing::Test {
 protected:
  Certificate NodeCertificate(const CertificateAuthority& by, absl::Time now = absl::Now()) const {
    return by.IssueNode(NodeName("n1"), key_.SigningRequest().value(), now, kDay).value();
  }
  Certificate CoordinatorCertificate(const CertificateAuthority& by) const {
    return by.IssueCoordinator(Term{2, "0123456789abcdef"}, server_key_.SigningRequest().value(), absl::Now(), kDay).value();
  }
  std::shared_ptr<grpc::ChannelCredentials> AsNode(const CertificateAuthority& believed, const Certificate& own) const {
    return TlsNodeCredentials({key_.ToPem().value(), own.ToPem(), believed.certificate().ToPem()});
  }
  const CertificateAuthority authority_ = CertificateAuthority::Make(absl::Now()).value();
  const CertificateAuthority other_ = CertificateAuthority::Make(absl::Now()).value();
  const PrivateKey key_ = PrivateKey::Make().value(), server_key_ = PrivateKey::Make().value();
};

TEST_F(MutualTlsTest, AMemberGetsInAsTheNodeOfItsCertificate) {
  const Server server(authority_, server_key_, CoordinatorCertificate(authority_));
  EXPECT_TRUE(Call(server.port(), AsNode(authority_, NodeCertificate(authority_))).ok());
  EXPECT_THAT(server.callers(), ElementsAre("spiffe://motley/node/n1"));
}

TEST_F(MutualTlsTest, OthersDoNot) {
  const Server server(authority_, server_key_, CoordinatorCertificate(authority_));
  EXPECT_FALSE(Call(server.port(), AsNode(authority_, NodeCertificate(other_))).ok()) << "of another cluster";
  EXPECT_FALSE(Call(server.port(), AsNode(authority_, NodeCertificate(authority_, absl::Now() - 2 * kDay))).ok()) << "expired";
  EXPECT_FALSE(Call(server.port(), AsNode(authority_, NodeCertificate(authority_, absl::Now() + 2 * kDay))).ok())
      << "of tomorrow";
  EXPECT_FALSE(Call(server.port(), grpc::InsecureChannelCredentials()).ok()) << "without TLS";
  EXPECT_THAT(server.callers(), IsEmpty());
}

TEST_F(MutualTlsTest, WhoShowsNoCertificateIsNobody) {
  const Server server(authority_, server_key_, CoordinatorCertificate(authority_));
  EXPECT_TRUE(Call(server.port(), TlsCredentialsBelieving(authority_.certificate().ToPem())).ok());
  EXPECT_FALSE(Call(server.port(), TlsCredentialsBelieving(other_.certificate().ToPem())).ok());
  EXPECT_THAT(server.callers(), ElementsAre("nobody"));
}

TEST_F(MutualTlsTest, AMemberBelievesNoOtherCoordinator) {
  const Server of_others(authority_, server_key_, CoordinatorCertificate(other_));
  EXPECT_FALSE(Call(of_others.port(), AsNode(authority_, NodeCertificate(authority_))).ok());
  const Server node(authority_, key_, NodeCertificate(authority_));
  EXPECT_FALSE(Call(node.port(), AsNode(authority_, NodeCertificate(authority_))).ok()) << "a node that says to be it";
  // gRPC takes a common name for a host's.
  const auto request = key_.SigningRequest().value();
  const auto named = authority_.IssueNode(NodeName(kCoordinatorName), request, absl::Now(), kDay);
  const Server pretender(authority_, key_, named.value());
  EXPECT_FALSE(Call(pretender.port(), AsNode(authority_, NodeCertificate(authority_))).ok()) << "a node that is called so";
  EXPECT_FALSE(Call(pretender.port(), TlsCredentialsBelieving(authority_.certificate().ToPem())).ok()) << "for a newcomer too";
}

TEST_F(MutualTlsTest, AMemberMayLookAtItsCoordinatorsCertificateToo) {
  const Server server(authority_, server_key_, CoordinatorCertificate(authority_));
  const Certificate own = NodeCertificate(authority_);
  const NodeIdentity identity = {key_.ToPem().value(), own.ToPem(), authority_.certificate().ToPem()};
  absl::Mutex mutex;
  std::vector<Term> seen;
  const auto looking = [&](absl::Status verdict) {
    return TlsNodeCredentials(identity, [&, verdict](const std::vector<Certificate>& shown) {
      absl::MutexLock lock(&mutex);
      seen.push_back(TermOf(shown.front()).value());
      return verdict;
    });
  };
  EXPECT_TRUE(Call(server.port(), looking(absl::OkStatus())).ok());
  EXPECT_EQ(seen.at(0), (Term{2, "0123456789abcdef"}));
  EXPECT_FALSE(Call(server.port(), looking(absl::UnavailableError("its term is over"))).ok());
  // Whoever judges sees only what the authority signed, of the coordinator alone.
  seen.clear();
  const Server of_others(authority_, server_key_, CoordinatorCertificate(other_));
  EXPECT_FALSE(Call(of_others.port(), looking(absl::OkStatus())).ok());
  const Server node(authority_, key_, NodeCertificate(authority_));
  EXPECT_FALSE(Call(node.port(), looking(absl::OkStatus())).ok()) << "a node that says to be it";
  const auto named = authority_.IssueNode(NodeName(kCoordinatorName), key_.SigningRequest().value(), absl::Now(), kDay);
  const Server pretender(authority_, key_, named.value());
  EXPECT_FALSE(Call(pretender.port(), looking(absl::OkStatus())).ok()) << "a node that is called so";
  EXPECT_THAT(seen, IsEmpty());
}

TEST_F(MutualTlsTest, ANewcomerSeesTheAuthorityAndJudges) {
  const Server server(authority_, server_key_, CoordinatorCertificate(authority_));
  std::vector<std::string> seen;
  EXPECT_TRUE(Call(server.port(), TlsCredentialsJudging([&](const std::vector<Certificate>& shown) {
                     for (const Certificate& each : shown) seen.push_back(each.Hash());
                     return absl::OkStatus();
                   }))
                  .ok());
  EXPECT_THAT(seen, ElementsAre(testing::_, authority_.certificate().Hash()));
  const absl::Status refused = Call(server.port(), TlsCredentialsJudging([&](const std::vector<Certificate>&) {
                                      return absl::UnauthenticatedError("not the cluster that was meant");
                                    }));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("not the cluster that was meant"));
}

TEST_F(MutualTlsTest, NewFilesCountForNewConnections) {
  Server server(authority_, server_key_, CoordinatorCertificate(other_));
  const auto as_node = [&] { return Call(server.port(), AsNode(authority_, NodeCertificate(authority_))); };
  EXPECT_FALSE(as_node().ok());
  server.Show(CoordinatorCertificate(authority_), authority_);
  const absl::Time end = absl::Now() + Patience(absl::Seconds(20));
  while (!as_node().ok()) ASSERT_LT(absl::Now(), end);
}

// Whether a client that offers these versions at most gets through the handshake, and what it got.
std::string HandshakeOf(int port, int newest) {
  const std::unique_ptr<SSL_CTX, FreedBy<SSL_CTX_free>> context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_max_proto_version(context.get(), newest);
  const OwnedBio connection(BIO_new_ssl_connect(context.get()));
  BIO_set_conn_hostname(connection.get(), absl::StrCat("127.0.0.1:", port).c_str());
  SSL* tls = nullptr;
  BIO_get_ssl(connection.get(), &tls);
  const unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(tls, kHttp2, sizeof(kHttp2));
  return BIO_do_handshake(connection.get()) == 1 ? SSL_get_version(tls) : "refused";
}

TEST_F(MutualTlsTest, OlderTlsIsRefused) {
  const Server server(authority_, server_key_, CoordinatorCertificate(authority_));
  EXPECT_EQ(HandshakeOf(server.port(), TLS1_3_VERSION), "TLSv1.3");
  EXPECT_EQ(HandshakeOf(server.port(), TLS1_2_VERSION), "refused");
}

}  // namespace
}  // namespace motley
