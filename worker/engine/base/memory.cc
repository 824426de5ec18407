#include "worker/engine/base/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace motley::engine {
namespace {

// Null: the process's.
thread_local MemoryAccountPtr thread_account;

// Each block says in a prefix of one cache line where it counts, which keeps the data aligned as ATen wants it (64 bytes).
constexpr size_t kPrefixBytes = 64;
struct Prefix {
  int64_t bytes = 0;
  MemoryAccountPtr account;
};
static_assert(sizeof(Prefix) <= kPrefixBytes);

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* data = bytes == 0 ? nullptr : Take(static_cast<int64_t>(bytes));
    return {data, data, &Free, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }

 private:
  static void* Take(int64_t bytes) {
    const MemoryAccountPtr& account = thread_account != nullptr ? thread_account : ProcessMemory();
    account->Add(bytes);
    void* block = nullptr;
    if (posix_memalign(&block, kPrefixBytes, static_cast<size_t>(bytes) + kPrefixBytes) != 0) {
      account->Remove(bytes);
      account->Refuse(bytes, account->current_bytes(), /*cap_bytes=*/0);
    }
    new (block) Prefix{bytes, account};
    void* const data = static_cast<char*>(block) + kPrefixBytes;
    account->Made(data, bytes);
    return data;
  }
  static void Free(void* data) {
    if (data == nullptr) return;
    auto* const prefix = std::launder(reinterpret_cast<Prefix*>(static_cast<char*>(data) - kPrefixBytes));
    prefix->account->Freed(data, prefix->bytes);
    prefix->account->Remove(prefix->bytes);
    prefix->~Prefix();
    std::free(prefix);
  }
};

std::atomic<bool> installed{false};
std::once_flag install_once;

}  // namespace

void MemoryAccount::SetLimit(int64_t cap_bytes, std::string_view device) {
  std::lock_guard<std::mutex> lock(mutex_);
  device_ = std::string(device);
  cap_bytes_ = cap_bytes;
}

MemoryRefusal MemoryAccount::last_refusal() {
  std::lock_guard<std::mutex> lock(mutex_);
  return last_refusal_;
}

void MemoryAccount::Add(int64_t bytes) {
  const int64_t now = current_bytes_.fetch_add(bytes) + bytes;
  const int64_t cap = cap_bytes_;
  if (cap > 0 && now > cap) {
    Remove(bytes);
    Refuse(bytes, now - bytes, cap);
  }
  int64_t peak = peak_bytes_;
  while (now > peak && !peak_bytes_.compare_exchange_weak(peak, now)) {
  }
}

void MemoryAccount::Refuse(int64_t asked_bytes, int64_t held_bytes, int64_t cap_bytes) {
  std::string device;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    device = device_;
    last_refusal_ = {held_bytes, asked_bytes};
  }
  const std::string limit = cap_bytes > 0 ? "its memory is " + std::to_string(cap_bytes) + " bytes" : "the host has no more";
  C10_THROW_ERROR(OutOfMemoryError,
                  c10::str("out of memory on ", device, ": asked for ", asked_bytes, " bytes with ", held_bytes,
                           " bytes in use, ", limit, "; use smaller microbatches, recompute, or a device with more memory"));
}

void InstallCounting() {
  std::call_once(install_once, [] {
    static auto* const allocator = new CountingAllocator;  // never destroyed: tensors of static lifetime may be freed after main
    c10::SetCPUAllocator(allocator);
    installed = true;
  });
}
bool CountingInstalled() { return installed; }

const MemoryAccountPtr& ProcessMemory() {
  static const auto* const account = new MemoryAccountPtr(std::make_shared<MemoryAccount>());
  return *account;
}

void CountIn(MemoryAccountPtr account) { thread_account = std::move(account); }

CountingIn::CountingIn(MemoryAccountPtr account) : before_(std::exchange(thread_account, std::move(account))) {}
CountingIn::~CountingIn() { thread_account = std::move(before_); }

}  // namespace motley::engine
