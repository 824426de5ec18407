// Clusters by name or path.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/files.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "planner/cluster/cluster_file.h"

namespace motley::planner {

absl::StatusOr<Cluster> LoadCluster(const std::string& path_or_preset) {
  std::vector<std::string> names;
  for (const ClusterPreset& preset : ClusterPresets()) {
    if (preset.name == path_or_preset) return ParseCluster(preset.toml, absl::StrCat("preset ", path_or_preset));
    names.emplace_back(preset.name);
  }
  std::error_code error;
  if (!std::filesystem::exists(path_or_preset, error)) {
    const std::string nearest = NearestWord(path_or_preset, names);
    return absl::NotFoundError(absl::StrCat("cluster '", path_or_preset, "' is neither a file nor a preset",
                                            nearest.empty() ? "." : "; did you mean '" + nearest + "'?",
                                            " Presets: ", absl::StrJoin(names, ", "),
                                            ". A file of your own begins with `motley clusters two-4090 >lab.toml`."));
  }
  if (std::filesystem::is_directory(path_or_preset, error)) {
    return absl::NotFoundError(absl::StrCat("cluster ", path_or_preset, " is a directory; give a cluster file or a preset"));
  }
  MOTLEY_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path_or_preset, kLargestClusterFileBytes));
  MOTLEY_ASSIGN_OR_RETURN(Cluster cluster, ParseCluster(text, path_or_preset));
  if (cluster.name != path_or_preset) cluster.file = path_or_preset;
  return cluster;
}

}  // namespace motley::planner
