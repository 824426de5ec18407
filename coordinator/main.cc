// motley-coordinator: parse, build, run until a signal that asks to end, stop.
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <iostream>

#include "common/base/addresses_file.h"
#include "common/base/logging.h"
#include "common/base/standard_streams.h"
#include "common/base/stop_signals.h"
#include "common/rpc/tls_credentials.h"
#include "coordinator/daemon_umask.h"
#include "coordinator/flags.h"
#include "coordinator/server.h"
#include "coordinator/store_commands.h"

namespace {

// Before the libraries' constructors (standard_streams.h).
[[gnu::section(".preinit_array"), gnu::used]] void (*hold_standard_streams)() = motley::HoldStandardStreams;

using motley::coordinator::Config;
using motley::coordinator::Server;

absl::Status SayAddresses(const Config& config, const Server& server) {
  if (config.addresses_file.empty()) return absl::OkStatus();
  return motley::WriteAddressesFile(config.addresses_file, {{"people", server.address()},
                                                            {"socket", server.socket_address()},
                                                            {"workers", server.workers_address()},
                                                            {"workers_socket", server.workers_socket_address()},
                                                            {"metrics", server.metrics_address()}});
}

// Every worker and every watching client holds a descriptor, and gRPC's listener stalls for good when there are none left.
void RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void KeepFilesToOneself() { umask(motley::coordinator::DaemonUmask(umask(0077))); }

// What it would still say to its nodes is not its to say.
[[noreturn]] void EndAtOnce(const absl::Status& why) {
  motley::FlushLog();
  std::cerr << "motley-coordinator: " << why.message() << std::endl;
  _exit(motley::coordinator::ExitCode(why));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace motley;
  KeepFilesToOneself();
  IgnoreSignalsOfWrites();
  if (const auto code = coordinator::RunStoreCommand(argc, argv, std::cout, std::cerr)) return *code;
  const coordinator::FlagsResult flags = coordinator::ParseFlags(argc, argv);
  if (!flags.config) return flags.exit_code;
  InitLogging("coordinator", flags.config->log_level);
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);  // what gRPC says is said again, better, by us
  RequireTls13();
  RaiseDescriptorLimit();

  const sigset_t signals = BlockStopSignals();

  auto server = Server::Start(*flags.config);
  const absl::Status started = server.ok() ? SayAddresses(*flags.config, **server) : server.status();
  if (!started.ok()) {
    std::cerr << "motley-coordinator: " << started.message() << "\n";
    return coordinator::ExitCode(started);
  }
  sd_notify(0, "READY=1");
  constexpr timespec kTurn = {0, 200'000'000};
  while (sigtimedwait(&signals, nullptr, &kTurn) <= 0) {
    const absl::Status ended = (*server)->ended();
    if (ended.ok()) continue;
    sd_notify(0, "STOPPING=1");
    EndAtOnce(ended);
  }
  sd_notify(0, "STOPPING=1");
  LogInfo("stopping; a running job saves if the time allows, and goes on when the coordinator is back");
  (*server)->BeginStop();
  constexpr timespec kPoll = {0, 50'000'000};
  while (!(*server)->MayStop()) {
    if (const absl::Status ended = (*server)->ended(); !ended.ok()) EndAtOnce(ended);
    if (!AsksToHurry(sigtimedwait(&signals, nullptr, &kPoll))) continue;
    LogWarning("told again to stop: nothing more is waited for");
    break;
  }
  server->reset();
  FlushLog();
  _exit(0);  // a backup may hang on a share that does not answer, on a thread that nobody waits for
}
