// A coordinator in this process that lets machines join: behind TLS on a port of its own, with the certificate that a test gives.
#pragma once

#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/rpc/tls_credentials.h"
#include "common/tls/certificate_authority.h"
#include "proto/motley/v1/worker.grpc.pb.h"
#include "tests/common/base/temp_folder.h"

namespace motley::worker {

class JoiningCoordinator : public v1::WorkerService::Service {
 public:
  using Answer = std::function<grpc::Status(const v1::JoinRequest&, v1::JoinResponse&)>;

  // It shows the certificate that `own` makes of its request, and then the authority's.
  JoiningCoordinator(const CertificateAuthority& authority,
                     const std::function<absl::StatusOr<Certificate>(const std::string& request)>& own)
      : authority_(authority) {
    RequireTls13();
    const PrivateKey key = PrivateKey::Make().value();
    const std::string shown = own(key.SigningRequest().value())->ToPem(), roots = authority.certificate().ToPem();
    const TlsFiles files = {files_.Write("key", key.ToPem().value()), files_.Write("own", shown + roots),
                            files_.Write("roots", roots)};
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", TlsServerCredentials(files), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
  }
  explicit JoiningCoordinator(const CertificateAuthority& authority)
      : JoiningCoordinator(authority, [&](const std::string& request) {
          return authority.IssueCoordinator(Term{1, "0123456789abcdef"}, request, absl::Now(), kLifetime);
        }) {}
  ~JoiningCoordinator() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  // What was asked of it so far.
  std::vector<v1::JoinRequest> requests() const {
    absl::MutexLock lock(&mutex_);
    return requests_;
  }
  // From now on; none: as it should.
  void AnswerWith(Answer answer) {
    absl::MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  // As it should: a certificate for the name and key of the request.
  grpc::Status LetIn(const v1::JoinRequest& request, v1::JoinResponse& response) const {
    const auto issued = authority_.IssueNode(NodeName(request.node()), request.signing_request(), absl::Now(), kLifetime);
    if (!issued.ok()) return {grpc::StatusCode::INVALID_ARGUMENT, std::string(issued.status().message())};
    response.set_certificate(issued->ToPem());
    response.set_authorities(authority_.certificate().ToPem());
    return grpc::Status::OK;
  }

  grpc::Status Join(grpc::ServerContext*, const v1::JoinRequest* request, v1::JoinResponse* response) override {
    absl::MutexLock lock(&mutex_);
    requests_.push_back(*request);
    return answer_ ? answer_(*request, *response) : LetIn(*request, *response);
  }

  static constexpr absl::Duration kLifetime = absl::Hours(24 * 30);

 private:
  const CertificateAuthority& authority_;
  const TempFolder files_;
  int port_ = 0;
  mutable absl::Mutex mutex_;
  std::vector<v1::JoinRequest> requests_;
  Answer answer_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace motley::worker
