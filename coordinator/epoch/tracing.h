// Asks the ranks when their instructions ran in a step, for whoever wants to see it (rpc/trace_step), and files the answers.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/core/core.h"

namespace motley::coordinator {

// Of the run's newest epoch, which trains. Asks all ranks when nobody did yet. Valid until the next call. NOT_FOUND: a rank does
// not keep the step any more. DEADLINE_EXCEEDED: names the devices that did not answer.
absl::StatusOr<const StepTrace*> TraceOf(Core& core, int64_t step);

// What nobody asked for is dropped. Wakes who waits for the job's updates.
void OnTrace(Core& core, const TraceReport& report);

}  // namespace motley::coordinator
