// What nodes said of a job's checkpoints on their disks, when they were last asked. Plain values.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/ids.h"
#include "common/checkpoint/held_checkpoints.h"
#include "common/session/files.h"
#include "coordinator/state/unite_checkpoints.h"

namespace motley::coordinator {

// Node, checkpoint and file.
using DamagedFiles = std::set<std::tuple<NodeName, std::string, std::string>>;

// Where a node's files process gives what it has.
struct FilesOffer {
  std::string address;      // host:port
  std::string certificate;  // SHA-256 (hex) of what it shows, to both sides
  int64_t room_bytes = 0;   // that copies may fill; 0 = not known
};
struct Holdings {
  std::vector<UnitedCheckpoint> checkpoints;  // the newest first
  std::map<NodeName, std::vector<UnpublishedFiles>> unpublished;
  std::map<NodeName, FilesOffer> offers;     // of all who can keep checkpoints
  std::map<NodeName, std::string> refusals;  // why others cannot
};

}  // namespace motley::coordinator
