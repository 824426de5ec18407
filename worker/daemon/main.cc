// motley-worker: parse, build, run until a signal that asks to end or a refusal, stop.
#include <stdlib.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>

#include <iostream>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/addresses_file.h"
#include "common/base/logging.h"
#include "common/base/standard_streams.h"
#include "common/base/stop_signals.h"
#include "common/rpc/tls_credentials.h"
#include "worker/daemon/carry_child.h"
#include "worker/daemon/ending.h"
#include "worker/daemon/files_child.h"
#include "worker/daemon/flags.h"
#include "worker/daemon/stop.h"
#include "worker/daemon/storage_checker.h"
#include "worker/daemon/worker.h"

namespace {

// Before the libraries' constructors (standard_streams.h).
[[gnu::section(".preinit_array"), gnu::used]] void (*hold_standard_streams)() = motley::HoldStandardStreams;

absl::Status SayAddresses(const motley::worker::WorkerConfig& config, const motley::worker::Worker& worker) {
  if (config.addresses_file.empty()) return absl::OkStatus();
  return motley::WriteAddressesFile(config.addresses_file, {{"metrics", worker.metrics_address()}});
}

}  // namespace

int main(int argc, char** argv) {
  using namespace motley;
  IgnoreSignalsOfWrites();
  if (argc > 1 && std::string_view(argv[1]) == worker::kStorageChildWord) return worker::StorageChildMain(argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == worker::kFilesChildWord) return worker::FilesChildMain(argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == worker::kCarryChildWord) return worker::CarryChildMain(argc, argv);
  const worker::FlagsResult flags = worker::ParseFlags(argc, argv);
  if (!flags.config) return flags.exit_code;
  const worker::WorkerConfig& config = *flags.config;
  InitLogging("worker", LogLevel::kInfo);
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);  // what gRPC says is said again, better, by us
  RequireTls13();
  if (config.insecure)
    LogWarning(
        "insecure = true: what ranks send each other and /metrics are not encrypted beyond loopback; use it on a trusted network "
        "only");
  if (config.data_authentication == DataAuthentication::kNever && !IsLoopback(config.data_address))
    LogWarning("data_authentication = 'never': whoever is on the way between the ranks can change what they send, unseen");

  const sigset_t signals = BlockStopSignals();

  SystemClock clock;
  worker::Ending ending(signals);
  worker::Worker::Events events;
  events.on_connected = [] { sd_notify(0, "READY=1"); };
  events.on_refused = [&ending](absl::Status why) { ending.Refuse(std::move(why)); };
  auto worker = worker::Worker::Start(config, clock, std::move(events));
  const absl::Status said = worker.ok() ? SayAddresses(config, **worker) : absl::OkStatus();
  if (!worker.ok() || !said.ok()) {
    std::cerr << "motley-worker: " << (worker.ok() ? said : worker.status()).message() << "\n";
    return worker.ok() ? EX_CANTCREAT : worker::ExitCode(worker.status());
  }
  LogInfo(absl::StrCat("node ", config.name, "; metrics on ",
                       (*worker)->metrics_address().empty() ? "no port" : (*worker)->metrics_address()));
  const std::optional<absl::Status> refused = ending.Wait([&] { return (*worker)->alive(absl::Seconds(5)); });
  sd_notify(0, "STOPPING=1");
  if (!refused) worker::LetRanksSave(**worker, absl::Seconds(config.stop_seconds), signals, clock);
  worker->reset();
  if (!refused) return 0;
  std::cerr << "motley-worker: " << refused->message() << "\n";
  return worker::ExitCode(*refused);
}
