// Opens CUDA's driver at run time, as NCCL is opened. It stays open.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/engine/kernels/driver_api.h"

namespace motley::engine {

inline constexpr char kDriverName[] = "libcuda.so.1";

struct DriverLibrary {
  DriverApi api;
  int version = 0;  // of the CUDA that it runs: 12040 is 12.4
};

// `name`: a path, or a name for the loader's folders. FAILED_PRECONDITION: it is not there, lacks a function or does not start;
// says which.
absl::StatusOr<DriverLibrary> OpenDriver(const std::string& name = kDriverName);

// INTERNAL: with the driver's name of the error. `what`: "loading kernels".
absl::Status DriverStatus(const DriverApi& api, const std::string& what, CUresult result);

}  // namespace motley::engine
