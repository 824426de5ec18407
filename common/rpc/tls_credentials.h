// TLS between coordinator and nodes, as credentials of gRPC. What gRPC 1.51 can do of it is in its experimental headers alone;
// no other file includes them, so a gRPC that has changed them is one file's matter. TLS 1.3 and no older one. Thread-safe.
#pragma once

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/tls/certificate.h"
#include "common/tls/node_identity.h"

namespace motley {

// Paths of PEM files.
struct TlsFiles {
  std::string key;
  std::string certificates;  // the own one and its authority's, by which a newcomer knows the cluster
  std::string authorities;   // that clients' certificates are believed by
};

// Before this process first uses TLS, and while it has one thread: gRPC reads its settings once. 1.51 has none for the version,
// so TLS 1.2 is left a cipher that needs an RSA key, which nobody here has.
void RequireTls13();

// A server's. Clients may come without a certificate (CertificateOf says so); one that no authority signed is refused. The files
// are looked at every second: new ones count for new connections. They must be there and belong together.
std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(const TlsFiles& files);

// Looks at what a server shows, its own certificate first, in PEM's order. Called on gRPC's threads.
using CertificateJudge = std::function<absl::Status(const std::vector<Certificate>& shown)>;

// A node's, of an identity that passed CheckIdentity: of a coordinator that one of its authorities signed. `judge` may look at
// it, too, and refuse it.
std::shared_ptr<grpc::ChannelCredentials> TlsNodeCredentials(const NodeIdentity& identity, CertificateJudge judge = nullptr);
// Of who has no certificate yet and believes one authority (PEM).
std::shared_ptr<grpc::ChannelCredentials> TlsCredentialsBelieving(const std::string& authority);
// Of who looks at what the server shows and judges it by other means. It proves only that the server has the first one's key. The
// judge's refusal reaches the call's status.
std::shared_ptr<grpc::ChannelCredentials> TlsCredentialsJudging(CertificateJudge judge);
// Of two ends whose certificates nobody signed (PEM; key and certificate belong together): each has heard by another way what the
// other one shows. A server's, which takes any certificate and no client without one: each method asks whose it is
// (CertificateOf).
std::shared_ptr<grpc::ServerCredentials> TlsUnsignedServerCredentials(const std::string& key, const std::string& certificate);
// Its client's, which shows this one and judges what the server shows, as TlsCredentialsJudging does.
std::shared_ptr<grpc::ChannelCredentials> TlsUnsignedCredentials(const std::string& key, const std::string& certificate,
                                                                 CertificateJudge judge);
// The cluster's coordinator is meant, whatever its address is.
void ExpectCoordinator(grpc::ChannelArguments& arguments);

// Of a call's other end: empty where it came without TLS or showed none.
std::optional<Certificate> CertificateOf(const grpc::AuthContext& context);
// Whether the call came by TLS.
bool IsEncrypted(const grpc::AuthContext& context);

}  // namespace motley
