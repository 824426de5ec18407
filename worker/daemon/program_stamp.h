// Whether a program on disk is still the one that it was: an upgrade replaces it under a worker that runs.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <tuple>

namespace motley::worker {

// Device, inode, size and time of change; all 0: it is not there.
using ProgramStamp = std::tuple<uint64_t, uint64_t, int64_t, int64_t>;

inline ProgramStamp StampOf(const std::string& path) {
  constexpr int64_t kNsInSecond = 1'000'000'000;
  struct stat found;
  if (stat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec * kNsInSecond + found.st_mtim.tv_nsec};
}

}  // namespace motley::worker
