// A probe of the memory of one node's devices, one after the other (docs/inside/profiles.md, "Probing"). Plain values;
// epoch/memory_probe moves them on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/device/device.h"
#include "common/job/job.h"
#include "common/model/model.h"
#include "common/session/profile.h"
#include "planner/live/memory_probe.h"
#include "planner/strategies/poplar/poplar_probe.h"

namespace motley::coordinator {

struct ProbedDevice {
  DeviceDescription device;
  ComputeProfile profile;  // with its trials, and the limit as it is now
  planner::BatchSearch search{planner::kMostProbedSamples};
  int64_t ledger_bytes = 0;  // of the largest that ran
  bool limited = false;      // the limit became less
};

struct MemoryProbe {
  NodeName node;
  int64_t incarnation = 0;
  JobConfig config;         // what a job has its model, sequence and type in
  ModelShape model, tried;  // whole, and the layers of it that are trained
  std::string id;           // "memory-3f2a91bc": its commands' check_id begin with it
  int commands = 0;         // that were sent
  std::string awaited;      // check_id of the newest command
  bool measuring = false;   // it is no trial: the device's units are measured for the ledger
  absl::Duration begun, asked;
  absl::Duration last_took;  // the newest trial, its process included
  std::vector<ProbedDevice> devices;
  size_t at = 0;                    // of them
  std::optional<absl::Status> end;  // its end, since `asked`; nothing is sent any more
};

}  // namespace motley::coordinator
