// Does this node see the same data and checkpoint folder as the others? Summarises the data, and writes or reads back a
// token in the checkpoint folder. Both lie beneath the folders that this node gives to jobs, or the answer is no.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "common/base/beneath.h"
#include "common/base/clock.h"
#include "common/data/known_parts.h"
#include "common/session/session.h"

namespace motley::worker {

// Blocks while it reads the data. A reader waits up to `patience` for the token (shared file systems are late). The report
// carries the error in words, and never fails otherwise. With `verify_checkpoint` it reads that checkpoint whole and nothing
// else. The token's file is TokenPath; whoever wrote it removes it. Ranks need not read again what `known` gets, if it is there.
StorageReport CheckStorage(const StorageCheckCommand& check, const FileRoots& roots, const Clock& clock, absl::Duration patience,
                           KnownParts* known = nullptr);
void RemoveToken(const StorageCheckCommand& check, const FileRoots& roots);

std::string TokenPath(const StorageCheckCommand& check);

}  // namespace motley::worker
