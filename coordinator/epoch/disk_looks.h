// What the nodes' disks hold, for people (ListFiles), and the end of what deleted jobs left there. docs/inside/local-storage.md
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// The nodes are asked, with `list` for what lies there, until the ticket goes; waiters have the topic kExamination.
std::shared_ptr<const int> BeginDiskLook(Core& core, bool list);
// Null: it was not this ticket's.
const DiskLook* FindDiskLook(const Core& core, const std::shared_ptr<const int>& ticket);
// Whether it is an answer to such a question, or says that unwanted files are gone.
bool OnHoldingsForDisks(Core& core, const NodeName& node, const HoldingsReport& report);

// What lies of this job on the disks of these nodes, and of all that are known, goes; from those that are away when they are
// back. Without a uid: of all jobs that had the id but the one that has it then. In `batch`, so that it is as durable as what it
// is written with; NoteUnwanted does it in memory.
void AddUnwanted(const Core& core, const JobId& job, const JobUid& uid, std::set<NodeName> nodes, Batch& batch);
void NoteUnwanted(Core& core, const Batch& batch);
// The node is no more: nothing is to go from it.
absl::Status ForgetUnwanted(Core& core, const NodeName& node);
// Loads what an earlier coordinator was told.
absl::Status LoadUnwanted(Core& core);

// Periodic: tells nodes that are here what goes, and forgets looks for which nobody waits.
void KeepDisks(Core& core);

}  // namespace motley::coordinator
