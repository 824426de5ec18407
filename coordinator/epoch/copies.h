// Keeps copies of jobs' checkpoints on other nodes' disks, and deletes there what is not needed any more: asks the nodes what
// they hold, decides (state/decide_copies), and tells them. docs/inside/local-storage.md
#pragma once

#include <optional>
#include <string>

#include "common/session/files.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/job.pb.h"

namespace motley::coordinator {

// A checkpoint of the job was published.
void LookAfterCopies(Core& core, const JobRecord& job);
// Periodic. Also looks when nodes come and go, when a generation begins, and when copies are done or failed.
void KeepCopies(Core& core);
// Whether it is an answer to a question of this.
bool OnHoldingsForCopies(Core& core, const NodeName& node, const HoldingsReport& report);
void OnCopyReport(Core& core, const NodeName& node, const FetchReport& report);
// Whether other nodes bring, or may be told to, what this one has, which leaves.
bool AwaitsFilesOf(const Core& core, const NodeName& node);
// Whether any are under way.
bool AreCopied(const Core& core);
// Null: none of the job's are.
std::optional<v1::CopyProgress> CopyingOf(const Core& core, const JobId& job);

}  // namespace motley::coordinator
