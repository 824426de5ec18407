#include "common/rpc/tls_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <stdlib.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/tls/certificate_authority.h"

namespace motley {
namespace {

using grpc::experimental::TlsChannelCredentialsOptions;

constexpr unsigned int kLookAtFilesEverySeconds = 1;

class JudgingVerifier : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit JudgingVerifier(CertificateJudge judge) : judge_(std::move(judge)) {}
  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    const grpc::string_ref chain = request->peer_cert_full_chain();
    const auto shown = Certificate::FromPem(std::string_view(chain.data(), chain.size()));
    const absl::Status judged = shown.ok() ? judge_(*shown) : shown.status();
    *status = judged.ok() ? grpc::Status::OK : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(judged.message()));
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const CertificateJudge judge_;
};

// With a verifier of one's own gRPC leaves the name to it, too.
absl::Status CheckIsCoordinator(const std::vector<Certificate>& shown) {
  const std::vector<std::string> names = shown.front().DnsNames();
  if (std::find(names.begin(), names.end(), kCoordinatorName) != names.end()) return absl::OkStatus();
  return absl::UnauthenticatedError(absl::StrCat("who answers is not ", kCoordinatorName));
}

void LeaveToJudge(CertificateJudge judge, TlsChannelCredentialsOptions& options) {
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(grpc::experimental::ExternalCertificateVerifier::Create<JudgingVerifier>(std::move(judge)));
}

std::shared_ptr<grpc::experimental::StaticDataCertificateProvider> OwnPair(const std::string& key,
                                                                           const std::string& certificate) {
  return std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
      std::vector<grpc::experimental::IdentityKeyCertPair>{{key, certificate}});
}

}  // namespace

void RequireTls13() { setenv("GRPC_SSL_CIPHER_SUITES", "ECDHE-RSA-AES128-GCM-SHA256", /*overwrite=*/1); }

std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(const TlsFiles& files) {
  grpc::experimental::TlsServerCredentialsOptions options(std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      files.key, files.certificates, files.authorities, kLookAtFilesEverySeconds));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  options.set_check_call_host(false);
  // Whose certificate it is, each method asks.
  options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> TlsNodeCredentials(const NodeIdentity& identity, CertificateJudge judge) {
  TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
      identity.authorities, std::vector<grpc::experimental::IdentityKeyCertPair>{{identity.key, identity.certificate}}));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  if (judge) {
    options.set_certificate_verifier(grpc::experimental::ExternalCertificateVerifier::Create<JudgingVerifier>(
        [judge = std::move(judge)](const std::vector<Certificate>& shown) {
          const absl::Status named = CheckIsCoordinator(shown);
          return named.ok() ? judge(shown) : named;
        }));
  }
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> TlsCredentialsBelieving(const std::string& authority) {
  TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<grpc::experimental::StaticDataCertificateProvider>(authority));
  options.watch_root_certs();
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> TlsCredentialsJudging(CertificateJudge judge) {
  TlsChannelCredentialsOptions options;
  LeaveToJudge(std::move(judge), options);
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> TlsUnsignedServerCredentials(const std::string& key, const std::string& certificate) {
  grpc::experimental::TlsServerCredentialsOptions options(OwnPair(key, certificate));
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.set_check_call_host(false);
  options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> TlsUnsignedCredentials(const std::string& key, const std::string& certificate,
                                                                 CertificateJudge judge) {
  TlsChannelCredentialsOptions options;
  options.set_certificate_provider(OwnPair(key, certificate));
  options.watch_identity_key_cert_pairs();
  LeaveToJudge(std::move(judge), options);
  return grpc::experimental::TlsCredentials(options);
}

void ExpectCoordinator(grpc::ChannelArguments& arguments) { arguments.SetSslTargetNameOverride(kCoordinatorName); }

std::optional<Certificate> CertificateOf(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> pem = context.FindPropertyValues("x509_pem_cert");
  if (pem.size() != 1) return std::nullopt;
  const auto certificates = Certificate::FromPem(std::string_view(pem[0].data(), pem[0].size()));
  return certificates.ok() ? std::optional(certificates->front()) : std::nullopt;
}

bool IsEncrypted(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> type = context.FindPropertyValues("transport_security_type");
  return type.size() == 1 && (type[0] == "tls" || type[0] == "ssl");
}

}  // namespace motley
