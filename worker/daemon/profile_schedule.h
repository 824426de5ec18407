// The order of a node's measurements: every device alone first (emulated ones at the same time, since they mostly sleep;
// devices that use the host's own speed one after the other), then all ranks time collectives together. A trial of the memory is
// a measurement of a device alone. Pure; no clock, no I/O.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "common/session/session.h"

namespace motley::worker {

class ProfileSchedule {
 public:
  explicit ProfileSchedule(const ProfileCommand& command);

  // What to send now: (index into command.ranks, that rank's command). Empty when everything waits or is done.
  std::vector<std::pair<size_t, ProfileCommand>> Next();
  // The answer to a command of Next().
  void Done(size_t index, const ProfileReport& report);
  // The rank is gone, or said what is wrong; the first failure counts.
  void Fail(size_t index, const std::string& error, Fault fault = Fault::kOurs);

  bool busy(size_t index) const { return ranks_[index].busy; }
  bool finished() const;
  // Of the whole node: all compute profiles, and the collectives' when rank 0 is here. Of trials the last one's.
  const ProfileReport& report() const { return report_; }
  // Its ranks are to be gone before it is said how it ended: what they hold is not there for the next trial.
  bool is_trial() const { return is_trial_; }

 private:
  struct Rank {
    RankAssignment assignment;
    bool compute_left = false, collectives_left = false, busy = false;
    bool on_host = false;  // runs at the host's own speed
  };
  ProfileCommand CommandFor(const Rank& rank, bool compute) const;

  const bool is_trial_;
  std::vector<Rank> ranks_;
  ProfileReport report_;
};

}  // namespace motley::worker
