// A node as the registry knows it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/ids.h"
#include "common/session.h"

namespace motley::coordinator {

struct NodeRecord {
  NodeDescription description;
  bool connected = false;
  bool drained = false;      // durable
  std::string reason;        // why it is lost or drained
  absl::Duration last_seen;  // steady
  int64_t registered_unix_ms = 0, last_seen_unix_ms = 0;
};

// What the newest profile says of a device, for people.
struct MeasuredSpeed {
  double tokens_per_second = 0;
  double flops_per_second = 0;
};

}  // namespace motley::coordinator
