// Looks at the cluster for whoever asks (CheckCluster): sends what state/examination decides, files the answers. One examination
// at a time; it ends with who asked for it.
#pragma once

#include <memory>
#include <string>

#include "coordinator/core/core.h"

namespace motley::coordinator {

// Null: another is under way. The examination ends with the ticket; its waiters have the topic kExamination.
std::shared_ptr<const int> BeginExamination(Core& core, const ExaminationRequest& request);
// Periodic, and after answers.
void AdvanceExamination(Core& core);
// Null: it was not this ticket's, or its result was not taken in time.
const Examination* FindExamination(const Core& core, const std::shared_ptr<const int>& ticket);
// After its result was taken.
void EndExamination(Core& core);

// Whether a check_id is an examination's, which other checks' reports never are.
bool IsOfExamination(const std::string& check_id);
void OnExaminedReach(Core& core, const NodeName& node, const ReachReport& report);
void OnExaminedStorage(Core& core, const NodeName& node, const StorageReport& report);

}  // namespace motley::coordinator
