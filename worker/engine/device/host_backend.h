// CPUs and emulated devices: tensors in the host's memory, lanes are threads. Private to the engine.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "worker/engine/base/memory.h"
#include "worker/engine/device/device_backend.h"

namespace motley::engine {

class HostBackend : public DeviceBackend {
 public:
  // A rank's process has one device, so its tensors are the process's, those of libtorch's own threads too. Devices that share a
  // process need an account each.
  explicit HostBackend(MemoryAccountPtr account = ProcessMemory()) : account_(std::move(account)) {}

  c10::Device tensors() const override { return c10::kCPU; }
  MemoryAccountPtr host_account() const override { return account_; }
  void SetMemoryCap(int64_t bytes, std::string_view device) override {
    InstallCounting();
    account_->SetLimit(bytes, device);
  }
  int64_t MemoryCapBytes() const override { return account_->cap_bytes(); }
  int64_t CurrentBytes() const override { return account_->current_bytes(); }
  int64_t PeakBytes() const override { return account_->peak_bytes(); }
  std::optional<MemoryByPurpose> MostByPurpose() const override { return account_->most(); }
  void ResetPeak() override { account_->ResetPeak(); }
  MemoryRefusal LastRefusal() const override { return account_->last_refusal(); }

 private:
  const MemoryAccountPtr account_;
};

}  // namespace motley::engine
