#include "worker/engine/transport/pinned_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/in_parallel.h"
#include "common/base/memory_shortage.h"

namespace motley::engine {
namespace {

constexpr int64_t kPage = 4096, kTouchedAtOnce = int64_t{64} << 20;
constexpr int64_t kFinest = int64_t{1} << 20;  // how exactly it is found out what a driver pins

// Pages are made by whoever touches them first, one after the other; pinning then only finds them.
void Touch(char* room, int64_t bytes) {
  InParallel(static_cast<size_t>((bytes + kTouchedAtOnce - 1) / kTouchedAtOnce), [room, bytes](size_t part) {
    const int64_t begin = static_cast<int64_t>(part) * kTouchedAtOnce, end = std::min(begin + kTouchedAtOnce, bytes);
    for (int64_t at = begin; at < end; at += kPage) *static_cast<volatile char*>(room + at) = 0;
  });
}

absl::Status Refused(const std::string& why, int64_t asked, int64_t went) {
  return WithMemoryShortage(absl::ResourceExhaustedError(why),
                            {.tier = MemoryTier::kHost, .held_bytes = went, .asked_bytes = asked});
}

}  // namespace

absl::StatusOr<void*> PinnedMemory::Allocate(int64_t bytes) {
  if (bytes <= 0) return static_cast<void*>(nullptr);
  const auto size = static_cast<size_t>(bytes);
  void* const mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return Refused(absl::StrCat("the host has no room for ", bytes, " bytes"), bytes, 0);
  char* const room = static_cast<char*>(mapped);
  Touch(room, bytes);
  int64_t done = 0;
  std::vector<char*> pinned;
  const auto pin = [&](int64_t part) {
    const absl::Status status = driver_.pin(room + done, part);
    if (!status.ok()) return status;
    pinned.push_back(room + done);
    done += part;
    return status;
  };
  absl::Status status;
  while (status.ok() && done < bytes) status = pin(std::min(most_at_once_, bytes - done));
  if (status.ok()) {
    std::lock_guard<std::mutex> lock(mutex_);
    rooms_[room] = bytes;
    return mapped;
  }
  // What goes of the refused piece, before all is undone.
  if (absl::IsResourceExhausted(status)) {
    for (int64_t part = std::min(most_at_once_, bytes - done) / 2 / kPage * kPage; part >= kFinest;
         part = part / 2 / kPage * kPage)
      (void)pin(part);
  }
  for (char* const begin : pinned) driver_.unpin(begin);
  munmap(mapped, size);
  return absl::IsResourceExhausted(status) ? Refused(std::string(status.message()), bytes, done) : status;
}

void PinnedMemory::Free(void* room) {
  if (room == nullptr) return;
  char* const begin = static_cast<char*>(room);
  int64_t bytes = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = rooms_.find(begin);
    if (found == rooms_.end()) return;
    bytes = found->second;
    rooms_.erase(found);
  }
  for (int64_t done = 0; done < bytes; done += most_at_once_) driver_.unpin(begin + done);
  munmap(room, static_cast<size_t>(bytes));
}

int64_t PinnedMemory::BeforeBorder(const void* begin, int64_t bytes) const {
  const auto* const at = static_cast<const char*>(begin);
  const auto behind = rooms_.upper_bound(at);
  if (behind == rooms_.begin()) return bytes;
  const auto& [room, size] = *std::prev(behind);
  if (at >= room + size) return bytes;
  return std::min(bytes, most_at_once_ - (at - room) % most_at_once_);
}

int64_t PinnedMemory::OfOneCopy(const void* to, const void* from, int64_t bytes) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return BeforeBorder(from, BeforeBorder(to, bytes));
}

}  // namespace motley::engine
