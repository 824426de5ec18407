// Counts every byte that tensors hold in this process and refuses what does not fit the device, as a card would: the
// allocation fails with c10::OutOfMemoryError (a c10::Error) whose text names the device, the bytes asked and the cap.
// Bytes are those asked for: no rounding, no allocator overhead. Tensors made before the first InstallCounting are not counted.
//
// A tensor counts in the account of the thread that makes it, until it is freed, by whichever thread. So ranks that are threads
// of one process count apart, if all threads of a rank count in its account. Threads that were told nothing count in the
// process's. Thread-safe. c10 has one CPU allocator per process.
//
// It counts for the purpose that the thread has then (CountingAs, counted_pass.h), workspace where it was told none, until it is
// freed or told to be for another.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "common/base/memory_by_purpose.h"

namespace motley::engine {

// What an allocation found that did not fit; zeros: there was none.
struct MemoryRefusal {
  int64_t held_bytes = 0, asked_bytes = 0;
};

// Bytes of one device. Thread-safe.
class MemoryAccount {
 public:
  virtual ~MemoryAccount() = default;
  // cap_bytes 0 = no cap.
  void SetLimit(int64_t cap_bytes, std::string_view device);
  int64_t cap_bytes() const { return cap_bytes_; }
  int64_t current_bytes() const { return current_bytes_; }
  int64_t peak_bytes() const { return peak_bytes_; }  // since the last ResetPeak
  MemoryByPurpose most() const;                       // likewise, of each purpose its own; a pass counts when it ends
  void ResetPeak();                                   // all peaks become what is there

  // The allocator's: throws c10::OutOfMemoryError beyond the cap.
  void Add(int64_t bytes);
  void Remove(int64_t bytes) { current_bytes_ -= bytes; }
  // So many more of the bytes are for this purpose; less than 0: fewer.
  void CountFor(MemoryPurpose purpose, int64_t bytes);
  // Of each block that it counts: once it is there, and before it is gone. On the thread that makes or frees it.
  virtual void Made(const void*, int64_t) {}
  virtual void Freed(const void*, int64_t) {}
  MemoryRefusal last_refusal();
  // Throws: the host has no more.
  [[noreturn]] void Refuse(int64_t asked_bytes, int64_t held_bytes, int64_t cap_bytes);

 private:
  struct Purpose {
    std::atomic<int64_t> current_bytes{0}, peak_bytes{0};
  };
  std::atomic<int64_t> cap_bytes_{0}, current_bytes_{0}, peak_bytes_{0};
  std::array<Purpose, kNumMemoryPurposes> purposes_;
  std::mutex mutex_;
  std::string device_ = "this device";  // guarded by mutex_
  MemoryRefusal last_refusal_;          // the same
};
using MemoryAccountPtr = std::shared_ptr<MemoryAccount>;  // its tensors may outlive its device

// From the first call on c10's allocator for the host is the counting one.
void InstallCounting();
bool CountingInstalled();

// Where threads count that were told nothing.
const MemoryAccountPtr& ProcessMemory();
// Where the calling thread does.
const MemoryAccountPtr& ThreadsAccount();
// The calling thread counts in `account` from now on.
void CountIn(MemoryAccountPtr account);

// The calling thread counts in `account` while this lives.
class CountingIn {
 public:
  explicit CountingIn(MemoryAccountPtr account);
  ~CountingIn();
  CountingIn(const CountingIn&) = delete;
  CountingIn& operator=(const CountingIn&) = delete;

 private:
  MemoryAccountPtr before_;
};

// What the calling thread makes while this lives is for `purpose`.
class CountingAs {
 public:
  explicit CountingAs(MemoryPurpose purpose);
  ~CountingAs();
  CountingAs(const CountingAs&) = delete;
  CountingAs& operator=(const CountingAs&) = delete;

 private:
  const MemoryPurpose before_;
};

}  // namespace motley::engine
