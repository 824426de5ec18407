#include "worker/engine/base/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

namespace motley::engine {
namespace {

// Each block carries its size in a prefix of one cache line, which keeps the data aligned as ATen wants it (64 bytes).
constexpr size_t kPrefixBytes = 64;

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* data = bytes == 0 ? nullptr : Take(bytes);
    return {data, data, &Free, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }

  void SetLimit(int64_t cap_bytes, std::string_view device) {
    std::lock_guard<std::mutex> lock(mutex_);
    device_ = std::string(device);
    cap_bytes_ = cap_bytes;
  }
  int64_t cap_bytes() const { return cap_bytes_; }
  int64_t current_bytes() const { return current_bytes_; }
  int64_t peak_bytes() const { return peak_bytes_; }
  void ResetPeak() { peak_bytes_ = current_bytes_.load(); }

 private:
  static void Free(void* data);

  void* Take(size_t bytes) {
    const int64_t asked = static_cast<int64_t>(bytes);
    const int64_t now = current_bytes_.fetch_add(asked) + asked;
    const int64_t cap = cap_bytes_;
    void* block = nullptr;
    if ((cap > 0 && now > cap) || posix_memalign(&block, kPrefixBytes, bytes + kPrefixBytes) != 0) {
      current_bytes_ -= asked;
      Refuse(asked, now - asked, cap);
    }
    int64_t peak = peak_bytes_;
    while (now > peak && !peak_bytes_.compare_exchange_weak(peak, now)) {
    }
    std::memcpy(block, &asked, sizeof(asked));
    return static_cast<char*>(block) + kPrefixBytes;
  }

  [[noreturn]] void Refuse(int64_t asked, int64_t held, int64_t cap) {
    std::string device;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      device = device_;
    }
    const std::string limit = cap > 0 ? "its memory is " + std::to_string(cap) + " bytes" : "the host has no more";
    C10_THROW_ERROR(OutOfMemoryError,
                    c10::str("out of memory on ", device, ": asked for ", asked, " bytes with ", held, " bytes in use, ", limit,
                             "; use smaller microbatches, recompute, or a device with more memory"));
  }

  std::atomic<int64_t> cap_bytes_{0}, current_bytes_{0}, peak_bytes_{0};
  std::mutex mutex_;
  std::string device_;  // guarded by mutex_
};

// Never destroyed: tensors of static lifetime may be freed after main.
CountingAllocator& Instance() {
  static auto* const allocator = new CountingAllocator;
  return *allocator;
}
std::atomic<bool> installed{false};
std::once_flag install_once;

void CountingAllocator::Free(void* data) {
  if (data == nullptr) return;
  char* const block = static_cast<char*>(data) - kPrefixBytes;
  int64_t bytes = 0;
  std::memcpy(&bytes, block, sizeof(bytes));
  Instance().current_bytes_ -= bytes;
  std::free(block);
}

}  // namespace

void InstallMemoryLimit(int64_t cap_bytes, std::string_view device) {
  Instance().SetLimit(cap_bytes, device);
  std::call_once(install_once, [] {
    c10::SetCPUAllocator(&Instance());
    installed = true;
  });
}
bool MemoryLimitInstalled() { return installed; }
int64_t MemoryCapBytes() { return Instance().cap_bytes(); }
int64_t CurrentBytes() { return Instance().current_bytes(); }
int64_t PeakBytes() { return Instance().peak_bytes(); }
void ResetPeak() { Instance().ResetPeak(); }

}  // namespace motley::engine
