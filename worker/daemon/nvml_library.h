// NVIDIA's management library, opened at run time: it comes with the driver, and where there is none the worker runs without.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/daemon/nvml_api.h"

namespace motley::worker {

class NvmlLibrary {
 public:
  // Opens libnvidia-ml.so.1, or what $MOTLEY_NVML_LIBRARY names, and initialises it. NOT_FOUND: there is no such library.
  // UNAVAILABLE: it cannot work now (no driver loaded, a driver that was updated and not loaded again). Both say what helps.
  static absl::StatusOr<std::unique_ptr<NvmlLibrary>> Open();
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  const nvml::Functions& api() const { return functions_; }
  // "GPU is lost (fell off the bus)" for what is known here, else the library's own words.
  std::string Words(nvml::Return code) const;

 private:
  explicit NvmlLibrary(void* handle) : handle_(handle) {}

  void* handle_;
  bool initialised_ = false;
  nvml::Functions functions_;
};

}  // namespace motley::worker
