// Looks for the newest checkpoint of a job whose checkpoints lie on its nodes' disks: every connected node says what it has.
// docs/inside/local-storage.md
#pragma once

#include <functional>
#include <memory>

#include "common/session/files.h"
#include "coordinator/core/core.h"
#include "coordinator/epoch/looks.h"

namespace motley::coordinator {

// As BeginLook, for such a job. One that is under way for the job already is not waited for any more: its `done` is not called.
absl::Status BeginLocalLook(Core& core, const std::shared_ptr<LookTask>& task, std::function<void()> done);
// Of a look, or of whoever else asked.
void OnHoldings(Core& core, const NodeName& node, const HoldingsReport& report);
// Periodic.
void EndLateLooks(Core& core);

// A node brings what its ranks go on from: they are waited for as long as bytes come.
void OnFetch(Core& core, const NodeName& node, const FetchReport& report);

}  // namespace motley::coordinator
