// What the addresses of coordinators stand for. gRPC tries the addresses of a name one after the other, each for longer than a
// dial lasts, and does not say that nobody knows the name: so they are looked up before, and all are dialed at once.
#pragma once

#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace motley::worker {

inline constexpr absl::Duration kNamesPatience = absl::Seconds(3);

struct DialTargets {
  std::vector<std::string> targets;  // "10.0.0.1:7073", "[fd00::1]:7073" or "unix:/path", each once
  std::string trouble;               // why there are none, with what helps
};

// Of each address (host:port or unix:PATH), in their order. Numbers ask nobody; all names together are given `patience`, and a
// name service that does not answer is left alone with its question.
std::vector<DialTargets> LookUp(const std::vector<std::string>& addresses, const Clock& clock, absl::Duration patience,
                                const absl::Notification& cancelled);

}  // namespace motley::worker
