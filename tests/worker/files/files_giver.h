// Another node's files process for tests: shows a certificate of its own, and answers as it is told.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/checkpoint/checkpoint.h"
#include "common/rpc/tls_credentials.h"
#include "common/session/files.h"
#include "proto/motley/v1/files.grpc.pb.h"
#include "worker/files/files_identity.h"

namespace motley::worker {

// What tests make before the process first uses TLS.
inline FilesIdentity NewFilesIdentity() {
  RequireTls13();
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  return MakeFilesIdentity(SystemClock().WallNow()).value();
}

class FilesGiver {
 public:
  using Writer = grpc::ServerWriter<v1::ReadPart>;
  using Answer = std::function<grpc::Status(grpc::ServerContext&, const v1::ReadRequest&, Writer&)>;

  explicit FilesGiver(Answer answer) : identity_(NewFilesIdentity()), service_(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", TlsUnsignedServerCredentials(identity_.key, identity_.certificate), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~FilesGiver() { Stop(); }
  void Stop() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  // Everything that it has.
  CheckpointHolder Holder(const std::string& node, std::vector<std::string> files = {}, bool manifest = false) const {
    return {NodeName(node), absl::StrCat("127.0.0.1:", port_), identity_.digest, {}, manifest, std::move(files)};
  }
  std::vector<v1::ReadRequest> asked() const {
    absl::MutexLock lock(&service_.mutex);
    return service_.asked;
  }

  static bool Send(Writer& writer, int64_t block, std::string bytes) {
    v1::ReadPart part;
    part.set_block(block);
    part.set_bytes(std::move(bytes));
    return writer.Write(part);
  }
  // A block in parts; of a file with these bytes.
  static void SendBlock(Writer& writer, int64_t block, const std::string& file) {
    constexpr size_t kPart = size_t{128} << 10, kBlock = static_cast<size_t>(kCheckpointBlockBytes);
    const size_t begin = static_cast<size_t>(block) * kBlock, end = std::min(file.size(), begin + kBlock);
    for (size_t at = begin; at < end; at += kPart) Send(writer, block, file.substr(at, std::min(kPart, end - at)));
  }

 private:
  struct Service : v1::Files::Service {
    explicit Service(Answer given) : answer(std::move(given)) {}
    grpc::Status Read(grpc::ServerContext* context, const v1::ReadRequest* request, Writer* writer) override {
      {
        absl::MutexLock lock(&mutex);
        asked.push_back(*request);
      }
      return answer(*context, *request, *writer);
    }
    const Answer answer;
    mutable absl::Mutex mutex;
    std::vector<v1::ReadRequest> asked;
  };

  const FilesIdentity identity_;
  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace motley::worker
