// Members of one coordinator for the crowd: thousands that joined by a token, each of which dials by TLS. They share one key, so
// that making keys costs this process nothing; the coordinator's work is the same.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "common/rpc/tls_credentials.h"
#include "common/tls/private_key.h"
#include "proto/motley/v1/motley.grpc.pb.h"
#include "proto/motley/v1/worker.grpc.pb.h"

namespace motley::bench {

class Members {
 public:
  // Empty status: all joined.
  grpc::Status Join(const std::string& people, const std::string& workers, int count) {
    address_ = workers;
    v1::CreateTokenRequest request;
    request.set_reusable(true);
    v1::CreateTokenResponse token;
    grpc::ClientContext context;
    grpc::Status status = v1::Motley::NewStub(OpenChannel(people))->CreateToken(&context, request, &token);
    const PrivateKey key = PrivateKey::Make().value();
    const auto stub = v1::WorkerService::NewStub(
        OpenChannel(workers, Arguments(), TlsCredentialsJudging([](const auto&) { return absl::OkStatus(); })));
    for (int i = 0; i < count && status.ok(); ++i) {
      v1::JoinRequest wanted;
      wanted.set_token(token.token());
      wanted.set_node(NodeName(i));
      wanted.set_signing_request(key.SigningRequest().value());
      v1::JoinResponse answer;
      grpc::ClientContext join;
      status = stub->Join(&join, wanted, &answer);
      identities_.push_back({key.ToPem().value(), answer.certificate(), answer.authorities()});
    }
    return status;
  }
  static std::string NodeName(int i) { return absl::StrCat("n", i); }
  std::shared_ptr<grpc::Channel> Dial(int i) const {
    return OpenChannel(address_, Arguments(), TlsNodeCredentials(identities_[i]));
  }

 private:
  static grpc::ChannelArguments Arguments() {
    grpc::ChannelArguments arguments = DirectArguments();
    ExpectCoordinator(arguments);
    return arguments;
  }
  std::string address_;
  std::vector<NodeIdentity> identities_;
};

}  // namespace motley::bench
