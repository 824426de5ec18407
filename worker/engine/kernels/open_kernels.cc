#include "worker/engine/kernels/open_kernels.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/status_macros.h"

namespace motley::engine {
namespace {

std::string Setting() {
  const char* setting = std::getenv("MOTLEY_KERNELS");
  return setting == nullptr ? "" : setting;
}

absl::StatusOr<std::string> DigestFor(const std::string& rank, int compute_capability) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string path, KernelFilePath(Setting(), rank));
  MOTLEY_ASSIGN_OR_RETURN(const KernelFile file, ReadKernelFile(path));
  MOTLEY_RETURN_IF_ERROR(CheckKernelsOfThisBuild(file, path));
  MOTLEY_RETURN_IF_ERROR(ImageFor(file, compute_capability, path).status());
  return ShortDigest(file);
}

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
  std::error_code error;
  const std::filesystem::path rank = std::filesystem::read_symlink("/proc/self/exe", error);
  MOTLEY_ASSIGN_OR_RETURN(const std::string path, KernelFilePath(Setting(), rank));
  return OpenKernels(path, kDriverName, std::move(card));
}

SeenKernels SeeKernels(const std::string& rank, int compute_capability) {
  std::error_code error;  // a second rank is seen among the other programs by a link
  const absl::StatusOr<std::string> digest = DigestFor(std::filesystem::weakly_canonical(rank, error), compute_capability);
  if (digest.ok()) return {*digest, ""};
  return {"", std::string(digest.status().message())};
}

}  // namespace motley::engine
