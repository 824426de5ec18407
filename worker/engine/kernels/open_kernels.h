// The kernels of this machine's card: where their file is, and whether it is wanted. docs/inside/kernels.md
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/engine/kernels/driver_library.h"
#include "worker/engine/kernels/kernel_launcher.h"

namespace motley::engine {

// `setting`: of MOTLEY_KERNELS: empty: beside the program `rank`, or where it is installed in share/motley/kernels, under the
// rank's name; "off": nowhere; else a path. FAILED_PRECONDITION: off.
absl::StatusOr<std::string> KernelFilePath(const std::string& setting, const std::string& rank);

// NOT_FOUND and FAILED_PRECONDITION: PyTorch's operators stay; says why, and what mends it.
absl::StatusOr<std::unique_ptr<KernelLauncher>> OpenKernels(const std::string& path, const std::string& driver,
                                                            KernelLauncher::Card card);
// Of this process's environment and folder, by the machine's driver.
absl::StatusOr<std::unique_ptr<KernelLauncher>> OpenKernels(KernelLauncher::Card card);

// What the program `rank` would launch on a card, without opening the card: for who describes it.
struct SeenKernels {
  std::string digest;  // its first digits; empty: PyTorch's operators
  std::string why_not;
};
SeenKernels SeeKernels(const std::string& rank, int compute_capability);

}  // namespace motley::engine
