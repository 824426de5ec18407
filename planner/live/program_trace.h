// A simulated step of the engine's programs as Chrome trace JSON (simulator/trace.h).
#pragma once

#include <string>
#include <vector>

#include "common/ids.h"
#include "common/program.h"
#include "planner/live/simulator.h"

namespace motley::planner {

// A process per rank, a thread per lane. `devices` by rank.
std::string TraceJson(const std::vector<DeviceId>& devices, const std::vector<Program>& programs, const Simulation& simulation);

}  // namespace motley::planner
