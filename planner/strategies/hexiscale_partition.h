// First phase of HexiScale (arXiv 2409.01143 section 4.2, 4.4): which devices form which pipeline.
//
// METIS for many numbers of pipelines, two balance factors, little and much bandwidth between the pipelines; beside them partitions from
// the cluster's tree, which METIS reaches only by luck: whole nodes dealt by speed, nodes dealt in turn, every node divided over
// all pipelines, and the candidates of groupings.h. Deterministic, without duplicates.
#pragma once

#include <vector>

#include "planner/setting.h"
#include "planner/strategies/min_cut.h"
#include "planner/strategies/split_cut.h"

namespace motley::planner {

// `speeds`: of all devices, positive. `from_tree`: with the tree's partitions. All devices are in every partition. At most six devices: all
// partitions, as there are only 203.
std::vector<Parts> PipelinePartitions(const Setting& setting, const EdgeWeights& rates, const std::vector<double>& speeds, bool from_tree);

}  // namespace motley::planner
