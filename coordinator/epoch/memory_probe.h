// Probes the memory of a node's devices for whoever asks (ProbeMemory): sends the trials, files the answers, keeps what was found
// in the devices' profiles. One probe at a time; it ends with who asked for it, and for a job that takes the node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// `layers`: that are trained of the model, 0: all. The probe ends with the ticket; its waiters have the topic kExamination.
// NOT_FOUND: no such node; FAILED_PRECONDITION: a job uses it, it is gone, or a device has no limit to be found; ABORTED: another
// probe is under way; errors of CheckComputeType.
absl::StatusOr<std::shared_ptr<const int>> BeginMemoryProbe(Core& core, const NodeName& node, const JobConfig& config,
                                                            int64_t layers);
// Periodic, and after answers.
void AdvanceMemoryProbe(Core& core);
// Null: it was not this ticket's, or its end was not taken in time.
const MemoryProbe* FindMemoryProbe(const Core& core, const std::shared_ptr<const int>& ticket);
// After its end was taken.
void EndMemoryProbe(Core& core);

// Whether a check_id is a memory probe's, which other checks' reports never are.
bool IsOfMemoryProbe(const std::string& check_id);
void OnProbedMemory(Core& core, const NodeName& node, const ProfileReport& report);

// "n1/gpu0: trial 7 with 64 samples, 12 s gone, at most 9 more, about 20 s".
std::string Doing(absl::Duration now, const MemoryProbe& probe);

}  // namespace motley::coordinator
