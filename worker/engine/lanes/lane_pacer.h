// The emulated schedule of one lane: when each piece of its work begins and ends by declared speeds. A lane of a device that is
// as fast as it is has one, too: then the schedule is the clock's. Used by the lane's thread alone.
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace motley::engine {

class LanePacer {
 public:
  virtual ~LanePacer() = default;
  // Work may begin: what it waits for ended at `ready` by its own lanes' schedules. What the host added in waking up is not
  // passed on to what follows.
  virtual void Begin(absl::Duration ready) = 0;
  // The real work is done. Returns when its declared time is over.
  virtual void End(std::optional<double> flops) = 0;
  // Of the newest piece of work that has ended.
  virtual absl::Duration begin() const = 0;
  virtual absl::Duration end() const = 0;
};

}  // namespace motley::engine
