// A node as the registry knows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/session/profile.h"
#include "common/session/session.h"
#include "coordinator/state/clock_offset.h"

namespace motley::coordinator {

struct NodeRecord {
  NodeDescription description;
  bool connected = false;
  bool left = false;                        // not connected: its worker was told to end, and did
  bool drained = false;                     // durable
  bool forgotten = false;                   // a member no more: kept for the job that may have ranks there, listed nowhere
  bool held = false;                        // it comes and goes: not used until it has been up for a while (state/flapping)
  std::string peer_address;                 // its session's other end, numeric; empty: not known
  bool on_this_machine = true;              // its worker runs where the coordinator does
  std::string doing;                        // HeartbeatReport::doing, the newest
  std::string reason;                       // why it is lost, drained, held or refused by the job
  std::vector<absl::Duration> falls;        // steady; the newest last
  absl::Duration up_since;                  // steady
  absl::Duration last_seen;                 // steady
  std::optional<absl::Duration> leaves_at;  // steady: its worker was told to end and does so by then
  ClockOffset clock;                        // of its session
  int64_t registered_unix_ms = 0, last_seen_unix_ms = 0;
};

// What the newest profile says of a device, for people.
struct MeasuredSpeed {
  double tokens_per_second = 0;
  double flops_per_second = 0;
  std::string model;      // that was measured; empty: it is not known any more
  std::string attention;  // the kernel of its layers' attention; empty: not known
  CardLoad load = {};     // of a card, while it was measured
  bool cut_short = false;
  // Of its memory, what plans of this model count on since a rank ran out of it, and how often that became less; 0: all of it.
  int64_t usable_bytes = 0;
  int memory_corrections = 0;
  int64_t probed_samples = 0;  // that a probe of its memory ran in one microbatch; 0: there was none
};

}  // namespace motley::coordinator
