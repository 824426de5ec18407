// Sends what a job reads from this machine to a node of the cluster, through the coordinator (Motley.Carry).
// docs/inside/inputs.md
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/inputs/input_list.h"
#include "coordinator/client/connection.h"

namespace motley::client {

struct SentBytes {
  int64_t all = 0;   // of the input
  int64_t sent = 0;  // by this command; what the node had is not sent again
  std::string node;  // that takes it
};

struct Sending {
  std::function<void(const SentBytes&)> progress;              // about once a second
  std::function<void(const std::string&)> say;                 // what is waited for
  std::function<void(absl::Duration)> pause = absl::SleepFor;  // between tries
  absl::Duration patience = absl::Minutes(5);                  // while no byte moves
  std::string elsewhere = {};                                  // where nodes may have it, too (CarryBegin.path)
  std::vector<std::string> elsewhere_nodes = {};               // that do
};

// Until a node has it whole. `path`: where it lies here, as `list` was made of it. ABORTED: it changed since; NOT_FOUND: no node
// can take it, says why each; UNAVAILABLE: nothing moved for as long as the patience; else the coordinator's.
absl::Status SendInput(Connection& connection, const std::string& job, const InputList& list, const std::string& path,
                       const Sending& sending);

}  // namespace motley::client
