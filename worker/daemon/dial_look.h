// Why coordinators are not reached, for people: gRPC says no more than that they are not. Connects by itself, to all at once,
// beside gRPC and without a word.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace motley::worker {

inline constexpr absl::Duration kLookPatience = absl::Seconds(3);

// For each target (dial_targets.h): 0, or the errno with which it is not reached; ETIMEDOUT: it has not answered within
// `patience`, for which this blocks at most; ECANCELED.
std::vector<int> TryToConnect(const std::vector<std::string>& targets, const Clock& clock, absl::Duration patience,
                              const absl::Notification& cancelled);

// What the error means at that target, and what helps.
std::string WhyNotReached(const std::string& target, int error, absl::Duration patience);
// Of each target with an error. `address`: what people know already; a target that is written so is not named again.
std::vector<std::string> Troubles(const std::vector<std::string>& targets, const std::vector<int>& errors,
                                  absl::Duration patience, const std::string& address);

// Such a try on a thread of its own.
class DialLook {
 public:
  DialLook(std::vector<std::string> targets, const Clock& clock);
  ~DialLook();  // cancels

  bool done() const { return done_.HasBeenNotified(); }
  // Once it is done:
  bool SomeoneAnswers() const;
  std::vector<std::string> TroublesBeside(const std::string& address) const {
    return Troubles(targets_, errors_, kLookPatience, address);
  }

 private:
  const std::vector<std::string> targets_;
  std::vector<int> errors_;  // the thread's until it is done
  absl::Notification cancelled_, done_;
  std::thread thread_;
};

}  // namespace motley::worker
