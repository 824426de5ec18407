// The simulated step as Chrome trace JSON (Perfetto, chrome://tracing): a process per rank, a thread per lane,
// microseconds.
#pragma once

#include <string>
#include <vector>

#include "common/ids.h"
#include "common/program.h"
#include "planner/simulator/simulator.h"

namespace motley::planner {

// `devices` by rank. Instructions that take no time are left out.
std::string TraceJson(const std::vector<DeviceId>& devices, const std::vector<Program>& programs, const Simulation& simulation);

}  // namespace motley::planner
