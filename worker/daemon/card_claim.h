// A card is one worker's: whoever offers it holds a lock for as long as it lives.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/files.h"

namespace motley::worker {

// Where all workers of a machine, of any user, leave their locks: $MOTLEY_RUN_FOLDER, else /run/lock, or /tmp where that is not.
std::string RunFolder();

class CardClaim {
 public:
  // Locks `folder`/motley-UUID.lock, which stays there, empty of meaning, when nobody holds it. ALREADY_EXISTS names the process
  // that has the card.
  static absl::StatusOr<CardClaim> Take(const std::string& folder, const std::string& uuid);

 private:
  explicit CardClaim(FileDescriptor file) : file_(std::move(file)) {}
  FileDescriptor file_;  // its lock ends with it; ranks do not inherit it
};

}  // namespace motley::worker
