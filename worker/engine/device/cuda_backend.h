// NVIDIA cards: tensors on the one card that the process sees, lanes on streams, memory by PyTorch's allocator
// (docs/inside/cuda.md). Private to the engine.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "worker/engine/device/device_backend.h"

namespace motley::engine {

// Once a process, which sees `device` alone from then on (by its UUID). FAILED_PRECONDITION: no driver, one that is too old, a
// card that is not there or held by another process, one that this build has no kernels for, libraries that are missing: says
// which and what mends it.
absl::StatusOr<std::unique_ptr<DeviceBackend>> OpenCuda(const DeviceDescription& device, const std::string& data_address);

}  // namespace motley::engine
