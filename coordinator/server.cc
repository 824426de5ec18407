#include "coordinator/server.h"

#include <grpcpp/grpcpp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/address.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "common/rpc/tls_credentials.h"
#include "coordinator/core/core.h"
#include "coordinator/core/loop.h"
#include "coordinator/members/joining.h"
#include "coordinator/members/leaving.h"
#include "coordinator/members/recovery.h"
#include "coordinator/members/term.h"
#include "coordinator/page/page_board.h"
#include "coordinator/page/page_feed.h"
#include "coordinator/page/page_key.h"
#include "coordinator/page/page_routes.h"
#include "coordinator/page/web/page_text.h"
#include "coordinator/periodic/runner.h"
#include "coordinator/rpc/acceptor.h"
#include "coordinator/rpc/busy_peers.h"
#include "coordinator/rpc/carries.h"
#include "coordinator/rpc/endpoint.h"
#include "coordinator/rpc/health_service.h"
#include "coordinator/rpc/listening_socket.h"
#include "coordinator/rpc/loopback_name.h"
#include "coordinator/rpc/own_workers.h"
#include "coordinator/rpc/people_servers.h"
#include "coordinator/rpc/report_limits.h"
#include "coordinator/rpc/worker_service.h"
#include "coordinator/store/sqlite_store.h"
#include "coordinator/watchdog.h"

namespace motley::coordinator {
namespace {

// A worker has one. Of each a message may be under way, whose sender nobody knows yet.
constexpr int kMostStreamsOfWorkers = 8;

size_t DescriptorLimit() {
  rlimit limit;
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<size_t>(limit.rlim_cur) : 1024;
}

// Of the socket, in a folder that is there, where nobody but the coordinator's group comes in. What fails, the socket says.
void MakeFolderForPeople(const std::string& path) {
  constexpr mode_t kMode = 0750;
  if (mkdir(path.c_str(), kMode) == 0) (void)chmod(path.c_str(), kMode);  // whatever the umask
}

std::vector<PeriodicJob> Jobs(PageFeed& feed) {
  std::vector<PeriodicJob> jobs = PeriodicJobs();
  jobs.push_back({"pages", absl::Milliseconds(250), [&feed](Core&) { feed.UpdatePages(); }});
  return jobs;
}

}  // namespace

// Destroyed from the bottom up: nothing posts to the loop once it has stopped.
struct Server::Parts {
  explicit Parts(const Config& c, std::unique_ptr<Store> s)
      : config(c),
        store(std::move(s)),
        executor(loop),
        core(config, clock, *store, executor, registry, [this](std::function<void()> task) { loop.Post(std::move(task)); }),
        board(clock, absl::StrCat(absl::Hex(absl::ToUnixMicros(clock.WallNow()))), PageDigest()),
        feed(core, board, [this](std::function<void()> task) { printer.Post(std::move(task)); }),
        runner(core, Jobs(feed)),
        carries(TaskPoster(loop, TaskKind::kPeople), core),
        people(TaskPoster(loop, TaskKind::kPeople), core, carries),
        workers(TaskPoster(loop, TaskKind::kWorkers), core, carries, workers_busy),
        workers_health(TaskPoster(loop, TaskKind::kWorkers), core, workers_busy, Role::kWorker,
                       v1::WorkerService::service_full_name()) {}

  const Config config;
  SystemClock clock;
  std::unique_ptr<Store> store;
  MetricsRegistry registry;
  TaskThread loop;
  BackgroundExecutor executor;
  Core core;
  PageBoard board;
  TaskThread printer;  // of what pages show
  PageFeed feed;
  Runner runner;
  BusyPeers workers_busy;
  Carries carries;
  PeopleServers people;
  WorkerSessions workers;
  HealthService workers_health;
  RefusingService workers_refusing{Role::kWorker};
  Endpoint workers_endpoint;
  std::unique_ptr<OwnWorkers> own_workers;
  std::unique_ptr<MetricsServer> metrics;
  // Until the acceptor has them.
  std::vector<ListeningSocket> people_sockets, own_workers_sockets, workers_sockets;
  std::string socket_address, people_address, workers_address, workers_socket_address;
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<Watchdog> watchdog;
  std::atomic<bool> may_stop = false;
  std::atomic<bool> ended = false;  // then core.ended does not change any more

  // Takes the addresses, so that a taken one is known before anything else happens.
  absl::Status Bind();
  absl::Status Serve();
};

absl::Status Server::Parts::Bind() {
  if (const std::string path = SocketPath(config); !path.empty()) {
    if (!config.socket) MakeFolderForPeople(path.substr(0, path.rfind('/')));
    MOTLEY_ASSIGN_OR_RETURN(ListeningSocket socket, ListeningSocket::Unix("server.socket", path));
    socket_address = people_address = socket.address();
    people_sockets.push_back(std::move(socket));
  }
  if (!config.listen.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(ListeningSocket socket, ListeningSocket::Tcp("server.listen", config.listen));
    people_address = socket.address();
    people_sockets.push_back(std::move(socket));
  }
  if (const std::string path = WorkersSocketPath(config); !path.empty()) {
    if (!config.workers_socket) MakeFolderForPeople(path.substr(0, path.rfind('/')));
    absl::StatusOr<ListeningSocket> socket = ListeningSocket::Unix("workers.socket", path);
    // Another coordinator's, in one folder with this one's: where nobody asked for one it is no reason not to start.
    const bool goes_without = !config.workers_socket && !config.workers_listen.empty() && absl::IsUnavailable(socket.status());
    if (!socket.ok() && !goes_without) return socket.status();
    if (goes_without) {
      LogWarning(
          absl::StrCat("no socket for workers of this machine: ", socket.status().message(), "; workers.socket names one"));
    } else {
      workers_socket_address = socket->address();
      own_workers_sockets.push_back(*std::move(socket));
    }
  }
  if (!config.workers_listen.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(ListeningSocket socket, ListeningSocket::Tcp("workers.listen", config.workers_listen));
    workers_address = socket.address();
    if (const std::string why = WhyOthersStayOut(config.workers_listen, socket.fd()); !why.empty()) LogWarning(why);
    workers_sockets.push_back(std::move(socket));
  }
  return absl::OkStatus();
}

absl::Status Server::Parts::Serve() {
  MOTLEY_RETURN_IF_ERROR(people.Start());
  const bool by_tls = WorkersUseTls(config);
  EndpointOptions for_workers = {
      Role::kWorker, {&workers, &workers_health}, &workers_refusing, static_cast<int>(kMaxReportBytes), false, nullptr};
  for_workers.most_streams = kMostStreamsOfWorkers;
  if (by_tls) for_workers.tls = TlsServerCredentials(ClusterAuthority::FilesIn(TlsFolder(config)));
  MOTLEY_ASSIGN_OR_RETURN(workers_endpoint, StartEndpoint(for_workers));
  size_t people_most = config.people_connections, workers_most = config.worker_connections;
  FitConnections(DescriptorLimit(), &people_most, &workers_most);
  std::vector<Acceptor::Server> servers;
  SeatLimits people_seats =
      SeatLimits::Shared(people_most, config.account_connections, "limits.people_connections", socket_address);
  servers.push_back({"people", {}, std::move(people_seats), nullptr, true});
  servers.back().doors.push_back({std::move(people_sockets), [this](int fd) { return people.For(fd); }, false});
  servers.push_back({"workers", {}, SeatLimits::Common(workers_most, "limits.workers_connections"), &workers_busy, false});
  own_workers = std::make_unique<OwnWorkers>(config.worker_accounts, workers_socket_address, *workers_endpoint.acceptor);
  const Guest worker{.busy = &workers_busy};
  const auto by_socket = [this, worker](int fd) { return Acceptor::Chosen{own_workers->For(fd), worker}; };
  servers.back().doors.push_back({std::move(own_workers_sockets), by_socket, false});
  const Acceptor::Chosen by_tcp{(by_tls ? workers_endpoint.tls_acceptor : workers_endpoint.acceptor).get(), worker};
  servers.back().doors.push_back({std::move(workers_sockets), [by_tcp](int) { return by_tcp; }, by_tls});
  acceptor = std::make_unique<Acceptor>(std::move(servers));
  return absl::OkStatus();
}

namespace {

bool IsOpen(const std::string& address) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort("", address, 0);
  return parsed.ok() && !IsLoopback(parsed->host);
}

// A directory server may answer later than this process is started: not a reason to stay away.
void WarnOfUnknownAccounts(const Config& config) {
  for (const std::string& why : UnknownAccounts(config)) {
    LogWarning(absl::StrCat(
        why, ". Its workers are refused until the machine knows it; the coordinator need not be started anew for that"));
  }
}

void WarnOfPlaintext(const Config& config, const std::string& workers_address) {
  if (!workers_address.empty() && !WorkersUseTls(config)) {
    LogWarning(absl::StrCat("workers on ", workers_address, " show no certificate: every account of this machine can say to ",
                            "be one (workers.socket is for the machine's own, workers.tls = true asks for certificates)"));
  }
  if (IsOpen(config.metrics)) {
    LogWarning(absl::StrCat("plaintext metrics on ", config.metrics, ": whoever reaches it reads them (server.insecure is set)"));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Config& config) {
  MOTLEY_RETURN_IF_ERROR(Validate(config));
  MOTLEY_ASSIGN_OR_RETURN(std::unique_ptr<SqliteStore> store, SqliteStore::Open(config.state_folder));
  std::unique_ptr<Server> server(new Server(std::make_unique<Parts>(config, std::move(store))));
  Parts& parts = *server->parts_;
  MOTLEY_RETURN_IF_ERROR(CheckAlone(parts.core));
  MOTLEY_RETURN_IF_ERROR(parts.Bind());
  if (!config.metrics.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(const std::string key, PageKey(config.state_folder));
    MOTLEY_ASSIGN_OR_RETURN(parts.metrics, MetricsServer::Start(config.metrics, parts.registry, PageRoutes(parts.board, key)));
    parts.core.page = {parts.metrics->address(), key};
  }
  // Before the first worker or client is let in.
  MOTLEY_RETURN_IF_ERROR(Recover(parts.core));
  MOTLEY_RETURN_IF_ERROR(parts.Serve());
  parts.printer.Start();
  parts.loop.Start([&parts] {
    const absl::Duration next = parts.runner.RunDue();
    if (coordinator::MayStop(parts.core)) parts.may_stop = true;
    if (parts.core.ended) parts.ended.store(true, std::memory_order_release);
    return next;
  });
  if (const absl::Duration interval = Watchdog::IntervalOfSystemd(); interval > absl::ZeroDuration()) {
    const std::string& address = parts.socket_address.empty() ? parts.people_address : parts.socket_address;
    parts.watchdog = std::make_unique<Watchdog>(address, interval, [] { sd_notify(0, "WATCHDOG=1"); });
  }
  std::vector<std::string> people = {parts.people_address};
  if (!parts.socket_address.empty() && parts.socket_address != parts.people_address) people.push_back(parts.socket_address);
  std::vector<std::string> workers;
  if (!parts.workers_address.empty()) workers.push_back(parts.workers_address + (WorkersUseTls(config) ? " (TLS)" : ""));
  if (!parts.workers_socket_address.empty()) workers.push_back(parts.workers_socket_address);
  LogInfo(absl::StrCat("listening on ", absl::StrJoin(people, " and "), " for people, on ", absl::StrJoin(workers, " and "),
                       " for workers, metrics on ", server->metrics_address().empty() ? "none" : server->metrics_address(),
                       ", state in ", config.state_folder));
  WarnOfPlaintext(config, parts.workers_address);
  WarnOfUnknownAccounts(config);
  return server;
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() {
  parts_->loop.Post([core = &parts_->core] { core->stopping = true; });
  parts_->watchdog.reset();
  parts_->acceptor.reset();
  // The loop turns while calls are being cancelled: their last callbacks run on it.
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(1);
  parts_->people.Shutdown(deadline);
  if (parts_->own_workers != nullptr) parts_->own_workers->Shutdown(deadline);
  if (parts_->workers_endpoint.server != nullptr) parts_->workers_endpoint.server->Shutdown(deadline);
  parts_->carries.Stop();
  parts_->executor.Stop();
  parts_->loop.Stop();
  parts_->printer.Stop();
}

void Server::BeginStop() {
  parts_->loop.Post([core = &parts_->core] { coordinator::BeginStop(*core); });
}
bool Server::MayStop() const { return parts_->may_stop; }
absl::Status Server::ended() const {
  return parts_->ended.load(std::memory_order_acquire) ? *parts_->core.ended : absl::OkStatus();
}

std::string Server::address() const { return parts_->people_address; }
std::string Server::socket_address() const { return parts_->socket_address; }
std::string Server::workers_address() const { return parts_->workers_address; }
std::string Server::workers_socket_address() const { return parts_->workers_socket_address; }
std::string Server::metrics_address() const { return parts_->metrics == nullptr ? "" : parts_->metrics->address(); }

}  // namespace motley::coordinator
