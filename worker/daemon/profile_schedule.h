// The order of a node's measurements: every device alone first (emulated ones at the same time, since they mostly sleep;
// devices that use the host's own speed one after the other), then all ranks time collectives together. Pure; no clock, no I/O.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "proto/motley/v1/worker.pb.h"

namespace motley::worker {

class ProfileSchedule {
 public:
  explicit ProfileSchedule(const v1::ProfileRequest& request);

  // What to send now: (index into request.ranks, that rank's request). Empty when everything waits or is done.
  std::vector<std::pair<size_t, v1::ProfileRequest>> Next();
  // The answer to a request of Next().
  void Done(size_t index, const v1::ProfileResult& result);
  // The rank is gone, or said what is wrong; the first failure counts.
  void Fail(size_t index, const std::string& error);

  bool busy(size_t index) const { return ranks_[index].busy; }
  bool finished() const;
  // Of the whole node: all compute profiles, and the collectives' when rank 0 is here.
  const v1::ProfileResult& result() const { return result_; }

 private:
  struct Rank {
    v1::RankAssignment assignment;
    bool compute_left = false, collectives_left = false, busy = false;
    bool on_host = false;  // runs at the host's own speed
  };
  v1::ProfileRequest RequestFor(const Rank& rank, bool compute) const;

  std::vector<Rank> ranks_;
  v1::ProfileResult result_;
};

}  // namespace motley::worker
