// Brings what a node's ranks go on from: makes the resume folder (common/checkpoint/resume_folder.h) of the command's source.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/session/session.h"
#include "worker/files/files_identity.h"

namespace motley::worker {

struct Staging {
  std::string local;  // [files] local
  const FilesIdentity& identity;
  std::function<void(const FetchReport&)> progress;      // before the first block, about once a second, and when all is here
  std::function<bool()> stopped = [] { return false; };  // CANCELLED soon after
  std::function<void(absl::Duration)> pause = absl::SleepFor;  // before a holder to which too many came is asked again
};

// Own files first; else each file's needed blocks from its holders, one at a time, the next where one fails: what came already is
// not asked for again. The manifest is this node's own, or the first holder's that has the digest of the source. A manifest
// of another job, step or generation than the command's is refused. Errors name the file, and what each holder said.
// UNAVAILABLE: a holder does not answer, or not now; NOT_FOUND, DATA_LOSS: none has it, or has it whole. INVALID_ARGUMENT,
// FAILED_PRECONDITION: of the command. Fault::kStorage: this node's disk.
absl::Status Stage(const StartCommand& command, const Staging& staging);

}  // namespace motley::worker
