// A job and the plan that its ranks follow.
#pragma once

#include "planner/plan/plan.h"
#include "tests/worker/engine/equivalence/tiny_job.h"

namespace motley::engine {

struct PlannedJob {
  TinyJob job;
  planner::Plan plan;
};

// One stage of one device with one microbatch.
planner::Plan OneDevicePlan(const TinyJob& job);

// The same plan where these wait in host memory, on every rank.
PlannedJob Offloading(PlannedJob planned, const OffloadKinds& kinds = {.activations = true});

}  // namespace motley::engine
