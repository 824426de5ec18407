// Where the state of a rank's units waits in its block of host memory: an area for each unit, one behind the other. Knows no
// torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/memory_by_purpose.h"
#include "common/job/job.h"
#include "common/program/host_state.h"
#include "common/session/assignment.h"

namespace motley::engine {

class HostAreas {
 public:
  // Of what the training program offloads; nothing: empty ones.
  HostAreas(const RankAssignment& assignment, Precision precision);

  int64_t bytes() const { return bytes_; }
  // Of which by what they are, without inputs. What an area is filled up with counts with the last of what is in it.
  HostMemoryByPurpose by_purpose() const;
  // Where they begin in memory. Before anybody asks for one.
  void Place(char* begin) { begin_ = begin; }

  // What of a unit's state waits, and where. Thread-safe.
  const HostState& LayoutOf(int32_t unit) const { return areas_[static_cast<size_t>(unit)].state; }
  char* Of(int32_t unit) const { return begin_ + areas_[static_cast<size_t>(unit)].begin; }

 private:
  struct Area {
    HostState state;
    int64_t begin = 0;
  };
  std::vector<Area> areas_;  // by unit
  int64_t bytes_ = 0;
  char* begin_ = nullptr;
};

}  // namespace motley::engine
