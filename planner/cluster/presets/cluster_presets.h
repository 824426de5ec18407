// The preset tables, one for each source; ClusterPresets() lists them all.
#pragma once

#include <span>

#include "planner/cluster/cluster_file.h"

namespace motley::planner {

std::span<const ClusterPreset> CephaloClusters();
std::span<const ClusterPreset> ZorseClusters();
std::span<const ClusterPreset> PoplarAndBatonClusters();
std::span<const ClusterPreset> HexiscaleClusters();
std::span<const ClusterPreset> LabClusters();

}  // namespace motley::planner
