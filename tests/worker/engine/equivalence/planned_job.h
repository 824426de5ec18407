// A job and the plan that its ranks follow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

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

// Draws which kinds wait there, by rank, and whether units are stepped in turn; what the engine, the plan and the job may.
void DrawOffload(const TinyJob& job, uint64_t drawn, planner::Plan* plan);
// The same for half of the jobs without clipping, of float16 with a step that overflows, and for half of the plans under the
// layered schedule if they can be: it has all kinds.
PlannedJob WithDrawnOffload(PlannedJob planned, uint64_t drawn);

// What waits there on any rank, as words of the plan language, "in turn" where units are stepped so, "unlike ranks" where kinds
// differ.
std::vector<std::string> OffloadWords(const planner::Plan& plan);

// Number `n` of a seed.
using DrawJob = PlannedJob (*)(uint64_t seed, int64_t n, const std::filesystem::path& folder, bool half);
template <DrawJob kDraw>
PlannedJob DrawOffloading(uint64_t seed, int64_t n, const std::filesystem::path& folder, bool half) {
  constexpr uint64_t kPrime = 1'000'003;  // seeds have fewer plans
  return WithDrawnOffload(kDraw(seed, n, folder, half), seed * kPrime + static_cast<uint64_t>(n));
}

}  // namespace motley::engine
