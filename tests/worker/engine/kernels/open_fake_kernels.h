// Kernels over host memory: a file as the fake driver reads it, loaded by it.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/common/base/folders.h"
#include "worker/engine/kernels/driver_library.h"
#include "worker/engine/kernels/kernel_launcher.h"

namespace motley::engine {

inline std::string FakeDriver() { return BuildFolder() + "/tests/libfake_cuda.so"; }

// With code for these cards.
inline KernelFile FakeKernelFile(const std::vector<int>& capabilities = {90}) {
  KernelFile file = {.compiler = "NVRTC 12.9"};
  for (const kernels::KernelRow& row : kernels::kKernels) {
    for (const kernels::KernelType& type : kernels::kKernelTypes) {
      const std::string name(row.name), dtype(type.name);
      file.kernels.push_back({name, dtype, name + " " + dtype, row.argument_bytes});
    }
  }
  for (const int capability : capabilities) file.images.push_back({capability, false, "fake sm_" + std::to_string(capability)});
  WrittenKernelFile(file);
  return file;
}

inline absl::StatusOr<std::unique_ptr<KernelLauncher>> LoadFakeKernels(const KernelFile& file = FakeKernelFile()) {
  const absl::StatusOr<DriverLibrary> driver = OpenDriver(FakeDriver());
  if (!driver.ok()) return driver.status();
  return KernelLauncher::Load(driver->api, driver->version, {.ordinal = 0, .stream = [] { return nullptr; }}, file,
                              "/there/motley-kernels");
}

// One for all ranks of this process.
inline const KernelLauncher& TheFakeKernels() {
  static const absl::StatusOr<std::unique_ptr<KernelLauncher>> kernels = LoadFakeKernels();
  EXPECT_TRUE(kernels.ok()) << kernels.status();
  return **kernels;
}

// Of this process, so far.
inline long FakeLaunches() {
  void* const library = dlopen(FakeDriver().c_str(), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<long (*)()>(dlsym(library, "FakeCudaLaunches"))();
}

}  // namespace motley::engine
