#include "worker/daemon/rank_files.h"

#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace motley::worker {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSystemFolders[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
                                          "/etc", "/opt", "/nix",  "/gnu", "/run",   "/sys"};
// Where a wheel's libraries find those of other wheels: ../../nvidia/*/lib from here.
constexpr char kTorchFolder[] = "/torch/lib";

int AddFolder(dl_phdr_info* library, size_t, void* folders) {
  const std::string name = library->dlpi_name;
  if (name.find('/') == std::string::npos) return 0;
  std::error_code error;
  const std::string folder = fs::weakly_canonical(name, error).parent_path().string();
  static_cast<std::set<std::string>*>(folders)->insert(
      absl::EndsWith(folder, kTorchFolder) ? folder.substr(0, folder.size() - sizeof(kTorchFolder) + 1) : folder);
  return 0;
}

// Of this program, of the libraries that it has and of those that it may open later.
std::set<std::string> LibraryFolders() {
  std::set<std::string> folders;
  dl_iterate_phdr(AddFolder, &folders);
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  folders.insert(program.string());
  folders.insert((program.parent_path() / "share/motley/kernels").string());
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) {
    for (const auto& part : absl::StrSplit(path, ':', absl::SkipEmpty())) folders.emplace(part);
  }
  for (const char* name : {"MOTLEY_NCCL_LIBRARY", "MOTLEY_KERNELS"}) {
    const char* const file = std::getenv(name);
    if (file != nullptr && *file == '/') folders.insert(fs::path(file).parent_path().string());
  }
  return folders;
}

std::string FromEnvironment(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// The driver makes them when a program first asks, by a setuid program; one that is held runs that without its rights.
void MakeNvidiaNodes() {
  if (access("/proc/driver/nvidia/version", F_OK) != 0 || access("/dev/nvidia-uvm", F_OK) == 0) return;
  char program[] = "nvidia-modprobe", first_card[] = "-c0", memory[] = "-u";
  char* const arguments[] = {program, first_card, memory, nullptr};
  pid_t pid = 0;
  if (posix_spawnp(&pid, program, nullptr, nullptr, arguments, environ) != 0) return;
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

RankRoots RootsOfRank(const FileRoots& roots, const std::string& checkpoint_folder) {
  RankRoots of_rank = {roots.paths(), {}};
  if (checkpoint_folder.empty()) return of_rank;
  const absl::StatusOr<std::string> root = roots.RootOf("checkpoint.folder", checkpoint_folder);
  if (root.ok()) of_rank.write.push_back(*root);
  return of_rank;
}

RankRoots RootsOfLocalRank(const FileRoots& roots, const std::string& checkpoint_folder) {
  RankRoots of_rank = {roots.paths(), {checkpoint_folder}};
  of_rank.read.push_back(fs::path(checkpoint_folder).parent_path().string());
  return of_rank;
}

std::vector<std::string> RootArguments(const RankRoots& roots) {
  std::vector<std::string> arguments;
  for (const std::string& root : roots.read) arguments.insert(arguments.end(), {"--read-root", root});
  for (const std::string& root : roots.write) arguments.insert(arguments.end(), {"--write-root", root});
  return arguments;
}

std::vector<FileGrant> GrantsOfRank(const RankRoots& roots) {
  std::vector<FileGrant> grants;
  for (const std::string& root : roots.read) grants.push_back({root, FileAccess::kRead});
  for (const std::string& root : roots.write) grants.push_back({root, FileAccess::kChange});
  for (const char* folder : kSystemFolders) grants.push_back({folder, FileAccess::kRead});
  for (const std::string& folder : LibraryFolders()) grants.push_back({folder, FileAccess::kRead});
  // Cards and how threads are called; memory that ranks of one machine share (NCCL).
  for (const char* folder : {"/dev", "/proc"}) grants.push_back({folder, FileAccess::kUse});
  grants.push_back({"/dev/shm", FileAccess::kShare});
  // CUDA's: the pipes of a card that processes share, and kernels compiled at run time.
  const std::string home = FromEnvironment("HOME", "/nowhere");
  grants.push_back({FromEnvironment("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"), FileAccess::kUse});
  grants.push_back({FromEnvironment("CUDA_CACHE_PATH", home + "/.nv"), FileAccess::kChange});
  grants.push_back({home + "/.nccl.conf", FileAccess::kRead});
  return grants;
}

absl::StatusOr<std::vector<FileDescriptor>> HoldRankToItsFiles(const RankRoots& roots) {
  if (!LandlockVersion().ok()) return std::vector<FileDescriptor>();
  MakeNvidiaNodes();
  return RestrictFiles(GrantsOfRank(roots));
}

std::string DescribeHold(const absl::StatusOr<int>& landlock_version) {
  if (landlock_version.ok()) return absl::StrCat("files: ranks are held to [files] roots by Landlock ", *landlock_version);
  return absl::StrCat("files: the kernel does not hold ranks to [files] roots: ",
                      std::string(landlock_version.status().message()), "; let nobody but the worker's user write there");
}

}  // namespace motley::worker
