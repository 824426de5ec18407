// What a collective costs the compute that it runs beside (Cluster::overlap_efficiency; docs/inside/simulator.md, "Overlap"): to
// which instruction of a rank's program each of its collectives is charged. Part of the programs' graph (program_graph.h).
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "common/program/program.h"

namespace motley::planner {

// By instruction: seconds of the collectives that are charged to it; 0 but for what computes. What fills a parameter buffer is
// charged to the next compute that uses it, what sums gradients to the next compute behind it, both in the program's order.
// `seconds`: of a collective; 0 = it is not charged.
std::vector<double> OverlapCharges(const Program& program, absl::FunctionRef<double(const Operation&)> seconds);

}  // namespace motley::planner
