// Starts a child of the worker (a rank, a storage check): a socket to it as its descriptor 3, shared memory as 4 and 5, its
// output in a pipe, the listed part of the environment (child_environment), no core files.
//
// The child dies with the thread that spawned it (PR_SET_PDEATHSIG follows the thread, so call from one that lives as long
// as the daemon), and has a process group of its own: Ctrl-C ends the daemon, which ends its ranks.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace motley::worker {

inline constexpr int kChildSocket = 3, kChildLinkClock = 4, kChildKnownParts = 5;

// Closes its descriptor.
class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  ~UniqueFd() { Reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1);

 private:
  int fd_;
};

struct SpawnedProcess {
  pid_t pid = -1;
  UniqueFd socket;  // non-blocking
  UniqueFd output;  // read end of its stdout and stderr, non-blocking
};

// Descriptors of memory that a child inherits; -1: none.
struct SharedMemory {
  int link_clock = -1, known_parts = -1;
};

// `arguments` follow the program's name; `variables` ("NAME=value") replace those of the worker.
// NOT_FOUND or PERMISSION_DENIED when the program cannot be run.
absl::StatusOr<SpawnedProcess> Spawn(const std::string& program, const std::vector<std::string>& arguments,
                                     const std::vector<std::string>& variables, const SharedMemory& memory);

// Zeroed shared memory without a name, one for the ranks of one node and epoch.
absl::StatusOr<UniqueFd> NewLinkClock();
// Empty, one for a worker's life: what its ranks and storage checks have read of the data (common/data/known_parts.h).
absl::StatusOr<UniqueFd> NewKnownParts();

}  // namespace motley::worker
