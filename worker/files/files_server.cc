#include "worker/files/files_server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/address.h"
#include "common/base/status_macros.h"
#include "common/rpc/tls_credentials.h"
#include "common/session/files_ticket.h"
#include "common/wire/files.h"
#include "proto/motley/v1/files.grpc.pb.h"
#include "worker/files/checkpoint_file.h"
#include "worker/files/file_blocks.h"

namespace motley::worker {
namespace {

// A reader whose machine is gone without a word keeps no place.
constexpr int kKeepaliveMs = 10000, kKeepaliveAnswerMs = 5000;
constexpr int kHandshakeMs = 10000, kIdleMs = 60000;
// For a block that comes here still: below the silence after which a reader leaves (FilesReading::silence).
constexpr absl::Duration kLookAgain = absl::Milliseconds(20);

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

class Service : public v1::Files::Service {
 public:
  Service(std::string local, const Clock& clock, absl::Duration wait)
      : local_(std::move(local)), clock_(clock), most_looks_(wait / kLookAgain) {}

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
    return ToGrpc(Send(*context, *request, ticket, *writer));
  }

 private:
  absl::Status Admit(const grpc::ServerContext& context, const FilesTicket& ticket) {
    const std::optional<Certificate> shown = CertificateOf(*context.auth_context());
    if (!shown) return absl::UnauthenticatedError("who asks shows no certificate");
    absl::MutexLock lock(&mutex_);
    if (Admits(secret_, ticket, shown->Hash(), absl::ToUnixMillis(clock_.WallNow()))) return absl::OkStatus();
    return absl::PermissionDeniedError("the ticket is not for who shows it, of another coordinator, or over");
  }

  // The ticket is of one job, or of one input.
  absl::StatusOr<FileBlocks> Open(const v1::ReadRequest& request, const FilesTicket& ticket) const {
    if (request.input().empty()) {
      return OpenFileBlocks(local_, {JobId(request.job_id()), ticket.job_uid, request.checkpoint()}, request.file());
    }
    if (request.input() != ticket.job_uid.value()) return absl::PermissionDeniedError("the ticket is of something else");
    return OpenInputBlocks(local_, request.input(), request.file());
  }

  absl::Status Send(const grpc::ServerContext& context, const v1::ReadRequest& request, const FilesTicket& ticket,
                    grpc::ServerWriter<v1::ReadPart>& writer) {
    MOTLEY_ASSIGN_OR_RETURN(const FileBlocks asked, Open(request, ticket));
    int64_t looks = 0;
    const auto give = [&](int64_t block, std::string bytes) {
      v1::ReadPart part;
      part.set_block(block);
      part.set_bytes(std::move(bytes));
      looks = 0;
      return writer.Write(part);
    };
    const auto wait = [&] {
      absl::SleepFor(kLookAgain);
      return !context.IsCancelled() && ++looks < most_looks_;
    };
    return GiveBlocks(asked, {request.blocks().begin(), request.blocks().end()}, give, wait);
  }

  const std::string local_;
  const Clock& clock_;
  const int64_t most_looks_;
  std::atomic<int> readers_{0};
  absl::Mutex mutex_;
  std::string secret_ ABSL_GUARDED_BY(mutex_);
};

class GrpcFilesServer : public FilesServer {
 public:
  GrpcFilesServer(const std::string& local, const Clock& clock, absl::Duration wait) : service_(local, clock, wait) {}
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
                                                                const FilesIdentity& identity, const Clock& clock,
                                                                absl::Duration wait) {
  auto server = std::make_unique<GrpcFilesServer>(local, clock, wait);
  MOTLEY_RETURN_IF_ERROR(server->Listen(address, identity));
  return server;
}

}  // namespace motley::worker
