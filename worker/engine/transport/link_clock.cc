#include "worker/engine/transport/link_clock.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "worker/engine/base/monotonic.h"

namespace motley::engine {

// A fresh mapping is zero: free since the beginning of time.
struct LinkClock::Link {
  alignas(64) std::atomic<int64_t> next_free_ns[2];
};
static_assert(std::atomic<int64_t>::is_always_lock_free, "the mapping is shared between processes");

absl::StatusOr<std::unique_ptr<LinkClock>> LinkClock::Map(int fd) {
  const size_t bytes = sizeof(Link) * kMaxLinks;
  if (fd >= 0) {
    struct stat status {};
    if (fstat(fd, &status) != 0 || (static_cast<size_t>(status.st_size) < bytes && ftruncate(fd, bytes) != 0)) {
      return absl::InternalError(
          absl::StrCat("link clock: descriptor ", fd, " cannot be sized to ", bytes, " bytes: ", std::strerror(errno)));
    }
  }
  const int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd >= 0 ? fd : -1, 0);
  if (memory == MAP_FAILED) {
    return absl::InternalError(absl::StrCat("link clock: mapping descriptor ", fd, ": ", std::strerror(errno)));
  }
  return std::unique_ptr<LinkClock>(new LinkClock(static_cast<Link*>(memory)));
}

LinkClock::~LinkClock() { munmap(links_, sizeof(Link) * kMaxLinks); }

LinkClock::Slot LinkClock::Reserve(int link, Direction direction, int64_t duration_ns, int64_t earliest_ns) {
  std::atomic<int64_t>& next_free = links_[link].next_free_ns[static_cast<int>(direction)];
  // The link is there for others until a slot that begins later: what it then does takes no more of its time.
  const int64_t asked_ns = std::min(earliest_ns, MonotonicNs());
  int64_t free_ns = next_free.load(std::memory_order_relaxed);
  while (!next_free.compare_exchange_weak(free_ns, std::max(free_ns, asked_ns) + duration_ns, std::memory_order_relaxed)) {
  }
  const int64_t begin_ns = std::max(free_ns, earliest_ns);
  return {begin_ns, begin_ns + duration_ns};
}

}  // namespace motley::engine
