#include "coordinator/flags.h"

#include <sysexits.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/accounts.h"
#include "common/base/build_info.h"
#include "common/base/clean_text.h"

namespace motley::coordinator {

namespace {

// By what people and workers would come.
std::string DescribeDoors(const Config& config) {
  const auto doors = [](std::vector<std::string> all, const std::string& socket) {
    if (!socket.empty()) all.push_back(absl::StrCat("unix:", socket));
    std::erase(all, "");
    return absl::StrJoin(all, " and ");
  };
  const std::string by_tcp =
      config.workers_listen.empty() ? "" : absl::StrCat(config.workers_listen, WorkersUseTls(config) ? " (TLS)" : "");
  std::vector<std::string> accounts = {"root", "the coordinator's own account", kWorkerAccount};
  accounts.insert(accounts.end(), config.worker_accounts.begin(), config.worker_accounts.end());
  return absl::StrCat("people come by ", doors({config.listen}, SocketPath(config)), config.owners ? "; jobs have owners" : "",
                      "\nworkers come by ", doors({by_tcp}, WorkersSocketPath(config)),
                      "; by the socket these accounts: ", CleanLine(absl::StrJoin(accounts, ", ")), "\nstate in ",
                      config.state_folder, "\n");
}

}  // namespace

FlagsResult ParseFlags(int argc, char** argv) {
  std::string file, socket, listen, workers, workers_socket, metrics, state_dir, addresses;
  bool insecure = false, no_metrics = false, check = false;
  CLI::App app("motley-coordinator: registry, job queue, planner and API of a Motley cluster");
  app.set_version_flag("--version", BuildInfo("motley-coordinator"));
  app.footer("Commands on the stored state, without a service: motley-coordinator check | backup | restore (--help of each)");
  app.add_option("--config", file,
                 "TOML file with [server] socket, listen, metrics, owners, insecure; [workers] listen, socket, accounts, tls; "
                 "[limits]; [state] "
                 "folder; "
                 "[lease] seconds; [retention]; [log] level");
  auto* socket_option = app.add_option("--socket", socket, "path of the Unix socket for people; '' for none");
  app.add_option("--listen", listen, "host:port on loopback for people, besides the socket (port 0: any)");
  auto* workers_option = app.add_option("--workers", workers, "host:port of the workers' sessions (port 0: any); '' for none");
  auto* workers_socket_option =
      app.add_option("--workers-socket", workers_socket, "path of the Unix socket for workers of this machine; '' for none");
  auto* metrics_option = app.add_option("--metrics", metrics, "host:port of /metrics");
  app.add_flag("--no-metrics", no_metrics, "no metrics listener")->excludes(metrics_option);
  app.add_option("--state-dir", state_dir, "folder of the durable state");
  app.add_option("--addresses", addresses, "file in which to say, as JSON, which addresses were taken (with port 0, say)");
  app.add_flag("--insecure", insecure, "allow plaintext /metrics on addresses that are not loopback");
  app.add_flag("--check", check,
               "See whether the configuration can be used on this machine, say by what people and workers would come, and end");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return {std::nullopt, app.exit(e) == 0 ? 0 : EX_USAGE};
  }
  Config config;
  if (!file.empty()) {
    if (absl::Status status = LoadConfigFile(file, &config); !status.ok()) {
      std::cerr << "motley-coordinator: " << status.message() << "\n";
      return {std::nullopt, absl::IsNotFound(status) ? EX_NOINPUT : EX_CONFIG};
    }
  }
  if (socket_option->count() > 0) config.socket = socket;
  if (!listen.empty()) config.listen = listen;
  if (workers_socket_option->count() > 0) config.workers_socket = workers_socket;
  if (workers_option->count() > 0) config.workers_listen = workers;
  if (!metrics.empty()) config.metrics = metrics;
  if (no_metrics) config.metrics.clear();
  if (!state_dir.empty()) config.state_folder = state_dir;
  config.addresses_file = addresses;
  config.insecure = config.insecure || insecure;
  if (absl::Status status = Validate(config); !status.ok()) {
    std::cerr << "motley-coordinator: " << (file.empty() ? "" : file + ": ") << status.message() << "\n";
    return {std::nullopt, EX_CONFIG};
  }
  if (!check) return {config, 0};
  if (const std::vector<std::string> unknown = UnknownAccounts(config); !unknown.empty()) {
    for (const std::string& why : unknown)
      std::cerr << "motley-coordinator: " << (file.empty() ? "" : file + ": ") << why << "\n";
    return {std::nullopt, EX_CONFIG};
  }
  std::cout << DescribeDoors(config);
  return {std::nullopt, 0};
}

int ExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return EX_OK;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kAborted:  // another coordinator has taken over: a new start changes nothing
      return EX_CONFIG;
    case absl::StatusCode::kUnavailable:
      return EX_UNAVAILABLE;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kNotFound:
      return EX_CANTCREAT;
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kFailedPrecondition:
      return EX_DATAERR;
    case absl::StatusCode::kResourceExhausted:
      return EX_IOERR;
    default:
      return EX_SOFTWARE;
  }
}

}  // namespace motley::coordinator
