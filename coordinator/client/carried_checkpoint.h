// Brings a checkpoint that lies on the nodes' disks here: into a folder as one of a shared folder is. What an earlier try brought
// is not brought again.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"
#include "coordinator/client/carry_file.h"

namespace motley::client {

enum class CarriedBlocks {
  kParameters,  // what an export reads: about a third, with holes where the rest is
  kAll,
};

struct CarriedBytes {
  int64_t all = 0, here = 0;  // of what was to be brought
  std::string node;           // whose disk it comes from now
};

// The newest that is whole on the nodes that are here, under its name beneath `into`, with its base (common/weights/base_model.h)
// beside it. Others' names beneath `into` go. A job that saves and drops meanwhile makes it begin again with a newer one, a few
// times. `progress`: about once a second. Errors: the coordinator's, those of FileCarrier::Read, and of this machine's disk
// (Fault::kStorage).
absl::StatusOr<FoundCheckpoint> CarryCheckpoint(FileCarrier& carrier, const JobId& job, const JobUid& uid,
                                                const std::string& into, CarriedBlocks which,
                                                const std::function<void(const CarriedBytes&)>& progress);

}  // namespace motley::client
