// Reads blocks from another node's FilesServer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/session/files.h"
#include "worker/files/files_identity.h"

namespace motley::worker {

struct FilesReading {
  const FilesIdentity& identity;
  JobId job;
  std::string checkpoint;                                // its name; empty: of an input
  absl::Duration silence = absl::Seconds(10);            // a holder that sends nothing for so long is left,
  int64_t least_bytes_per_second = 0;                    // or one that falls so far behind this rate; 0: none is
  std::function<bool()> stopped = [] { return false; };  // looked at between parts
  std::function<void(int64_t bytes)> came = {};          // of each part; what it waits the holder waits, too
  std::string input = {};                                // its id: `file` is one of its list, empty: the list
};

// The blocks of a checkpoint's file (OpenCheckpointFile; of one that IsOneBlock block 0), each whole, in their order. `take`
// verifies: its error ends the reading and is returned. Errors name the node. UNAVAILABLE: it does not answer, shows another
// certificate, is silent or too slow; NOT_FOUND: it has no such file; DATA_LOSS: what it sends are not the blocks that were asked
// for; CANCELLED: stopped.
absl::Status ReadBlocks(const CheckpointHolder& holder, const FilesReading& reading, const std::string& file,
                        const std::vector<int64_t>& blocks, const std::function<absl::Status(int64_t, std::string_view)>& take);

}  // namespace motley::worker
