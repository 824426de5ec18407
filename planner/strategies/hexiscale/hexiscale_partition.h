// First phase of HexiScale (arXiv 2409.01143 section 4.2, 4.4): which devices form which pipeline.
//
// METIS for many numbers of pipelines, two balance factors, little and much bandwidth between the pipelines; beside them
// partitions from the cluster's tree, which METIS reaches only by luck: whole nodes dealt by speed, nodes dealt in turn, every
// node divided over all pipelines, and the candidates of groupings.h. Deterministic, without duplicates.
#pragma once

#include <vector>

#include "planner/groups/min_cut.h"
#include "planner/groups/split_cut.h"
#include "planner/setting/setting.h"

namespace motley::planner {

struct PipelinePartitions {
  std::vector<Parts> by_metis;   // as published
  std::vector<Parts> from_tree;  // the others
};

// All devices are in every partition. At most six devices: all partitions (there are 203), none from the tree.
PipelinePartitions PartitionIntoPipelines(const Setting& setting);

// Bytes a second between any two devices.
EdgeWeights RatesOf(const Setting& setting);
// Layers a second of every device: its vertex weight.
std::vector<double> SpeedsOf(const Setting& setting);

}  // namespace motley::planner
