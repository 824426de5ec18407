// Reads a job file: TOML with JobConfig's sections and keys, strict. docs/use/job-file.md lists every key.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"

namespace motley {

struct JobFile {
  JobConfig config;
  // Where each value came from, by field path: "default", "jobs/a.toml:12" or "--set".
  std::map<std::string, std::string> origins;
  std::vector<std::string> notes;  // TrainingNotes
  std::set<std::string> on_nodes;  // keys whose path was given as "nodes:PATH" (job_input.h)
};

// What else is wrong with a job, of which only the caller knows: lines as those of Validate.
using JobCheck = std::function<std::vector<std::string>(const JobConfig& config)>;

// Reads, applies overrides ("section.key=value", later ones win), makes paths absolute, reads the model's config.json, also that
// of a HuggingFace folder as checkpoint.initial where the job says no model, validates. Relative paths count from the job file's
// folder; those given in an override from the current folder. "~/" is the home of who loads it; what else is no path as it stands
// (common/base/written_path.h) is refused. INVALID_ARGUMENT: one line per problem, in the order of the file, each with file and
// line (or the override) and, for an unknown name, the nearest known one. NOT_FOUND / PERMISSION_DENIED: the file cannot be read;
// or the model's config.json, and nothing else is wrong.
absl::StatusOr<JobFile> LoadJobFile(const std::string& path, const std::vector<std::string>& overrides,
                                    const JobCheck& check = {});

// The same for text already read; `path` names it in errors and is the base of relative paths.
absl::StatusOr<JobFile> ParseJobFile(std::string_view text, const std::string& path, const std::vector<std::string>& overrides,
                                     const JobCheck& check = {});

// `config` with these overrides. Paths in them must be absolute.
absl::StatusOr<JobConfig> WithOverrides(const JobConfig& config, const std::vector<std::string>& overrides);

}  // namespace motley
