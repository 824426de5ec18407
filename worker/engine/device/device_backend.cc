#include "worker/engine/device/device_backend.h"

#include "worker/engine/device/cuda_backend.h"
#include "worker/engine/device/host_backend.h"

namespace motley::engine {

absl::StatusOr<std::unique_ptr<DeviceBackend>> OpenBackend(const DeviceDescription& device, const std::string& data_address) {
  switch (device.kind) {  // no default: every kind has a back end
    case DeviceKind::kCpu:
    case DeviceKind::kEmulated:
      return std::make_unique<HostBackend>();
    case DeviceKind::kCuda:
      return OpenCuda(device, data_address);
  }
  return absl::InternalError("a device of no kind");
}

}  // namespace motley::engine
