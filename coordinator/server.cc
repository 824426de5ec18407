#include "coordinator/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/status_macros.h"
#include "coordinator/core.h"
#include "coordinator/jobs/leaving.h"
#include "coordinator/jobs/recovery.h"
#include "coordinator/jobs/runner.h"
#include "coordinator/loop.h"
#include "coordinator/rpc/motley_service.h"
#include "coordinator/rpc/report_limits.h"
#include "coordinator/rpc/worker_service.h"
#include "coordinator/store/sqlite_store.h"

namespace motley::coordinator {
namespace {

constexpr int kMaxMessageBytes = kMaxReportBytes;

}  // namespace

// Destroyed from the bottom up: nothing posts to the loop once it has stopped.
struct Server::Parts {
  explicit Parts(const Config& c, std::unique_ptr<Store> s)
      : config(c),
        store(std::move(s)),
        executor(loop),
        core(config, clock, *store, executor, registry, [this](std::function<void()> task) { loop.Post(std::move(task)); }),
        runner(core, PeriodicJobs()),
        motley(loop, core),
        workers(loop, core) {}

  const Config config;
  SystemClock clock;
  std::unique_ptr<Store> store;
  MetricsRegistry registry;
  std::unique_ptr<MetricsServer> metrics;
  TaskThread loop;
  BackgroundExecutor executor;
  Core core;
  Runner runner;
  MotleyService motley;
  WorkerSessions workers;
  std::unique_ptr<grpc::Server> grpc;
  int port = 0;
  std::atomic<bool> may_stop = false;

  absl::Status Listen();
};

absl::Status Server::Parts::Listen() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  // Without this, a second coordinator would take the same port and half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.AddListeningPort(config.listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&motley);
  builder.RegisterService(&workers);
  grpc = builder.BuildAndStart();
  if (grpc != nullptr && port != 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", config.listen,
                   ": the port is taken or the address is not of this machine; choose another with --listen, or end "
                   "what uses it (ss -ltnp shows it)"));
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Config& config) {
  MOTLEY_RETURN_IF_ERROR(Validate(config));
  MOTLEY_ASSIGN_OR_RETURN(std::unique_ptr<SqliteStore> store, SqliteStore::Open(config.state_folder));
  std::unique_ptr<Server> server(new Server(std::make_unique<Parts>(config, std::move(store))));
  Parts& parts = *server->parts_;
  if (!config.metrics.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(parts.metrics, MetricsServer::Start(config.metrics, parts.registry));
  }
  // Before the first worker or client is let in.
  MOTLEY_RETURN_IF_ERROR(Recover(parts.core));
  MOTLEY_RETURN_IF_ERROR(parts.Listen());
  parts.loop.Start([&parts] {
    const absl::Duration next = parts.runner.RunDue();
    if (coordinator::MayStop(parts.core)) parts.may_stop = true;
    return next;
  });
  LogInfo(absl::StrCat("listening on ", server->address(), ", metrics on ",
                       server->metrics_address().empty() ? "none" : server->metrics_address(), ", state in ",
                       config.state_folder));
  if (config.insecure && !(IsLoopback(config.listen) && (config.metrics.empty() || IsLoopback(config.metrics)))) {
    LogWarning(absl::StrCat("plaintext listener on ", config.listen,
                            ": whoever reaches it commands the cluster (server.insecure is set)"));
  }
  return server;
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() {
  parts_->loop.Post([core = &parts_->core] { core->stopping = true; });
  // The loop turns while calls are being cancelled: their last callbacks run on it.
  if (parts_->grpc != nullptr) parts_->grpc->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  parts_->executor.Stop();
  parts_->loop.Stop();
}

void Server::BeginStop() {
  parts_->loop.Post([core = &parts_->core] { coordinator::BeginStop(*core); });
}
bool Server::MayStop() const { return parts_->may_stop; }

std::string Server::address() const {
  return absl::StrCat(parts_->config.listen.substr(0, parts_->config.listen.rfind(':')), ":", parts_->port);
}
std::string Server::metrics_address() const { return parts_->metrics == nullptr ? "" : parts_->metrics->address(); }

}  // namespace motley::coordinator
