// What an epoch goes on from, of a job whose checkpoints lie on its nodes' disks. Pure but for checkpoint.initial.
// docs/inside/local-storage.md
#pragma once

#include "coordinator/epoch/resume_point.h"
#include "coordinator/state/run.h"
#include "planner/live/live_inputs.h"

namespace motley::coordinator {

// As FindResumePoint, of what wish.held says. The newest that is whole on the nodes that are here, without wish.damaged. Where
// the job has published and none is whole, or a node of input.devices can keep no checkpoints: Fault::kStorage, which is waited
// for.
Prepared FindLocalResumePoint(const planner::PlannerInput& input, const CheckpointWish& wish);

}  // namespace motley::coordinator
