// The kernels of a file, loaded on one card, and their launch on the stream that is current where it is called.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/dtype.h"
#include "worker/engine/kernels/driver_api.h"
#include "worker/engine/kernels/kernel_file.h"
#include "worker/engine/kernels/kernel_table.h"

namespace motley::engine {

// Thread-safe. Nothing that was launched may run when it is destroyed.
class KernelLauncher {
 public:
  struct Card {
    int ordinal = 0;                // as the driver counts
    std::function<void*()> stream;  // of PyTorch, current on the calling thread
  };

  // Loads what the card runs, into its primary context, which is PyTorch's. `place`: of the file, for messages.
  // FAILED_PRECONDITION: the file is of another build, or has no code that this card or this driver runs; says what mends it.
  static absl::StatusOr<std::unique_ptr<KernelLauncher>> Load(const DriverApi& driver, int driver_version, Card card,
                                                              const KernelFile& file, const std::string& place);
  ~KernelLauncher();
  KernelLauncher(const KernelLauncher&) = delete;
  KernelLauncher& operator=(const KernelLauncher&) = delete;

  // float64 has none.
  static bool HasType(DType dtype) { return dtype != DType::kFloat64; }
  // The kernel that takes such arguments. INTERNAL: the driver refuses.
  template <typename Arguments>
  absl::Status Launch(DType dtype, unsigned blocks, Arguments arguments, unsigned shared_bytes = 0) const {
    return LaunchRow(kernels::RowOf<Arguments>(), dtype, blocks, &arguments, shared_bytes);
  }
  // Each kernel of the type once, with nothing to do: a first launch may wait for the card. By each thread that launches.
  absl::Status LaunchEachOnce(DType dtype) const;

  const std::string& digest() const { return digest_; }  // of the file
  const std::string& image() const { return image_; }    // "sm_90"

 private:
  KernelLauncher(const DriverApi& driver, Card card) : driver_(driver), card_(std::move(card)) {}
  absl::Status LoadImage(const KernelImage& image, const KernelFile& file, int driver_version, const std::string& place);
  absl::Status UseContext() const;
  absl::Status LaunchRow(size_t row, DType dtype, unsigned blocks, void* arguments, unsigned shared_bytes) const;

  const DriverApi driver_;
  const Card card_;
  std::string digest_, image_;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  // By row of the table and type.
  std::array<std::array<CUfunction, std::size(kernels::kKernelTypes)>, std::size(kernels::kKernels)> functions_{};
};

}  // namespace motley::engine
