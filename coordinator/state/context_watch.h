// What devices hold beside tensors, where it was more than a plan counted. Each such number makes the job be planned again once:
// a plan that cannot take it in is not made for ever.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/base/ids.h"

namespace motley::coordinator {

class ContextWatch {
 public:
  // A rank of a new generation says so; true: the job is to be planned again for it. Not for a number that is not above the one
  // before, and at most kMostTimes for a device.
  bool PlansAgain(const DeviceId& device, int64_t bytes) {
    Seen& seen = seen_[device];
    if (bytes <= seen.bytes || seen.times == kMostTimes) return false;
    seen = {bytes, seen.times + 1};
    return true;
  }

  // Why the generation ends; empty: it need not. The first device's, of several.
  const std::string& sentence() const { return sentence_; }
  void End(const std::string& sentence) {
    if (sentence_.empty()) sentence_ = sentence;
  }
  void BeginGeneration() { sentence_.clear(); }

  static constexpr int kMostTimes = 2;

 private:
  struct Seen {
    int64_t bytes = 0;
    int times = 0;
  };
  std::map<DeviceId, Seen> seen_;
  std::string sentence_;
};

}  // namespace motley::coordinator
