#include "worker/engine/kernels/open_kernels.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/status_macros.h"

namespace motley::engine {
namespace {

constexpr char kVariable[] = "MOTLEY_KERNELS";

}  // namespace

absl::StatusOr<std::string> KernelFilePath(const std::string& setting, const std::string& rank) {
  if (setting == "off") return absl::FailedPreconditionError("MOTLEY_KERNELS is off");
  if (!setting.empty()) return setting;
  const std::filesystem::path program(rank);
  // As deploy/cmake/install_cards.cmake has it.
  const std::filesystem::path installed = program.parent_path().parent_path() / "share/motley/kernels" / program.filename();
  std::error_code error;
  if (std::filesystem::exists(installed, error)) return installed.string();
  return (program.parent_path() / kKernelFileName).string();
}

absl::StatusOr<std::unique_ptr<KernelLauncher>> OpenKernels(const std::string& path, const std::string& driver,
                                                            KernelLauncher::Card card) {
  MOTLEY_ASSIGN_OR_RETURN(const KernelFile file, ReadKernelFile(path));
  MOTLEY_ASSIGN_OR_RETURN(const DriverLibrary opened, OpenDriver(driver));
  return KernelLauncher::Load(opened.api, opened.version, std::move(card), file, path);
}

absl::StatusOr<std::unique_ptr<KernelLauncher>> OpenKernels(KernelLauncher::Card card) {
  const char* setting = std::getenv(kVariable);
  std::error_code error;
  const std::filesystem::path rank = std::filesystem::read_symlink("/proc/self/exe", error);
  MOTLEY_ASSIGN_OR_RETURN(const std::string path, KernelFilePath(setting == nullptr ? "" : setting, rank));
  return OpenKernels(path, kDriverName, std::move(card));
}

}  // namespace motley::engine
