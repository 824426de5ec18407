#include "worker/daemon/join_command.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/accounts.h"
#include "common/base/address.h"
#include "common/base/beneath.h"
#include "common/base/clean_text.h"
#include "common/base/files.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "worker/daemon/join.h"
#include "worker/daemon/join_files.h"

namespace motley::worker {
namespace {

constexpr char kSystemdRuns[] = "/run/systemd/system";
constexpr char kDropIn[] = "/etc/systemd/system/motley-worker.service.d/files.conf";
constexpr int64_t kLargestTokenFile = 4 << 10;
constexpr int64_t kLargestInstalled = 1 << 20;

absl::StatusOr<JoinToken> ReadToken(const JoinOptions& options) {
  if (options.token_file.empty()) return ParseJoinToken(options.token);
  if (options.token_file == "-") {
    std::string line;
    std::getline(std::cin, line);
    return ParseJoinToken(line);
  }
  MOTLEY_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(options.token_file, kLargestTokenFile));
  return ParseJoinToken(text);
}

bool IsKept(const std::string& path, const std::string& as_installed) {
  if (!FileExists(path)) return false;
  const absl::StatusOr<std::string> there = ReadSmallFile(path, kLargestInstalled);
  const absl::StatusOr<std::string> installed = ReadSmallFile(as_installed, kLargestInstalled);
  return !there.ok() || !installed.ok() || *there != *installed;
}

// The configuration of the node as it will be. Before anything is asked for: a token is good for one join, and half a join is
// none.
absl::StatusOr<WorkerConfig> CheckBefore(const JoinedNode& node, const std::string& path, bool kept) {
  MOTLEY_RETURN_IF_ERROR(CheckName("--node", node.name));
  MOTLEY_RETURN_IF_ERROR(CheckHostAddress("--data-address", node.data_address));
  MOTLEY_RETURN_IF_ERROR(CheckOwnAddress("--data-address", node.data_address));
  MOTLEY_RETURN_IF_ERROR(FileRoots::Validate(node.roots));
  if (kept) {
    MOTLEY_ASSIGN_OR_RETURN(WorkerConfig there, LoadWorkerConfig(path));
    if (there.name.empty()) there.name = HostName();
    MOTLEY_RETURN_IF_ERROR(CheckKept(there, node, path));
    MOTLEY_RETURN_IF_ERROR(Validate(there));
    return there;
  }
  // What could not be read back, say a root that is no UTF-8.
  absl::StatusOr<WorkerConfig> written = ParseWorkerConfig(WorkerToml(node), path);
  if (!written.ok() || written->file_roots != node.roots || IdentityFolderOf(*written) != node.identity) {
    return absl::InvalidArgumentError(absl::StrCat("--root or --identity cannot be written into a configuration: ",
                                                   CleanText(absl::StrJoin(node.roots, ", ")), "; ", CleanText(node.identity)));
  }
  MOTLEY_RETURN_IF_ERROR(Validate(*written));
  MOTLEY_RETURN_IF_ERROR(MakeFolders(std::filesystem::path(path).parent_path().string()));
  MOTLEY_RETURN_IF_ERROR(CheckWritable(path));
  return written;
}

// The service's user reads what root wrote.
absl::Status GiveToService(const std::string& folder) {
  const absl::StatusOr<Account> user = AccountNamed(kWorkerAccount);
  if (geteuid() != 0 || !user.ok()) return absl::OkStatus();
  std::error_code error;
  std::vector<std::string> paths = {folder};
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) paths.push_back(entry.path().string());
  for (const std::string& path : paths) {
    if (lchown(path.c_str(), user->uid, user->group) != 0) return FileError(errno, "give to motley-worker", path);
  }
  return absl::OkStatus();
}

absl::Status Run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  int status = 0;
  const int failed = posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ);
  if (failed == 0 && waitpid(child, &status, 0) == child && status == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("'", absl::StrJoin(words, " "), "' failed; see its words above"));
}

absl::Status StartService(const WorkerConfig& config, std::ostream& out) {
  std::vector<std::string> written = config.file_roots;
  if (IdentityFolderOf(config) != IdentityFolderOf(WorkerConfig())) written.push_back(IdentityFolderOf(config));
  if (!written.empty()) {
    MOTLEY_RETURN_IF_ERROR(MakeFolders(std::filesystem::path(kDropIn).parent_path().string()));
    MOTLEY_RETURN_IF_ERROR(ReplaceFileDurably(kDropIn, UnitDropIn(written), 0644));
    out << "written: " << kDropIn << "\n" << std::flush;
  }
  MOTLEY_RETURN_IF_ERROR(Run({"systemctl", "daemon-reload"}));
  MOTLEY_RETURN_IF_ERROR(Run({"systemctl", "enable", "motley-worker"}));
  // One that runs takes up the new identity.
  MOTLEY_RETURN_IF_ERROR(Run({"systemctl", "restart", "motley-worker"}));
  out << "motley-worker.service runs; 'journalctl -u motley-worker' has its log\n";
  return absl::OkStatus();
}

// The first that answers: a machine that may be the coordinator one day is not it now.
absl::StatusOr<absl::Time> JoinAtOneOf(const JoinedNode& node, const JoinToken& token, std::ostream& out) {
  absl::StatusOr<absl::Time> until = absl::UnavailableError("no coordinator was named");
  for (const std::string& coordinator : node.coordinators) {
    if (coordinator != node.coordinators.front()) out << until.status().message() << "\n";
    out << "joining the cluster at " << coordinator << " as node " << node.name << "\n" << std::flush;
    until = JoinCluster({token, coordinator, NodeName(node.name)}, IdentityFolder(node.identity));
    if (!absl::IsUnavailable(until.status())) return until;
  }
  return until;
}

}  // namespace

absl::Status Join(const JoinOptions& options, bool foreground, std::ostream& out) {
  const std::string path = std::filesystem::absolute(options.config).string();
  JoinedNode node = {options.node, options.coordinators, std::filesystem::absolute(options.identity).string(),
                     options.data_address, options.roots};
  MOTLEY_ASSIGN_OR_RETURN(const JoinToken token, ReadToken(options));
  for (const std::string& address : node.coordinators)
    MOTLEY_RETURN_IF_ERROR(ParseHostPort("--coordinator", address, 1).status());
  if (node.data_address.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(node.data_address, LocalEndOfWay(node.coordinators.front()));
  }
  const bool kept = IsKept(path, options.as_installed);
  MOTLEY_ASSIGN_OR_RETURN(const WorkerConfig config, CheckBefore(node, path, kept));
  MOTLEY_ASSIGN_OR_RETURN(const absl::Time until, JoinAtOneOf(node, token, out));
  out << "a member now; key and certificate are in " << node.identity << ", good until "
      << absl::FormatTime("%Y-%m-%d %H:%M UTC", until, absl::UTCTimeZone()) << " and renewed by themselves\n";
  if (kept) {
    out << (foreground ? "kept as it is: " : "kept as it is, flags for it do not count: ") << path << "\n";
  } else {
    MOTLEY_RETURN_IF_ERROR(ReplaceFileDurably(path, WorkerToml(node), 0644));
    out << "written: " << path << "\n";
  }
  if (config.file_roots.empty())
    out << "[files] roots are none: jobs read no folder of this node, and have what is sent for them and their checkpoints in "
           "[files] local\n";
  if (foreground) return absl::OkStatus();
  if (path != kUsualConfig || !FileExists(kSystemdRuns) || geteuid() != 0) {
    out << "start it: motley-worker --config " << path << "\n";
    return absl::OkStatus();
  }
  MOTLEY_RETURN_IF_ERROR(GiveToService(node.identity));
  return StartService(config, out);
}

}  // namespace motley::worker
