#include "worker/files/files_server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/address.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/rpc/tls_credentials.h"
#include "common/session/files_ticket.h"
#include "common/wire/files.h"
#include "proto/motley/v1/files.grpc.pb.h"
#include "worker/files/checkpoint_file.h"

namespace motley::worker {
namespace {

constexpr int64_t kPartBytes = int64_t{128} << 10;
// A reader whose machine is gone without a word keeps no place.
constexpr int kKeepaliveMs = 10000, kKeepaliveAnswerMs = 5000;
constexpr int kHandshakeMs = 10000, kIdleMs = 60000;

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

// What is asked for: block numbers of a file, each so many bytes but the last.
struct Asked {
  FileDescriptor file;
  std::string name;  // in errors
  int64_t bytes = 0, block_bytes = kCheckpointBlockBytes;
};

class Service : public v1::Files::Service {
 public:
  Service(std::string local, const Clock& clock) : local_(std::move(local)), clock_(clock) {}

  void SetSecret(std::string secret) {
    absl::MutexLock lock(&mutex_);
    secret_ = std::move(secret);
  }

  grpc::Status Read(grpc::ServerContext* context, const v1::ReadRequest* request,
                    grpc::ServerWriter<v1::ReadPart>* writer) override {
    const FilesTicket ticket = wire::FromProto(request->ticket());
    if (const absl::Status admitted = Admit(*context, ticket); !admitted.ok()) return ToGrpc(admitted);
    struct Place {
      explicit Place(std::atomic<int>& taken) : taken(taken), number(++taken) {}
      ~Place() { --taken; }
      std::atomic<int>& taken;
      const int number;
    } place(readers_);
    if (place.number > kMostReaders) {
      return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, absl::StrCat(kMostReaders, " others read from it now"));
    }
    return ToGrpc(Send(*request, ticket, *writer));
  }

 private:
  absl::Status Admit(const grpc::ServerContext& context, const FilesTicket& ticket) {
    const std::optional<Certificate> shown = CertificateOf(*context.auth_context());
    if (!shown) return absl::UnauthenticatedError("who asks shows no certificate");
    absl::MutexLock lock(&mutex_);
    if (Admits(secret_, ticket, shown->Hash(), absl::ToUnixMillis(clock_.WallNow()))) return absl::OkStatus();
    return absl::PermissionDeniedError("the ticket is not for who shows it, of another coordinator, or over");
  }

  absl::StatusOr<Asked> Open(const v1::ReadRequest& request, const FilesTicket& ticket) {
    const LocalCheckpoint checkpoint = {JobId(request.job_id()), ticket.job_uid, request.checkpoint()};
    Asked asked;
    MOTLEY_ASSIGN_OR_RETURN(asked.file, OpenCheckpointFile(local_, checkpoint, request.file()));
    const bool manifest = request.file().empty();
    asked.name = absl::StrCat(manifest ? kManifestName : request.file(), " of ", request.checkpoint());
    struct stat found {};
    if (::fstat(asked.file.get(), &found) != 0) return FileError(errno, "look at", asked.name);
    asked.bytes = found.st_size;
    if (manifest && asked.bytes > kMostManifestBytes) return absl::NotFoundError(absl::StrCat(asked.name, " is none"));
    if (manifest) asked.block_bytes = std::max(asked.bytes, int64_t{1});
    const int64_t blocks = (asked.bytes + asked.block_bytes - 1) / asked.block_bytes;
    for (const int64_t block : request.blocks()) {
      if (block >= 0 && block < blocks) continue;
      return absl::OutOfRangeError(absl::StrCat(asked.name, " has ", blocks, " blocks here, and no block ", block));
    }
    return asked;
  }

  absl::Status Send(const v1::ReadRequest& request, const FilesTicket& ticket, grpc::ServerWriter<v1::ReadPart>& writer) {
    MOTLEY_ASSIGN_OR_RETURN(const Asked asked, Open(request, ticket));
    for (const int64_t block : request.blocks()) {
      const int64_t end = std::min(asked.bytes, (block + 1) * asked.block_bytes);
      for (int64_t at = block * asked.block_bytes; at < end; at += kPartBytes) {
        v1::ReadPart part;
        part.set_block(block);
        std::string& bytes = *part.mutable_bytes();
        bytes.resize(static_cast<size_t>(std::min(kPartBytes, end - at)));
        MOTLEY_RETURN_IF_ERROR(ReadAt(asked.file, asked.name, at, bytes.data(), static_cast<int64_t>(bytes.size())));
        if (!writer.Write(part)) return absl::CancelledError("the reader is gone");
      }
    }
    return absl::OkStatus();
  }

  const std::string local_;
  const Clock& clock_;
  std::atomic<int> readers_{0};
  absl::Mutex mutex_;
  std::string secret_ ABSL_GUARDED_BY(mutex_);
};

class GrpcFilesServer : public FilesServer {
 public:
  GrpcFilesServer(const std::string& local, const Clock& clock) : service_(local, clock) {}
  ~GrpcFilesServer() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  absl::Status Listen(const std::string& address, const FilesIdentity& identity) {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveAnswerMs);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
    builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
    builder.AddListeningPort(ToText({address, 0}), TlsUnsignedServerCredentials(identity.key, identity.certificate), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ != nullptr && port_ > 0) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot listen on worker.data_address ", address,
                                               " to give files to other nodes; does a card of this machine have it "
                                               "(`ip -brief address` lists them)?"));
  }

  int port() const override { return port_; }
  void SetSecret(std::string secret) override { service_.SetSecret(std::move(secret)); }

 private:
  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FilesServer>> FilesServer::Start(const std::string& local, const std::string& address,
                                                                const FilesIdentity& identity, const Clock& clock) {
  auto server = std::make_unique<GrpcFilesServer>(local, clock);
  MOTLEY_RETURN_IF_ERROR(server->Listen(address, identity));
  return server;
}

}  // namespace motley::worker
