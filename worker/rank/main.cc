// motley-rank: one device of one epoch. Started by motley-worker with two inherited descriptors; ends with them.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "common/base/beneath.h"
#include "common/base/build_info.h"
#include "common/base/clock.h"
#include "common/base/standard_streams.h"
#include "common/base/stop_signals.h"
#include "worker/daemon/rank_files.h"
#include "worker/daemon/rank_session.h"
#include "worker/engine/base/libtorch.h"
#include "worker/engine/engine.h"

namespace {

// Before the libraries' constructors (standard_streams.h).
[[gnu::section(".preinit_array"), gnu::used]] void (*hold_standard_streams)() = motley::HoldStandardStreams;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("One rank of a training job; started by motley-worker, not by hand.");
  app.set_version_flag("--version", motley::BuildInfo("motley-rank"));
  int fd = -1;
  motley::engine::EngineOptions engine_options;
  motley::worker::RankRoots roots;
  bool nccl = false, check = false;
  CLI::Option* const asks = app.add_flag(
      "--nccl", nccl, "Print the version of the NCCL that it would open, if it works here (tried on a card), and end");
  CLI::Option* const tries = app.add_flag("--check", check, "See whether it starts here with its libtorch, and end");
  app.add_option("--fd", fd, "Socket to the worker (inherited)")->excludes(asks)->excludes(tries);
  app.add_option("--link-clock-fd", engine_options.link_clock_fd,
                 "Memory in which the node's emulated links keep their time (inherited)");
  app.add_option("--known-parts-fd", engine_options.known_parts_fd,
                 "Memory in which the node's ranks keep what they have compared of the data (inherited)");
  std::string authentication(motley::DataAuthenticationName(engine_options.authentication));
  app.add_option("--data-authentication", authentication, "worker.data_authentication")->check([](const std::string& name) {
    return motley::ParseDataAuthentication(name) ? std::string() : "no such value";
  });
  app.add_option("--read-root", roots.read, "A folder beneath which it may read files of jobs")->allow_extra_args(false);
  app.add_option("--write-root", roots.write, "The one beneath which it may write checkpoints")->allow_extra_args(false);
  try {
    app.parse(argc, argv);
    if (!nccl && !check && fd < 0) throw CLI::RequiredError("--fd");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 64;
  }
  if (const absl::Status status = motley::engine::CheckLibtorch(); !status.ok()) {
    std::cerr << "motley-rank: " << status.message() << "\n";
    return 70;
  }
  if (check) return 0;
  if (nccl) {
    const absl::StatusOr<std::string> version = motley::engine::NcclVersion();
    (version.ok() ? std::cout : std::cerr) << (version.ok() ? *version : std::string(version.status().message())) << std::endl;
    _exit(version.ok() ? 0 : 69);  // at once: a trial that hangs still has its thread
  }
  // The data plane writes with bare writev.
  motley::IgnoreSignalsOfWrites();

  // Before it hears of a job. The libraries' own threads of before open nothing that a job names.
  const auto held = motley::worker::HoldRankToItsFiles(roots);
  if (!held.ok()) {
    std::cerr << "motley-rank: " << held.status().message() << "\n";
    return 70;
  }
  const motley::FileRoots file_roots(roots.read);
  engine_options.roots = &file_roots;
  engine_options.authentication = *motley::ParseDataAuthentication(authentication);

  const motley::SystemClock clock;
  motley::worker::RankSession::Options options;
  options.on_orphaned = [] { _exit(75); };
  motley::worker::RankSession session(
      fd, [&](motley::engine::RankHost& host) { return motley::engine::CreateEngine(host, engine_options); }, clock, options);
  if (absl::Status status = session.Serve(); !status.ok()) {
    std::cerr << "motley-rank: " << status.message() << "\n";
    return 70;
  }
  return 0;
}
