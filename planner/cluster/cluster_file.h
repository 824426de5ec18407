// Cluster files: TOML, by node. docs/use/clusters.md has the grammar.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cluster/cluster.h"

namespace motley::planner {

// Devices beyond this are refused: a typing slip in a count should not take all memory.
inline constexpr int kMostDevices = 16384;
// A longer file is refused before it is read.
inline constexpr int64_t kLargestClusterFileBytes = int64_t{16} << 20;

// INVALID_ARGUMENT says "SOURCE:LINE: KEY: what and the remedy": unknown keys and cards (the nearest named), sizes that are zero,
// negative or not finite, units that make no sense, asymmetric matrices, nodes without a link between them.
absl::StatusOr<Cluster> ParseCluster(std::string_view toml, std::string_view source);
// A file's path or a preset's name. NOT_FOUND names the nearest preset.
absl::StatusOr<Cluster> LoadCluster(const std::string& path_or_preset);

// Clusters of the papers, as cluster files kept in the binary: a preset is exactly what a user could have written. They are the
// files of planner/cluster/presets, in the order of planner/CMakeLists.txt, which makes the code of ClusterPresets.
struct ClusterPreset {
  std::string_view name;  // "cephalo-a", as its file
  std::string_view what;  // its file's first line: what it is, and where from
  std::string_view toml;  // the rest of the file
};
const std::vector<ClusterPreset>& ClusterPresets();

}  // namespace motley::planner
