#include "worker/engine/base/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "worker/engine/base/counted_pass.h"

namespace motley::engine {
namespace {

// Null: the process's.
thread_local MemoryAccountPtr thread_account;
thread_local MemoryPurpose thread_purpose = MemoryPurpose::kWorkspace;

void Raise(std::atomic<int64_t>& peak, int64_t to) {
  int64_t was = peak;
  while (to > was && !peak.compare_exchange_weak(was, to)) {
  }
}

// Each block says in a prefix of one cache line where it counts, which keeps the data aligned as ATen wants it (64 bytes).
constexpr size_t kPrefixBytes = 64;
static_assert(sizeof(CountedBlock) <= kPrefixBytes);

CountedBlock* PrefixOf(void* data) {
  return std::launder(reinterpret_cast<CountedBlock*>(static_cast<char*>(data) - kPrefixBytes));
}

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
    const MemoryAccountPtr& account = ThreadsAccount();
    account->Add(bytes);
    void* block = nullptr;
    if (posix_memalign(&block, kPrefixBytes, static_cast<size_t>(bytes) + kPrefixBytes) != 0) {
      account->Remove(bytes);
      account->Refuse(bytes, account->current_bytes(), /*cap_bytes=*/0);
    }
    auto* const counted = new (block) CountedBlock{bytes, account, thread_purpose};
    if (!CountedPass::Made(*counted)) account->CountFor(counted->purpose, bytes);
    void* const data = static_cast<char*>(block) + kPrefixBytes;
    account->Made(data, bytes);
    return data;
  }
  static void Free(void* data) {
    if (data == nullptr) return;
    CountedBlock* const block = PrefixOf(data);
    block->account->Freed(data, block->bytes);
    block->account->Remove(block->bytes);
    if (!CountedPass::Freed(*block)) block->account->CountFor(block->purpose, -block->bytes);
    block->~CountedBlock();
    std::free(block);
  }
};

std::atomic<bool> installed{false};
std::once_flag install_once;

c10::DeleterFnPtr InstalledDeleter() {
  static const c10::DeleterFnPtr deleter = CountingAllocator().raw_deleter();
  return deleter;
}

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
  Raise(peak_bytes_, now);
}

void MemoryAccount::CountFor(MemoryPurpose purpose, int64_t bytes) {
  Purpose& of = purposes_[static_cast<size_t>(purpose)];
  Raise(of.peak_bytes, of.current_bytes.fetch_add(bytes) + bytes);
}

MemoryByPurpose MemoryAccount::most() const {
  MemoryByPurpose most;
  for (const MemoryPurposeTraits& traits : kMemoryPurposes) {
    most.*traits.bytes = purposes_[static_cast<size_t>(traits.purpose)].peak_bytes;
  }
  return most;
}

void MemoryAccount::ResetPeak() {
  peak_bytes_ = current_bytes_.load();
  for (Purpose& of : purposes_) of.peak_bytes = of.current_bytes.load();
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

const MemoryAccountPtr& ThreadsAccount() { return thread_account != nullptr ? thread_account : ProcessMemory(); }

CountedBlock* CountedBlockOf(const c10::DataPtr& data) {
  return data.get() != nullptr && data.get_deleter() == InstalledDeleter() ? PrefixOf(data.get()) : nullptr;
}

CountingAs::CountingAs(MemoryPurpose purpose) : before_(std::exchange(thread_purpose, purpose)) {}
CountingAs::~CountingAs() { thread_purpose = before_; }

CountingIn::CountingIn(MemoryAccountPtr account) : before_(std::exchange(thread_account, std::move(account))) {}
CountingIn::~CountingIn() { thread_account = std::move(before_); }

}  // namespace motley::engine
