#include "worker/daemon/flags.h"

#include <sysexits.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "common/base/beneath.h"
#include "common/base/build_info.h"
#include "common/base/landlock.h"
#include "common/rpc/tls_credentials.h"
#include "worker/daemon/config_flags.h"
#include "worker/daemon/join_command.h"
#include "worker/daemon/nvml_cards.h"
#include "worker/daemon/offer.h"
#include "worker/daemon/probe.h"
#include "worker/daemon/rank_files.h"
#include "worker/daemon/rank_trial.h"

namespace motley::worker {
namespace {

int Probe(const std::string& node) {
  const absl::StatusOr<std::string> text = ProbeText(ReadHostFacts(node), LookForCards(NvmlLibrary::Open(), NvidiaFolder()));
  if (!text.ok()) {
    std::cerr << "motley-worker: " << text.status().message() << "\n";
    return EX_UNAVAILABLE;
  }
  std::cout << *text << std::flush;
  return 0;
}

// What the configuration would offer on this machine now. The cards are locked for a moment.
int Check(const WorkerConfig& config) {
  if (const absl::Status own = CheckOwnAddress("worker.data_address", config.data_address); !own.ok()) {
    std::cerr << "motley-worker: " << own.message() << "\n";
    return ExitCode(own);
  }
  const absl::StatusOr<Offer> offer = MakeOffer(config, LookForCards(NvmlLibrary::Open(), NvidiaFolder()));
  if (!offer.ok()) {
    std::cerr << "motley-worker: " << offer.status().message() << "\n";
    return ExitCode(offer.status());
  }
  for (const std::string& line : Describe(*offer)) std::cout << line << "\n";
  std::cout << DescribeHold(LandlockVersion()) << "\n";
  if (const std::string instead = SocketInstead(config); !instead.empty())
    std::cout << "dials " << config.coordinators[0] << " by plain TCP; " << instead << "\n";
  for (const std::string& line : FileRoots(config.file_roots).Missing()) std::cout << line << "\n";
  for (const std::string& binary : RankBinaries(offer->devices)) {
    if (const absl::Status status = TryRank(binary); !status.ok()) {
      std::cerr << "motley-worker: " << status.message() << "\n";
      return ExitCode(status);
    }
  }
  return 0;
}

// Empty: the worker is to be run now.
std::optional<int> RunJoin(const JoinOptions& options, bool foreground) {
  RequireTls13();
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  const absl::Status status = Join(options, foreground, std::cout);
  if (status.ok()) return foreground ? std::nullopt : std::optional(0);
  std::cerr << "motley-worker: " << status.message() << "\n";
  return ExitCode(status);
}

// Empty: defaults and flags say it all.
absl::StatusOr<WorkerConfig> Load(const std::string& path) {
  if (path.empty()) return WorkerConfig();
  return LoadWorkerConfig(path);
}

// `name` as seen from the folder of this program.
std::string BesideThisProgram(const char* name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / name).lexically_normal().string();
}

}  // namespace

int ExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return EX_NOINPUT;
    case absl::StatusCode::kUnavailable:
      return EX_UNAVAILABLE;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kUnimplemented:  // another protocol: one end is upgraded before the other
      return EX_TEMPFAIL;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return EX_CONFIG;
    default:
      return EX_SOFTWARE;
  }
}

FlagsResult ParseFlags(int argc, char** argv) {
  CLI::App app("motley-worker: offers this node's devices to a coordinator and runs their ranks.");
  app.set_version_flag("--version", BuildInfo("motley-worker"));
  std::string path, addresses;
  bool probe = false, check = false, foreground = false;
  ConfigFlags keys;
  JoinOptions join;
  app.add_option("--config", path, "TOML file (docs/use/worker.md); required, except with --coordinator or --probe");
  keys.AddTo(app);
  app.add_option("--addresses", addresses, "File in which to say, as JSON, which addresses were taken (with port 0, say)");
  app.add_flag("--probe", probe, "Print this node's cards as the [[node]] of a cluster file (docs/use/clusters.md), and end");
  app.add_flag("--check", check, "Print what the configuration would offer on this machine now, and end");
  app.add_option("--join", join.token, "Become a node of the cluster whose coordinator gave this token ('motley node token')");
  app.add_option("--join-file", join.token_file, "The same with a file that holds the token, or - for stdin");
  app.add_flag("--foreground", foreground, "with --join: run the worker then, and start no service");
  app.get_option("--join")->excludes("--join-file");
  try {
    app.parse(argc, argv);
    const bool joining = !join.token.empty() || !join.token_file.empty();
    if (joining && keys.coordinators.empty()) throw CLI::RequiredError("--coordinator");
    if (joining && path.empty()) path = kUsualConfig;
    if (!joining && foreground) throw CLI::RequiredError("--join");
    if (joining && !foreground && keys.HasMoreThanJoinWrites()) {
      throw CLI::ValidationError(
          "--join writes node, coordinators, data address, identity and roots into the configuration; other flags"
          " count with --foreground alone");
    }
    if (!probe && path.empty() && keys.coordinators.empty()) throw CLI::RequiredError("--config or --coordinator");
    if (joining) {
      join.coordinators = keys.coordinators, join.node = keys.node.empty() ? HostName() : keys.node, join.config = path;
      join.identity = keys.identity.empty() ? IdentityFolderOf(WorkerConfig()) : keys.identity;
      join.data_address = keys.data_address, join.roots = keys.roots;
      join.as_installed = BesideThisProgram("../share/motley/config/worker.toml");
      if (const std::optional<int> code = RunJoin(join, foreground)) return {std::nullopt, *code};
    }
  } catch (const CLI::ParseError& error) {
    return {std::nullopt, app.exit(error) == 0 ? 0 : EX_USAGE};
  }
  if (probe) return {std::nullopt, Probe(keys.node.empty() ? HostName() : keys.node)};
  absl::StatusOr<WorkerConfig> config = Load(path);
  absl::Status status = config.status();
  if (status.ok()) {
    keys.Apply(*config);
    config->addresses_file = addresses;
    if (config->name.empty()) config->name = HostName();
    if (config->rank_binary.empty()) config->rank_binary = BesideThisProgram("motley-rank");
    status = Validate(*config);
    if (!status.ok()) {
      std::cerr << "motley-worker: " << (path.empty() ? "" : path + ": ") << status.message() << "\n";
      return {std::nullopt, EX_CONFIG};
    }
    if (check) return {std::nullopt, Check(*config)};
    return {*std::move(config), 0};
  }
  std::cerr << "motley-worker: " << status.message() << "\n";
  return {std::nullopt, ExitCode(status)};
}

}  // namespace motley::worker
