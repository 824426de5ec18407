// What the ranks of a save tell each other, and whose node is to blame where it failed. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint.h"

namespace motley::engine {

// As text, with all that a Status of ours carries: "ok <rest>" or "error ...".
std::string ErrorMessage(const absl::Status& status);
std::string VerdictMessage(const absl::Status& status);
// OK for "ok ..."; names the device that said it, and blames it for what its machine refuses (Fault::kNode).
absl::Status ErrorOf(const std::string& message, const DeviceId& device);

// A rank's file, and the token of rank 0 that it saw beside it (checkpoint_look.h); one line without spaces, or empty.
std::string EntryMessage(const absl::StatusOr<CheckpointFile>& file, const std::string& token);
absl::StatusOr<CheckpointFile> FileOf(const std::string& entry);

// How a rank stands to the folder that rank 0 writes into.
enum class View {
  kSame,    // what it wrote lies there, and it sees what rank 0 wrote
  kOther,   // what it wrote lies elsewhere
  kFailed,  // it could not write, and not because the disk, which is everybody's, is full
};
// Whose node is wrong: by nodes, as all ranks of one look at the same folder. The first rank of a minority that stands
// otherwise; rank 0 when most nodes do not see what it wrote. Null: all are right, or nobody knows, as with two nodes.
std::optional<size_t> WhomToBlame(const std::vector<View>& views, const std::vector<DeviceId>& devices);

// Whether what this rank wrote lies where rank 0 removes it after a failure: it saw rank 0's token, or rank 0 had no room for
// one.
bool LiesWithRank0(const std::vector<std::string>& entries, size_t rank);

// All ranks come to the same one by their entries: OK when every rank wrote and saw rank 0's token. Else the error, which names
// the device to blame, also as BlamedDeviceOf, or the first one that failed. Fault::kStorage where the folders differ.
absl::Status VerdictOf(const std::vector<std::string>& entries, const std::vector<DeviceId>& devices, const std::string& folder);
// Rank 0's, of what all ranks wrote: `missing` are the ranks whose file it does not see. OK for none.
absl::Status NotAllSeen(const std::vector<size_t>& missing, const std::vector<DeviceId>& devices, const std::string& folder);

}  // namespace motley::engine
