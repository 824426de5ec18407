// Asks the nodes whether they have a path, with what a sample says of it, for whoever submits a job (LookAtPath).
// docs/inside/inputs.md
#pragma once

#include <memory>
#include <string>

#include "common/inputs/path_sample.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// Until the ticket goes; waiters have the topic kExamination.
std::shared_ptr<const int> BeginPathLook(Core& core, const std::string& path, const PathSample& sample);
// Null: it was not this ticket's.
const PathLook* FindPathLook(const Core& core, const std::shared_ptr<const int>& ticket);
// All who are here have answered, or are waited for no longer.
bool IsOver(const Core& core, const PathLook& look);
// Whether it is an answer to such a question.
bool OnLookedAtPath(Core& core, const NodeName& node, const StorageReport& report);
// Periodic.
void KeepPathLooks(Core& core);

}  // namespace motley::coordinator
