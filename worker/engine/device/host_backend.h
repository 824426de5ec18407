// CPUs and emulated devices: tensors in the host's memory, lanes are threads. Private to the engine.
#pragma once

#include <string_view>

#include "worker/engine/base/memory.h"
#include "worker/engine/device/device_backend.h"

namespace motley::engine {

// The process has one counter of the host's tensors: back ends of one process share it.
class HostBackend : public DeviceBackend {
 public:
  c10::Device tensors() const override { return c10::kCPU; }
  void SetMemoryCap(int64_t bytes, std::string_view device) override { InstallMemoryLimit(bytes, device); }
  int64_t MemoryCapBytes() const override { return engine::MemoryCapBytes(); }
  int64_t CurrentBytes() const override { return engine::CurrentBytes(); }
  int64_t PeakBytes() const override { return engine::PeakBytes(); }
  void ResetPeak() override { engine::ResetPeak(); }
};

}  // namespace motley::engine
