// A job file as commands read it: with all that the coordinator would refuse of its words, in the order of the file.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job_file.h"

namespace motley::client {

// LoadJobFile and its errors, with the words of the planner's section.
absl::StatusOr<JobFile> LoadJob(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace motley::client
